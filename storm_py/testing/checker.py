"""Checker: what was emitted, who received it, what was answered - and whether that may be so.

Every emission has a number, which travels as a hidden last value (`storm_py.testing.watching`), so
the checker knows each tuple tree as it really is and can say of every answer whether it is true.
What it finds wrong is kept in `problem`, because it is found in the middle of user code, where an
exception would be taken for the user's. Pure.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from storm_py.api.grouping import GroupingKind
from storm_py.core.plan import PhysicalPlan

#: An ack that is younger may still be on its way when a message fails for its time.
NEWS_SECS: Final = 1.0


class SimulationError(AssertionError):
    """Raised when a simulated run breaks a promise; the message says how to see it again."""


@dataclass(eq=False, slots=True)
class Life:
    """One incarnation of one task."""

    task: int
    component: str
    process: str
    #: per producing task, the number of the last tuple received from it
    last: dict[int, int] = field(default_factory=dict)
    #: emissions with a message id that were not answered
    pending: dict[int, Emission] = field(default_factory=dict)
    ended: bool = False
    dead: bool = False

    def __str__(self) -> str:
        return f"{self.component} (task {self.task} in {self.process})"


@dataclass(eq=False, slots=True)
class Reception:
    """One emission in the hands of one consuming task."""

    emission: Emission
    life: Life
    state: Literal["open", "acked", "failed"] = "open"
    answered_at: float = 0.0
    #: what was emitted anchored to it
    children: list[Emission] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Emission:
    """One call of emit: a copy goes to each of `dests`."""

    number: int
    life: Life
    stream: str
    dests: Sequence[int]
    tracked: bool
    msg_id: object = None
    received: dict[int, Reception] = field(default_factory=dict)
    answer: str = ""
    #: it was failed when all of its tree was acked
    without_cause: bool = False
    #: its process died in the middle of it: nobody knows which copies were sent
    interrupted: bool = False

    def __str__(self) -> str:
        return f"number {self.number}, emitted by {self.life} on stream {self.stream!r}"


class Checker:
    """Everything that tasks did in one run; each method is one thing that a task does."""

    def __init__(self, plan: PhysicalPlan, acking: bool) -> None:
        #: the time, which whoever runs the tasks keeps up to date
        self.now = 0.0
        self._plan = plan
        self._acking = acking
        self._numbers = itertools.count(1)
        self._keys: dict[tuple[str, tuple[str, ...], str], int] = {}
        self._targets = {id_: plan.targets(id_) for id_ in plan.topology.components}
        self.problem = ""
        self.emissions: dict[int, Emission] = {}
        self.lives: list[Life] = []
        self._late: list[str] = []
        self.received = self.acked = self.failed = 0
        self.emitted_to: dict[int, int] = defaultdict(int)

    def answers(self, reception: Reception, acked: bool) -> None:
        """A bolt acks or fails."""
        reception.state = "acked" if acked else "failed"
        reception.answered_at = self.now

    def complain(self, text: str) -> None:
        """Keep the first thing that is wrong."""
        self.problem = self.problem or text

    def born(self, task: int, process: str) -> Life:
        """A task's object was made."""
        life = Life(task, self._plan.task_to_component[task], process)
        self.lives.append(life)
        return life

    # ---- what tasks do -------------------------------------------------------------------------

    def next_number(self) -> int:
        """The number of the next emission."""
        return next(self._numbers)

    def direct_dests(self, life: Life, stream: str, task: int) -> tuple[int, ...]:
        """Where a direct emit goes: nowhere, if its task does not listen."""
        targets = self._targets[life.component].get(stream, ())
        return (task,) if any(task in target.tasks for target in targets) else ()

    def emitted(
        self,
        number: int,
        life: Life,
        stream: str,
        values: Sequence[object],
        dests: Sequence[int],
        anchors: Sequence[Reception] = (),
        msg_id: object = None,
        direct: bool = False,
    ) -> None:
        """A task has emitted."""
        tracked = self._acking and msg_id is not None
        emission = Emission(number, life, stream, dests, tracked, msg_id)
        self.emissions[number] = emission
        for dest in dests:
            self.emitted_to[dest] += 1
        for anchor in anchors:
            anchor.children.append(emission)
        if msg_id is not None:
            life.pending[number] = emission
        if not direct:
            self._check_dests(emission, values)

    def interrupted(self, number: int, life: Life, stream: str) -> None:
        """A task died while it emitted; what it had sent may arrive."""
        self.emissions[number] = Emission(number, life, stream, (), False, interrupted=True)

    def _check_dests(self, emission: Emission, values: Sequence[object]) -> None:
        remaining = list(emission.dests)
        for target in self._targets[emission.life.component].get(emission.stream, ()):
            wanted: Sequence[int] = target.tasks[:1]
            found = [task for task in remaining if task in target.tasks]
            if target.kind is GroupingKind.ALL:
                wanted = target.tasks
            elif target.kind is not GroupingKind.GLOBAL:
                wanted = found[:1]
                if target.kind is GroupingKind.FIELDS and wanted:
                    key = repr([values[i] for i in target.key])
                    names = tuple(str(i) for i in target.key)
                    home = (target.component_id, names, key)
                    wanted = [self._keys.setdefault(home, wanted[0])]
            if list(wanted) != found or not wanted:
                self.complain(
                    f"{emission} went to the tasks {found} of {target.component_id!r}, "
                    f"expected {list(wanted)} by its {target.kind.value} grouping"
                )
            remaining = [task for task in remaining if task not in found]

    def receives(self, life: Life, number: int, source_task: int) -> Reception | None:
        """A tuple arrives; None if it may not be there at all."""
        emission = self.emissions.get(number)
        if emission is None or emission.life.task != source_task:
            self.complain(f"{life} received number {number}, which task {source_task} never sent")
            return None
        if life.task not in emission.dests and not emission.interrupted:
            self.complain(f"{life} received {emission}, which went to {list(emission.dests)}")
        before = emission.received.get(life.task)
        if before is not None:
            self.complain(f"{life} received {emission}, which {before.life} had received before")
        last = life.last.get(source_task, 0)
        if number <= last:
            self.complain(f"{life} received {emission}, after number {last} of the same task")
        if life.dead:
            self.complain(f"{life} received {emission} and is dead")
        self._late += [f"{life} received {emission}, after its end of input"] if life.ended else []
        life.last[source_task] = number
        reception = Reception(emission, life)
        emission.received[life.task] = reception
        self.received += 1
        return reception

    def ended(self, life: Life) -> None:
        """end_of_input of a bolt is called."""
        if life.ended:
            self.complain(f"end_of_input of {life} was called a second time")
        life.ended = True

    def answered(self, life: Life, number: object, answer: Literal["acked", "failed"]) -> object:
        """A spout hears of a message id; returns the one that it had given."""
        emission = self.emissions.get(number) if isinstance(number, int) else None
        if emission is None or emission.life is not life:
            self.complain(f"{life} hears of message {number!r}, which it did not emit")
            return number
        if emission.answer:
            self.complain(f"{emission} was {answer}, and {emission.answer} before that")
        emission.answer = answer
        life.pending.pop(emission.number, None)
        if answer == "acked":
            self.acked += 1
            if emission.tracked:
                self._check_complete(emission)
        else:
            self.failed += 1
            gap, since = self._unfinished(emission)
            emission.without_cause = not gap and self.now - since > NEWS_SECS
        return emission.msg_id

    def _check_complete(self, root: Emission) -> None:
        gap, _ = self._unfinished(root)
        if gap:
            self.complain(f"{root} was acked, but {gap}")

    def _unfinished(self, root: Emission) -> tuple[str, float]:
        """What is missing in a tree, "" if nothing is; when the last of it was acked."""
        todo, seen, last = [root], {root.number}, 0.0
        while todo:
            emission = todo.pop()
            for dest in emission.dests:
                reception = emission.received.get(dest)
                if reception is None:
                    return f"task {dest} never received {emission}", last
                if reception.state != "acked":
                    word = "failed" if reception.state == "failed" else "has not acked"
                    return f"{reception.life} {word} {emission}", last
                last = max(last, reception.answered_at)
                for child in reception.children:
                    if child.number not in seen:
                        seen.add(child.number)
                        todo.append(child)
        return "", last

    # ---- at the end ----------------------------------------------------------------------------

    def check_end(self, faultless: bool) -> None:
        """The run has ended and nothing moves any more."""
        for life in self.lives:
            if life.dead:
                continue
            for emission in life.pending.values():
                self.complain(f"{emission}, was never answered")
        if faultless:
            self._check_faultless()

    def _check_faultless(self) -> None:
        """Without faults everything arrives, and nothing fails that no bolt has failed or kept."""
        for text in self._late:
            self.complain(text)
        for emission in self.emissions.values():
            for dest in emission.dests:
                if dest not in emission.received:
                    self.complain(f"task {dest} never received {emission}, though nothing failed")
            if emission.without_cause:
                self.complain(f"{emission} failed, though every bolt had acked by then")
        for life in self.lives:
            kind = self._plan.topology.components[life.component].kind
            if kind == "bolt" and not life.ended:
                self.complain(f"end_of_input of {life} was never called")

    def statistics(self) -> Mapping[str, int]:
        """How much was done."""
        return {
            "emitted": len(self.emissions),
            "received": self.received,
            "acked": self.acked,
            "failed": self.failed,
        }
