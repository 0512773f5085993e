"""Faults: what goes wrong in a simulated run, how often, and when.

`Faults` says what may happen; `Injector` lets it happen at random moments, some in quick
succession, so that what is just coming back is hit again. When `count` of them have happened they
stop, and the system has to settle. Every fault is one that real processes and sockets can suffer.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from storm_py.errors import a_type, did_you_mean

from .arguments import checked_int, checked_number
from .instances import Instance
from .managers import Manager
from .network import Kind, Link, Network
from .parents import Worker

#: What may happen, and its weight where faults are drawn from the seed.
KINDS: Final = {
    "kill instance": 6,  # kill -9 of one instance
    "kill stream manager": 3,
    "kill worker": 2,  # with all its processes
    "kill all instances": 2,  # of a worker, as the death of its fork server does
    "kill while sending": 4,  # one process dies in the middle of what it sends next
    "break link": 4,  # the tail in flight is lost, what is sent later arrives
    "duplicate": 4,  # a data message arrives again, a control message twice
    "delay": 6,  # a link stands still, up to a second
    "partition": 3,  # all links between two stream managers stand still
    "stop": 2,  # a process stands still (SIGSTOP, a long collection, swapping)
}


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong: `count` faults of these `kinds`, on average every `gap_steps` steps.

    `stray_odds` is how likely a link to a dead process leads to its successor, as if its address
    had been used again, so that messages of an old session arrive there.
    """

    count: int = 10
    gap_steps: int = 150
    kinds: tuple[str, ...] = tuple(KINDS)
    stray_odds: float = 0.3

    def __post_init__(self) -> None:
        checked_int("count of Faults", self.count, 0, "0 for a calm run")
        checked_int("gap_steps of Faults", self.gap_steps, 1, "the steps from fault to fault")
        checked_number("stray_odds of Faults", self.stray_odds, "a probability", most=1.0)
        if isinstance(self.kinds, str) or not isinstance(self.kinds, Iterable):
            raise TypeError(
                f"kinds of Faults is {self.kinds!r}, {a_type(self.kinds)}; expected a tuple of "
                f"some of: {', '.join(KINDS)}"
            )
        object.__setattr__(self, "kinds", tuple(self.kinds))
        for kind in self.kinds:
            if kind not in KINDS:
                known = ", ".join(KINDS)
                raise ValueError(
                    f"{kind!r} is no fault; there are: {known}{did_you_mean(kind, KINDS)}"
                )
        if self.count and not self.kinds:
            raise ValueError(f"{self.count} faults of no kind; name some, or count=0 for none")

    @classmethod
    def drawn(cls, rng: random.Random) -> Faults:
        """Some faults; none at all for one seed in six."""
        count = rng.choice([0, 2, 5, 10, 10, 20])
        kinds = tuple(KINDS) if rng.random() < 0.7 else tuple(rng.sample(list(KINDS), 3))
        return cls(count, rng.choice([20, 80, 200, 400]), kinds, rng.choice([0.0, 0.3, 1.0]))


class Injector:
    """Lets faults happen in one network."""

    def __init__(self, faults: Faults, network: Network) -> None:
        self._faults = faults
        self._network = network
        self._rng = network.rng
        self._left = faults.count
        self._next = self._gap()
        self._unregistered: dict[str, int] = {}
        network.stray_odds = faults.stray_odds

    def _gap(self) -> int:
        if self._rng.random() < 0.25:
            return self._rng.randint(1, 10)
        return self._rng.randint(1, 2 * self._faults.gap_steps)

    @property
    def over(self) -> bool:
        """Whether the last fault has happened."""
        return self._left <= 0

    def stop(self) -> None:
        """Nothing goes wrong from now on."""
        self._left = 0
        for process in self._network.processes.values():
            process.doomed = None
            process.stopped_until = 0.0

    def step(self) -> None:
        """One step has passed: is it time?"""
        if self._left <= 0:
            return
        self._next -= 1
        if self._next <= 0:
            kinds = self._faults.kinds
            kind = self._rng.choices(kinds, [KINDS[kind] for kind in kinds])[0]
            if self._happen(kind):
                self._left -= 1
            self._next = self._gap()
            if self._left <= 0:
                self.stop()

    def _happen(self, kind: str) -> bool:
        """Do it; False if there is nothing that it could happen to."""
        network = self._network
        done = bool(_ACTS[kind](self))
        if done:
            network.tell(f"FAULT {kind}")
            if kind != "kill while sending":  # counted when it happens
                network.faults[kind] += 1
        return done

    # ---- deaths --------------------------------------------------------------------------------

    def _one(self, kind: type[Instance | Manager | Worker]) -> Instance | Manager | Worker | None:
        found = [p for p in self._network.processes.values() if isinstance(p, kind)]
        return self._rng.choice(found) if found else None

    def _may_die(self, process: Instance | Manager) -> bool:
        """Not three times in a row before it is up: that would rightly be called a failure."""
        if process.name in process.worker.known:
            self._unregistered.pop(process.name, None)
            return True
        times = self._unregistered.get(process.name, 0)
        self._unregistered[process.name] = times + 1
        return times == 0

    def _kill(self, process: Instance | Manager | Worker | None) -> bool:
        if process is None:
            return False
        if not isinstance(process, Worker) and not self._may_die(process):
            return False
        process.kill("killed")
        return True

    def kill_instance(self) -> bool:
        return self._kill(self._one(Instance))

    def kill_stream_manager(self) -> bool:
        return self._kill(self._one(Manager))

    def kill_worker(self) -> bool:
        worker = self._one(Worker)
        if not isinstance(worker, Worker) or f"s{worker.number}" not in worker.known:
            return False
        return self._kill(worker)

    def kill_all_instances(self) -> bool:
        worker = self._one(Worker)
        if not isinstance(worker, Worker):
            return False
        found = [child for child in worker.children.values() if isinstance(child, Instance)]
        return sum(self._kill(child) for child in found if child.alive) > 0

    def kill_while_sending(self) -> bool:
        process = self._one(self._rng.choice([Instance, Manager]))
        if isinstance(process, (Instance, Manager)) and self._may_die(process):
            process.doomed = self._rng.randint(0, 6)
            return True
        return False

    # ---- links ---------------------------------------------------------------------------------

    def _link(self, *kinds: Kind) -> Link | None:
        found = [link for link in self._network.busy(*kinds) if not link.stray]
        return self._rng.choice(found) if found else None

    def break_link(self) -> bool:
        link = self._link(Kind.DATA)
        if link is None or link.closed:
            return False
        self._network.break_link(link)
        return True

    def duplicate(self) -> bool:
        link = self._link(Kind.DATA, Kind.CONTROL)
        if link is None:
            return False
        at = self._rng.randrange(len(link.queue))
        later = self._rng.randint(at, len(link.queue)) if link.kind is Kind.DATA else at
        link.queue.insert(later, link.queue[at])
        return True

    def delay(self) -> bool:
        link = self._link(*Kind)
        if link is None:
            return False
        link.held_until = self._network.now + self._rng.choice([0.001, 0.02, 0.3, 1.0])
        return True

    def partition(self) -> bool:
        pairs = [
            links
            for process in self._network.processes.values()
            if isinstance(process, Manager)
            for peer, links in process.outlets.items()
            if peer.startswith("s")
        ]
        if not pairs:
            return False
        one = self._rng.choice(pairs)
        ends = {one[0].source, one[0].dest}
        until = self._network.now + self._rng.choice([0.05, 1.0, 3.0])
        for links in pairs:
            for link in links:
                if link.source in ends and link.dest in ends:
                    link.held_until = until
        return True

    def stop_process(self) -> bool:
        process = self._one(self._rng.choice([Instance, Manager]))
        if process is None:
            return False
        secs = self._rng.choice([0.01, 0.2, 1.0, 7.0])
        process.stopped_until = self._network.now + secs
        return True


_DEATHS: Final = ("kill instance", "kill stream manager", "kill worker", "kill all instances")
_ACTS: Final = {
    "kill instance": Injector.kill_instance,
    "kill stream manager": Injector.kill_stream_manager,
    "kill worker": Injector.kill_worker,
    "kill all instances": Injector.kill_all_instances,
    "kill while sending": Injector.kill_while_sending,
    "break link": Injector.break_link,
    "duplicate": Injector.duplicate,
    "delay": Injector.delay,
    "partition": Injector.partition,
    "stop": Injector.stop_process,
}
