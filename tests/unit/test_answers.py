"""What became of its trees reaches a living spout, also where its link is between two sessions."""

from __future__ import annotations

from collections.abc import Sequence

from storm_py.core.roots import Roots
from storm_py.engine.stream_manager_core import StreamManagerCore
from storm_py.wire.acks import AckRecords, AckResults, encode_acks
from storm_py.wire.control import FailPending, LinkBroken, Welcome
from storm_py.wire.frames import message_header
from tests.builders import Numbers, all_in_words, control_message, hello
from tests.manager import ONE_WORKER, TWO_WORKERS, Manager, linked, ours, said

Bytes = tuple[bool, str, bytes]


class Spout:
    """The instance of a spout `task` in the hands of a test; its own session never breaks."""

    def __init__(self, core: StreamManagerCore, task: int, peer: str, session: int) -> None:
        self.core = core
        self._task = task
        self._peer = peer
        self._session = session
        self._seq = 0
        self._roots = Roots(task, Numbers())

    def _says(self, records: AckRecords) -> Sequence[Bytes]:
        self._seq += 1
        frame = encode_acks(1, self._task, self._task, 7, records)
        sends = self.core.on_data(message_header(self._session, self._seq) + frame, 0.0)
        self.core.check()
        return sends

    def emits(self) -> int:
        """A tree begins, and nobody tells the spout anything about it: its root."""
        root = self._roots.next()
        assert self._says(AckRecords(init_roots=[root], init_values=[5])) == []
        return root

    def acks(self, root: int) -> Sequence[Bytes]:
        """The last tuple of a tree was acked."""
        return self._says(AckRecords(ack_roots=[root], ack_values=[5]))

    def fails(self, root: int) -> Sequence[Bytes]:
        """A tuple of a tree was failed."""
        return self._says(AckRecords(fail_roots=[root]))

    def resets(self, root: int) -> Sequence[Bytes]:
        """A bolt asked for more time for a tree."""
        return self._says(AckRecords(reset_roots=[root]))

    def welcomes(self, session: int) -> Sequence[Bytes]:
        """It accepts a session of the stream manager."""
        sends = self.core.on_control(control_message(self._session, Welcome(session)), 0.0)
        self.core.check()
        return sends

    def answer(self, session: int, results: AckResults) -> Bytes:
        """The first data message of a session, with these results."""
        frame = encode_acks(0, self._task, self._task, 0, results)
        return True, self._peer, message_header(session, 1) + frame


def between_two_sessions() -> tuple[Manager, Spout]:
    """The spout of task 2 has lost something of session 102, and 103 is not welcomed yet."""
    manager = linked()
    greeting = [said("i2", 103, ours()), said("i2", 103, Welcome(22))]
    assert manager.hears(22, LinkBroken(102)) == greeting
    return manager, Spout(manager.core, 2, "i2", 22)


def test_results_go_to_the_spout_at_once_where_its_link_is_open() -> None:
    spout = Spout(linked().core, 2, "i2", 22)
    root = spout.emits()
    assert spout.acks(root) == [spout.answer(102, AckResults(complete=[root]))]


def test_results_wait_for_the_welcome_of_its_new_session() -> None:
    manager, spout = between_two_sessions()
    done, failed, renewed = spout.emits(), spout.emits(), spout.emits()
    assert [*spout.acks(done), *spout.fails(failed), *spout.resets(renewed)] == []
    results = AckResults([done], [failed], [renewed])
    assert spout.welcomes(103)[0] == spout.answer(103, results)
    assert manager.core.statistics().unroutable == 0


def test_they_wait_for_the_welcome_of_the_first_one() -> None:
    manager = Manager(ONE_WORKER)
    manager.connect("i2")
    manager.hears(22, hello("i2"))
    spout = Spout(manager.core, 2, "i2", 22)
    root = spout.emits()
    assert spout.acks(root) == []
    assert spout.welcomes(101)[0] == spout.answer(101, AckResults(complete=[root]))


def test_they_outlast_a_link_that_breaks_before_it_was_open() -> None:
    manager, spout = between_two_sessions()
    root = spout.emits()
    assert spout.acks(root) == []
    manager.connect("i2")
    assert spout.welcomes(104)[0] == spout.answer(104, AckResults(complete=[root]))


def test_they_are_told_once() -> None:
    manager, spout = between_two_sessions()
    root = spout.emits()
    spout.acks(root)
    spout.welcomes(103)
    manager.hears(22, LinkBroken(103))
    assert [sent for sent in spout.welcomes(104) if sent[0]] == []


def test_only_the_last_word_about_a_tree_waits() -> None:
    _, spout = between_two_sessions()
    root = spout.emits()
    for _ in range(9):
        assert spout.resets(root) == []
    assert spout.acks(root) == []
    assert spout.welcomes(103)[0] == spout.answer(103, AckResults(complete=[root]))


def test_they_wait_no_longer_than_their_trees_may_be_pending() -> None:
    """That is two message timeouts behind the last renewal."""
    for periods, waits in ((2, True), (3, False)):
        manager, spout = between_two_sessions()
        root = spout.emits()
        spout.acks(root)
        for _ in range(periods):
            manager.core.rotate()
        answers = [spout.answer(103, AckResults(complete=[root]))] if waits else []
        assert [sent for sent in spout.welcomes(103) if sent[0]] == answers


def test_a_dead_spout_has_no_use_for_them() -> None:
    manager, spout = between_two_sessions()
    root = spout.emits()
    assert spout.acks(root) == []
    manager.disconnect("i2", gone=1)
    manager.connect("i2")
    manager.hears(23, hello("i2", 2))
    successor = Spout(manager.core, 2, "i2", 23)
    assert [sent for sent in successor.welcomes(104) if sent[0]] == []


def test_of_a_dead_spout_they_are_counted_and_dropped() -> None:
    """The peer of its bolts is another one: they live."""
    manager = linked()
    root = Spout(manager.core, 2, "i2", 22).emits()
    manager.disconnect("i2", gone=1)
    bolt = Spout(manager.core, 2, "i1", 11)
    assert bolt.acks(root) == []
    assert manager.core.statistics().unroutable == 1


def test_that_all_it_waits_for_is_lost_waits_as_well() -> None:
    """The other worker dies while the link of words, task 3 of i3, is between two sessions."""
    manager = Manager(TWO_WORKERS)
    manager.link("i3", 33, 101)
    manager.link("s1", 77, 102)
    manager.hears(33, LinkBroken(101))
    assert manager.disconnect("s1", gone=1) == []
    spout = Spout(manager.core, 3, "i3", 33)
    failed = said("i3", 103, FailPending())
    assert all_in_words(spout.welcomes(103))[0] == failed
    manager.hears(33, LinkBroken(103))
    assert failed not in all_in_words(spout.welcomes(104))


def test_a_dead_spout_has_lost_it_anyway() -> None:
    manager = Manager(TWO_WORKERS)
    manager.link("i3", 33, 101)
    manager.link("s1", 77, 102)
    manager.hears(33, LinkBroken(101))
    manager.disconnect("s1", gone=1)
    manager.disconnect("i3", gone=1)
    manager.connect("i3")
    manager.hears(34, hello("i3", 2))
    words = all_in_words(Spout(manager.core, 3, "i3", 34).welcomes(104))
    assert said("i3", 104, FailPending()) not in words
