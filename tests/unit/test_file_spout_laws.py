"""Laws of FileSpout: however acks, fails and deaths follow each other, no line is left out."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storm_py.spouts.progress import Saved
from tests.file_spouts import SpoutTask


class AnyInterleaving(RuleBasedStateMachine):
    """One task on a file of this test; the machine is the engine, and the killer."""

    @initialize(
        sizes=st.lists(st.integers(0, 3), min_size=1, max_size=12),
        index=st.integers(0, 1),
        tasks=st.integers(1, 2),
        pending=st.sampled_from([None, 1, 3]),
        ends=st.booleans(),
    )
    def begin(
        self, sizes: list[int], index: int, tasks: int, pending: int | None, ends: bool
    ) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        text = "\n".join("x" * size for size in sizes) + "\n" * ends
        (path / "text").write_text(text)
        self.index, self.tasks, self.pending = min(index, tasks - 1), tasks, pending
        lines = text.splitlines(keepends=True)
        offsets = [sum(map(len, lines[:i])) for i in range(len(lines))]
        self.unacked = set(offsets[self.index :: tasks])
        self.lines = {at: (i + 1, lines[i].rstrip("\n")) for i, at in enumerate(offsets)}
        self.on_the_way: set[int] = set()
        self.start()

    def start(self) -> None:
        path = Path(self.folder.name)
        self.task = SpoutTask(
            path, self.index, self.tasks, self.pending, save_rows=3, save_secs=10.0
        )
        self.on_the_way.clear()
        self.acked: set[int] = set()
        self.last_write = self.written()

    def written(self) -> bytes | None:
        return self.task.offsets.read_bytes() if self.task.offsets.exists() else None

    @rule(most=st.integers(1, 4))
    def next_tuple(self, most: int) -> None:
        for msg_id, (number, line) in self.task.spins(most):
            assert msg_id not in self.on_the_way, "emitted twice at a time"
            assert (number, line) == self.lines[msg_id]
            self.on_the_way.add(msg_id)

    @precondition(lambda self: self.on_the_way)
    @rule(data=st.data(), good=st.booleans())
    def answer(self, data: st.DataObject, good: bool) -> None:
        msg_id = data.draw(st.sampled_from(sorted(self.on_the_way)))
        self.on_the_way.remove(msg_id)
        if good:
            self.unacked.discard(msg_id)
            self.acked.add(msg_id)
            self.task.spout.ack(msg_id)
        else:
            self.task.spout.fail(msg_id)

    @rule(secs=st.sampled_from([0.05, 1.0, 20.0]))
    def pass_time(self, secs: float) -> None:
        self.task.now += secs

    @rule(how=st.sampled_from(["not now", "not now", "in order", "killed"]))
    def restart(self, how: str) -> None:
        if how == "in order":
            self.task.close()
        elif how == "killed":
            self.task.release()
        else:
            return
        self.start()

    @invariant()
    def what_is_stored_leaves_nothing_out(self) -> None:
        if not hasattr(self, "task"):
            return
        self.task.spout._progress.check()
        data = self.written()
        if data is None:
            return
        saved = Saved.decode(data)
        assert all(offset >= saved.lowest.offset for offset in self.unacked)
        waiting = {at.offset for at in saved.open}
        assert all(at in waiting or at >= saved.next.offset for at in self.unacked)
        if data != self.last_write:  # by this process: it would repeat nothing that was acked to it
            self.last_write = data
            assert not waiting & self.acked

    @invariant()
    def the_input_ends_only_when_all_is_acked(self) -> None:
        if hasattr(self, "task") and self.task.ended:
            assert not self.unacked

    def teardown(self) -> None:
        if not hasattr(self, "task"):
            return
        try:
            for _ in range(100):  # from here on everything is acked: it must come to its end
                self.task.now += 20.0
                self.next_tuple(1000)
                for msg_id in sorted(self.on_the_way):
                    self.on_the_way.remove(msg_id)
                    self.unacked.discard(msg_id)
                    self.task.spout.ack(msg_id)
            assert not self.unacked, "never emitted"
            assert self.task.ended
        finally:
            self.task.release()
            self.folder.cleanup()


AnyInterleaving.TestCase.settings = settings(max_examples=120, stateful_step_count=25)
TestAnyInterleaving = AnyInterleaving.TestCase
