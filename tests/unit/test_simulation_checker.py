"""The simulation's checker: what it says of histories that may not be, and of those that may."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storm_py.testing.checker import Checker, Emission
from tests.builders import ALL, bolt, by, plan_of, spout

#: count is tasks 1 and 2, log task 3, words task 4
PLAN = plan_of(
    spout("words", "word; side: word"),
    bolt("count", {"words": by("word"), "words:side": ALL}, "word", tasks=2),
    bolt("log", "count"),
)


class History:
    """Tasks that do what a test says, in the eyes of a checker."""

    def __init__(self) -> None:
        self.checker = Checker(PLAN, acking=True)
        self.lives = {task: self.checker.born(task, f"i{task}#1") for task in (1, 2, 3, 4)}

    def emit(
        self,
        task: int,
        dests: tuple[int, ...],
        anchors: tuple[tuple[Emission, int], ...] = (),
        msg_id: object = None,
        word: str = "storm",
        stream: str = "default",
    ) -> Emission:
        received = [emission.received[dest][0] for emission, dest in anchors]
        emitted = self.checker.emits(self.lives[task], stream, msg_id)
        self.checker.emitted(emitted, [word], dests, received)
        return emitted

    def receive(self, emission: Emission, task: int, acked: bool = True) -> None:
        source = emission.life.task
        reception = self.checker.receives(self.lives[task], emission.number, source)
        if reception is not None and acked:
            self.checker.answers(reception, acked=True)

    def answer(self, emission: Emission, acked: bool = True, task: int = 4) -> None:
        word = "acked" if acked else "failed"
        self.checker.answered(self.lives[task], emission.number, word)  # type: ignore[arg-type]

    def restart(self, task: int) -> None:
        self.lives[task].dead = True
        self.lives[task] = self.checker.born(task, f"i{task}#2")


def acked_before_it_arrives(it: History) -> None:
    it.answer(it.emit(4, (1,), msg_id="a"))


def acked_before_a_bolt_acks(it: History) -> None:
    root = it.emit(4, (1,), msg_id="a")
    it.receive(root, 1, acked=False)
    it.answer(root)


def acked_before_a_descendant_arrives(it: History) -> None:
    root = it.emit(4, (1,), msg_id="a")
    it.receive(root, 1)
    it.emit(1, (3,), anchors=((root, 1),))
    it.answer(root)


def answered_twice(it: History) -> None:
    root = it.emit(4, (1,), msg_id="a")
    it.receive(root, 1)
    it.answer(root)
    it.answer(root, acked=False)


def answered_to_the_successor(it: History) -> None:
    root = it.emit(4, (1,), msg_id="a")
    it.receive(root, 1)
    it.restart(4)
    it.answer(root)


def received_twice(it: History) -> None:
    root = it.emit(4, (1,))
    it.receive(root, 1)
    it.restart(1)
    it.receive(root, 1)


def received_out_of_order_across_streams(it: History) -> None:
    first = it.emit(4, (1, 2), stream="side")
    second = it.emit(4, (1,))
    it.receive(second, 1)
    it.receive(first, 1)


def received_elsewhere(it: History) -> None:
    it.receive(it.emit(4, (1,)), 2)


def received_from_nobody(it: History) -> None:
    it.checker.receives(it.lives[1], 77, 4)


def received_by_the_dead(it: History) -> None:
    root = it.emit(4, (1,))
    it.lives[1].dead = True
    it.receive(root, 1)


def one_key_two_tasks(it: History) -> None:
    it.emit(4, (1,), word="a")
    it.emit(4, (2,), word="a")


def all_but_one(it: History) -> None:
    it.emit(4, (1,), stream="side")


def ended_twice(it: History) -> None:
    it.checker.ended(it.lives[1])
    it.checker.ended(it.lives[1])


def never_answered(it: History) -> None:
    it.emit(4, (1,), msg_id="a")
    it.checker.check_end(faultless=False)


def lost_without_a_fault(it: History) -> None:
    it.emit(4, (1,))
    it.checker.check_end(faultless=True)


def failed_without_a_cause(it: History) -> None:
    root = it.emit(4, (1,), msg_id="a")
    it.receive(root, 1)
    it.checker.now += 2.0  # its news has had the time to arrive
    it.answer(root, acked=False)
    it.checker.check_end(faultless=True)


def ended_too_early(it: History) -> None:
    root = it.emit(4, (1,))
    for life in it.lives.values():
        it.checker.ended(life)
    it.receive(root, 1)
    it.checker.check_end(faultless=True)


def never_ended(it: History) -> None:
    it.checker.check_end(faultless=True)


WRONG: list[tuple[Callable[[History], None], str]] = [
    (acked_before_it_arrives, "was acked, but task 1 never received number 1"),
    (acked_before_a_bolt_acks, "was acked, but count (task 1 in i1#1) has not acked number 1"),
    (acked_before_a_descendant_arrives, "was acked, but task 3 never received number 2"),
    (answered_twice, "on stream 'default' was failed, and acked before that"),
    (answered_to_the_successor, "words (task 4 in i4#2) hears of message 1, which it did not emit"),
    (received_twice, "which count (task 1 in i1#1) had received before"),
    (received_out_of_order_across_streams, "after number 2 of the same task"),
    (received_elsewhere, "count (task 2 in i2#1) received number 1"),
    (received_from_nobody, "received number 77, which task 4 never sent"),
    (received_by_the_dead, "and is dead"),
    (one_key_two_tasks, "went to the tasks [2] of 'count', expected [1] by its FIELDS grouping"),
    (all_but_one, "went to the tasks [1] of 'count', expected [1, 2] by its ALL grouping"),
    (ended_twice, "end_of_input of count (task 1 in i1#1) was called a second time"),
    (never_answered, "was never answered"),
    (lost_without_a_fault, "never received number 1"),
    (failed_without_a_cause, "failed, though every bolt had acked by then"),
    (ended_too_early, "after its end of input"),
    (never_ended, "end_of_input of count (task 1 in i1#1) was never called"),
]


@pytest.mark.parametrize(("happens", "words"), WRONG, ids=[h.__name__ for h, _ in WRONG])
def test_a_broken_promise_is_found(happens: Callable[[History], None], words: str) -> None:
    it = History()
    happens(it)
    assert words in it.checker.problem


def test_a_good_history_is_no_problem() -> None:
    it = History()
    root = it.emit(4, (1,), msg_id="a")
    other = it.emit(4, (1, 2), msg_id="b", stream="side")
    it.receive(root, 1)
    it.receive(other, 1)
    it.receive(other, 2)
    child = it.emit(1, (3,), anchors=((root, 1), (other, 1)))
    it.receive(child, 3)
    it.answer(other)
    it.answer(root)
    for task in (1, 2, 3):
        it.checker.ended(it.lives[task])
    it.checker.check_end(faultless=True)
    assert it.checker.problem == ""
    assert it.checker.statistics() == {"emitted": 3, "received": 4, "acked": 2, "failed": 0}


def test_what_the_dead_had_pending_needs_no_answer() -> None:
    it = History()
    it.emit(4, (1,), msg_id="a")
    it.restart(4)
    it.checker.check_end(faultless=False)
    assert it.checker.problem == ""


def test_what_was_sent_in_the_middle_of_a_death_may_arrive() -> None:
    it = History()
    emission = it.checker.emits(it.lives[4], "default")
    it.receive(emission, 1)
    assert it.checker.problem == ""
