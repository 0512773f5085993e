"""A task of a FileSpout in the hands of a test: its clock, its collector, its death."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storm_py import Config, TopologyContext
from storm_py.spouts import FileSpout
from tests.builders import bolt, plan_of, spout

RUN_ID = "test-1-1"


class Lines(FileSpout):
    """Lines of JSON, as a user may write it."""

    def values(self, line_number: int, line: Any) -> Sequence[object]:
        return [json.loads(line)]


class SpoutTask:
    """One task, its collector and its clock; `step_secs` is what each look at the clock takes."""

    def __init__(
        self,
        folder: Path,
        index: int = 0,
        tasks: int = 1,
        pending: int | None = None,
        file: str = "text",
        offsets: str = "offsets",
        kind: type[FileSpout] = FileSpout,
        step_secs: float = 0.0,
        **options: Any,
    ) -> None:
        self.now = 0.0
        self.ended = False
        self.errors: list[str] = []
        self.seen: set[int] = set()
        self._emitted: list[tuple[int, list[object]]] = []
        self._step_secs = step_secs
        self._dead = False
        self.spout = kind(folder / file, folder / offsets, **options)
        self.spout._clock = self._look
        self.offsets = folder / offsets / f"source-{index}.json"
        plan = plan_of(spout("source", "number line", tasks=tasks), bolt("echo", "source"))
        task = next(e for e in plan.executors if e.component_id == "source").tasks[0] + index
        context = TopologyContext(RUN_ID, plan.topology, plan.task_to_component, task, 6700, (), {})
        conf = {Config.TOPOLOGY_MAX_SPOUT_PENDING: pending}
        self.spout.open(conf, context, self)

    def _look(self) -> float:
        self.now += self._step_secs
        return self.now

    # ---- the collector -------------------------------------------------------------------------

    def emit(
        self, values: Sequence[object], msg_id: object = None, stream: str = "default"
    ) -> Sequence[int]:
        assert not self.ended
        assert isinstance(msg_id, int)
        self._emitted.append((msg_id, list(values)))
        self.seen.add(msg_id)
        return ()

    def emit_direct(self, task_id: int, values: Sequence[object], *rest: Any, **more: Any) -> None:
        raise AssertionError("a FileSpout has no direct stream")

    def end_of_input(self) -> None:
        assert not self.ended
        self.ended = True

    def report_error(self, error: BaseException) -> None:
        self.errors.append(str(error))

    # ---- what a test does ----------------------------------------------------------------------

    def spins(self, most: int = 1000) -> list[tuple[int, list[object]]]:
        """Calls next_tuple until it emits nothing; the emitted, each with its message id."""
        found: list[tuple[int, list[object]]] = []
        while not self.ended and len(found) < most:
            self.spout.next_tuple()
            if not self._emitted:
                break
            found += self._emitted
            self._emitted.clear()
        return found

    def lines(self) -> list[object]:
        """The same, but only the lines."""
        return [values[-1] for _, values in self.spins()]

    def saves(self) -> None:
        """Write the offset file now."""
        self.spout._save(self.now)

    def release(self) -> None:
        """Die: the kernel closes what was open, nothing else happens."""
        if not self._dead:
            self._dead = True
            self.spout._lock.close()
            self.spout._reader.close()

    def close(self) -> None:
        """End in order."""
        self._dead = True
        self.spout.close()


def first_refusal(folder: Path, **options: Any) -> str:
    """The message of the error that `open` raises."""
    with pytest.raises((OSError, ValueError)) as caught:
        SpoutTask(folder, **options)
    return str(caught.value)
