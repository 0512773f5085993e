"""Checker: what was emitted, who received it, what was answered - and whether that may be so.

Every emission has a number, which travels as a hidden last value (`storm_py.testing.watching`), so
the checker knows each tuple tree as it really is and can say of every answer whether it is true.
What it finds wrong is kept in `problem`, because it is found in the middle of user code, where an
exception would be taken for the user's. Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from storm_py.api.grouping import GroupingKind
from storm_py.core.plan import PhysicalPlan
from storm_py.core.routing import Target

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
    tracked: bool
    msg_id: object = None
    #: empty while the call goes on; a custom grouping may name a task more than once
    dests: Sequence[int] = ()
    #: emit has not returned: nobody knows yet where copies go, nor ever if its process died in it
    underway: bool = True
    #: what the custom grouping of each consumer has answered
    chosen: dict[str, Sequence[int]] = field(default_factory=dict)
    received: dict[int, list[Reception]] = field(default_factory=dict)
    answer: str = ""
    #: it was failed when all of its tree was acked
    without_cause: bool = False

    def __str__(self) -> str:
        return f"number {self.number}, emitted by {self.life} on stream {self.stream!r}"

    def copies(self, task: int) -> int:
        """How often a task may receive it."""
        if not self.underway:
            return self.dests.count(task)
        return max(1, *(list(tasks).count(task) for tasks in self.chosen.values()), 0)


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

    def emits(self, life: Life, stream: str, msg_id: object = None) -> Emission:
        """A task calls emit; copies may arrive before that returns."""
        tracked = self._acking and msg_id is not None
        emission = Emission(next(self._numbers), life, stream, tracked, msg_id)
        self.emissions[emission.number] = emission
        return emission

    def chose(self, number: int, consumer: str, tasks: Sequence[int]) -> None:
        """The custom grouping of a consumer has answered, in the middle of an emit."""
        self.emissions[number].chosen[consumer] = tasks

    def refused(self, emission: Emission) -> None:
        """The engine has raised instead of emitting."""
        del self.emissions[emission.number]
        if emission.received:
            self.complain(f"{emission} was refused, but {list(emission.received)} received it")

    def direct_dests(self, life: Life, stream: str, task: int) -> tuple[int, ...]:
        """Where a direct emit goes: nowhere, if its task does not listen."""
        targets = self._targets[life.component].get(stream, ())
        return (task,) if any(task in target.tasks for target in targets) else ()

    def emitted(
        self,
        emission: Emission,
        values: Sequence[object],
        dests: Sequence[int],
        anchors: Sequence[Reception] = (),
        direct: bool = False,
    ) -> None:
        """A task has emitted."""
        emission.dests = dests
        emission.underway = False
        for anchor in anchors:
            anchor.children.append(emission)
        if emission.msg_id is not None and not emission.answer:
            emission.life.pending[emission.number] = emission
        for task, receptions in emission.received.items():
            if len(receptions) > emission.copies(task):
                self.complain(f"{receptions[-1].life} received {emission}, not sent to it so often")
        if not direct:
            self._check_dests(emission, values)

    def _check_dests(self, emission: Emission, values: Sequence[object]) -> None:
        for target in self._targets[emission.life.component].get(emission.stream, ()):
            found = [task for task in emission.dests if task in target.tasks]
            wanted = self._wanted(target, emission, values, found)
            if list(wanted) != found or not (wanted or target.kind is GroupingKind.CUSTOM):
                self.complain(
                    f"{emission} went to the tasks {found} of {target.component_id!r}, "
                    f"expected {list(wanted)} by its {target.kind.value} grouping"
                )

    def _wanted(
        self, target: Target, emission: Emission, values: Sequence[object], found: Sequence[int]
    ) -> Sequence[int]:
        """The tasks of one consumer that it has to go to; any one where the grouping is free."""
        match target.kind:
            case GroupingKind.ALL:
                return target.tasks
            case GroupingKind.GLOBAL:
                return target.tasks[:1]
            case GroupingKind.CUSTOM:
                return emission.chosen.get(target.component_id, ())
            case GroupingKind.FIELDS if found:
                key = repr([values[i] for i in target.key])
                names = tuple(str(i) for i in target.key)
                home = (target.component_id, names, key)
                return [self._keys.setdefault(home, found[0])]
        return found[:1]

    def receives(self, life: Life, number: int, source_task: int) -> Reception | None:
        """A tuple arrives; None if it may not be there at all."""
        emission = self.emissions.get(number)
        if emission is None or emission.life.task != source_task:
            self.complain(f"{life} received number {number}, which task {source_task} never sent")
            return None
        before = emission.received.setdefault(life.task, [])
        allowed = emission.copies(life.task)
        if not allowed:
            self.complain(f"{life} received {emission}, which went to {list(emission.dests)}")
        elif len(before) >= allowed:
            self.complain(
                f"{life} received {emission}, which {before[-1].life} had received before"
            )
        last = life.last.get(source_task, 0)
        if number < last or (number == last and not before):
            self.complain(f"{life} received {emission}, after number {last} of the same task")
        if life.dead:
            self.complain(f"{life} received {emission} and is dead")
        self._late += [f"{life} received {emission}, after its end of input"] if life.ended else []
        life.last[source_task] = number
        reception = Reception(emission, life)
        before.append(reception)
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
            for reception in self._receptions(emission):
                if isinstance(reception, int):
                    return f"task {reception} never received {emission}", last
                if reception.state != "acked":
                    word = "failed" if reception.state == "failed" else "has not acked"
                    return f"{reception.life} {word} {emission}", last
                last = max(last, reception.answered_at)
                for child in reception.children:
                    if child.number not in seen:
                        seen.add(child.number)
                        todo.append(child)
        return "", last

    def _receptions(self, emission: Emission) -> Iterator[Reception | int]:
        """Every copy as it was received, and the task for each that was not."""
        for dest in dict.fromkeys(emission.dests):
            receptions = emission.received.get(dest, [])
            yield from receptions
            yield from [dest] * (emission.copies(dest) - len(receptions))

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
            for missing in self._receptions(emission):
                if isinstance(missing, int):
                    text = f"task {missing} never received {emission}, though nothing failed"
                    self.complain(text)
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
