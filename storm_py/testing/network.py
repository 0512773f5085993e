"""Network: the links between simulated processes, and the clock that they share.

A link is one socket's direction: messages on it keep their order, among links anything goes, data
and control of one pair included. What is in flight survives its sender in part only: when a process
dies or closes a link, the tail is lost. Nothing here knows what a message says. The processes are
in `storm_py.testing.processes`, the faults in `storm_py.testing.faults`.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Final

#: When a simulation begins, on its own clock, in seconds.
START: Final = 1000.0
#: Events that a failure shows.
STORY: Final = 60
#: Seconds that pass with each step, and the longest that a process stays idle without a look round.
STEP_SECS: Final = 0.00002
IDLE_SECS: Final = 1.0


class Kind(Enum):
    """What travels on a link."""

    DATA = "data"
    CONTROL = "control"
    #: between a worker and its processes, or a worker and its parent
    CHANNEL = "channel"


class Died(BaseException):
    """Raised inside of a process that dies in the middle of sending."""


class Over(BaseException):
    """Raised where a process waits in the middle of user code, when the run is over."""


class Process:
    """One simulated process: a name, an address, and what it does when something arrives."""

    def __init__(self, network: Network, name: str) -> None:
        self.network = network
        self.name = name
        self.address = f"{name}#{next(network.numbers)}"
        self.alive = True
        #: it does not run before
        self.stopped_until = 0.0
        #: when it has something to do at the latest
        self.wake_at = network.now
        #: the link that has no room for what it sends, in the middle of something: it does not run
        self.blocked: Link | None = None
        #: how many more messages it sends before it dies, None for any number
        self.doomed: int | None = None
        network.processes[self.address] = self

    def takes(self, kind: Kind) -> bool:
        """Whether it would read from a socket of this kind now."""
        return True

    def deliver(self, link: Link, message: Any) -> None:
        """A message arrives."""
        raise NotImplementedError

    def run(self) -> None:
        """Do what is to be done without a message, and set `wake_at`."""
        raise NotImplementedError

    def kill(self, reason: str) -> None:
        """kill -9: it sends nothing more, and the tail of what it has sent is lost."""
        self.alive = False
        self.network.died(self)

    def __repr__(self) -> str:
        return self.address


class Link:
    """One direction of one socket between two processes."""

    __slots__ = ("closed", "dest", "held_until", "kind", "queue", "source", "stray")

    def __init__(self, source: Process, dest: Process, kind: Kind) -> None:
        self.source = source
        self.dest = dest
        self.kind = kind
        self.queue: deque[Any] = deque()
        self.held_until = 0.0
        self.closed = False
        #: delivers to whoever bears the name of `dest`, which is dead: its address was used again
        self.stray = False

    def __repr__(self) -> str:
        return f"{self.kind.value} {self.source}>{self.dest}"


class Network:
    """The links, the processes that live, the clock, and the source of everything random."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.now = START
        self.numbers: Iterator[int] = itertools.count(1)
        self.processes: dict[str, Process] = {}
        self.story: deque[tuple[float, str, object, object]] = deque(maxlen=STORY)
        #: how many of each kind of fault there were
        self.faults: Counter[str] = Counter()
        #: how often each kind of user code was entered, and how many sends had to wait for room
        self.entered: Counter[str] = Counter()
        self.waits = 0
        #: how likely the links to a dead process lead to its successor
        self.stray_odds = 0.0
        self.largest_message = 0
        self._busy: dict[Link, None] = {}
        self._timers: list[tuple[float, int, Process, Callable[[], object]]] = []

    def tell(self, what: str, one: object = "", other: object = "") -> None:
        """Add an event to the story; it is put into words only if it is shown."""
        self.story.append((self.now, what, one, other))

    # ---- processes and time --------------------------------------------------------------------

    def named(self, name: str) -> Process | None:
        """The living process of this name."""
        for process in self.processes.values():
            if process.name == name:
                return process
        return None

    def after(self, secs: float, process: Process, call: Callable[[], object]) -> None:
        """Call later, if `process` still lives then."""
        number = next(self.numbers)
        heapq.heappush(self._timers, (self.now + secs, number, process, call))

    def run_timers(self) -> None:
        """Do what is due."""
        while self._timers and self._timers[0][0] <= self.now:
            _, _, process, call = heapq.heappop(self._timers)
            if process.alive:
                call()

    def runnable(self) -> list[Process]:
        """The processes that have something to do."""
        now = self.now
        return [
            p
            for p in self.processes.values()
            if p.wake_at <= now and p.stopped_until <= now and p.blocked is None
        ]

    def next_event(self) -> float:
        """When something happens next if nothing can happen now."""
        times = [max(p.wake_at, p.stopped_until) for p in self.processes.values()]
        times += [self._timers[0][0]] if self._timers else []
        times += [max(link.held_until, link.dest.stopped_until) for link in self._busy]
        later = [time for time in times if time > self.now]
        return min(later, default=self.now + IDLE_SECS)

    def died(self, process: Process) -> None:
        """A process is gone: cut what it had sent, and what was on its way to it."""
        self.processes.pop(process.address, None)
        for link in list(self._busy):
            if link.source is process and link.kind is Kind.CHANNEL:
                self._cut(link, self.rng.randint(0, len(link.queue)))
            elif link.source is process and not link.closed:
                self.close(link)
            elif link.dest is process:
                self._lose_receiver(link)

    def _lose_receiver(self, link: Link) -> None:
        if link.kind is Kind.DATA and self.rng.random() < self.stray_odds:
            link.stray = True
            self.faults["stray"] += 1
        else:
            self._cut(link, 0)

    # ---- links ---------------------------------------------------------------------------------

    def send(self, link: Link, message: Any) -> None:
        """Put a message on its way; a process that is doomed dies before its last one is sent."""
        source, dest = link.source, link.dest
        if source.doomed is not None:
            source.doomed -= 1
            if source.doomed < 0:
                raise Died
        if not link.closed and (dest.alive or link.stray):
            link.queue.append(message)
            self._busy[link] = None
            if link.kind is Kind.DATA:
                self.largest_message = max(self.largest_message, len(message))

    def close(self, link: Link) -> None:
        """The sender closes its socket, with linger 0: some of the tail may still be sent."""
        link.closed = True
        if link.queue:
            keep = self.rng.choice([0, self.rng.randint(0, len(link.queue)), len(link.queue)])
            self._cut(link, keep)

    def break_link(self, link: Link) -> None:
        """The connection breaks and is made again: the tail of what was in flight is lost."""
        self._cut(link, self.rng.randrange(len(link.queue)))

    def _cut(self, link: Link, keep: int) -> None:
        lost = len(link.queue) - keep
        while len(link.queue) > keep:
            link.queue.pop()
        if lost:
            self.tell("lost tail", link, lost)
            if link.kind is not Kind.CHANNEL:
                self.faults["lost tail"] += 1
        if not link.queue:
            self._busy.pop(link, None)

    def receiver(self, link: Link) -> Process | None:
        """Who reads from a link."""
        return self.named(link.dest.name) if link.stray else link.dest

    def ready(self) -> list[Link]:
        """The links whose next message can be delivered now."""
        now = self.now
        found = []
        for link in self._busy:
            if link.held_until <= now:
                receiver = self.receiver(link)
                if (
                    receiver is not None
                    and receiver.stopped_until <= now
                    and receiver.takes(link.kind)
                ):
                    found.append(link)
        return found

    def busy(self, *kinds: Kind) -> list[Link]:
        """The links of these kinds with something in flight."""
        return [link for link in self._busy if link.kind in kinds]

    def deliver(self, link: Link) -> None:
        """Hand the next message of a link over."""
        message = link.queue.popleft()
        if not link.queue:
            del self._busy[link]
        receiver = self.receiver(link)
        if receiver is not None:
            self.tell("deliver", link, receiver if link.stray else "")
            receiver.wake_at = self.now
            receiver.deliver(link, message)

    def shown_story(self) -> list[str]:
        """The last events in words, one line each."""
        return [
            f"  {time - START:10.5f} s  {what} {one} {other}".rstrip()
            for time, what, one, other in self.story
        ]
