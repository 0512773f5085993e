"""A run of a topology as its operator sees it: snapshots, the result, and who is told.

Shared by the modes that run a topology from one command (`storm_py.local` with processes,
`storm_py.inline` in one thread) and by whatever shows them (`storm_py.cli`). Values only; they know
no terminal and no process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from storm_py.wire.control import ErrorReport

Phase = Literal["starting", "running", "draining", "stopping", "done"]


@dataclass(frozen=True, slots=True)
class ComponentFigures:
    """What the executors of one component have done since the start of the run.

    `executed` counts input tuples, `emitted` tuples that user code emitted, `queued` rows that wait
    for the component in stream managers and instances. `acked` and `failed` are the message ids
    that a spout was told of; they are not counted for bolts, whose acks are merged at once.
    """

    component_id: str
    kind: Literal["spout", "bolt"]
    executors: int
    tasks: int
    executed: int
    emitted: int
    queued: int
    acked: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The run at one moment; `secs` since its spouts were activated (0 before)."""

    topology_id: str
    phase: Phase
    secs: float
    workers: int
    components: tuple[ComponentFigures, ...]
    restarts: int
    errors: int


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended.

    `failed`: user code raised, or a component could not start. `interrupted`: somebody stopped it
    before its input ended. `forced`: it was not drained, so tuples were left behind. `lost`: why
    figures may be short of the input, one sentence each, empty for a run without accidents.
    """

    final: Snapshot
    start_secs: float
    failed: bool
    interrupted: bool
    forced: bool
    lost: tuple[str, ...]
    log_dir: str | None

    def to_dict(self) -> Mapping[str, object]:
        """The result as plain values, for `--json`."""
        final = self.final
        return {
            "topology": final.topology_id,
            "secs": round(final.secs, 3),
            "start_secs": round(self.start_secs, 3),
            "workers": final.workers,
            "failed": self.failed,
            "interrupted": self.interrupted,
            "forced": self.forced,
            "restarts": final.restarts,
            "errors": final.errors,
            "lost": list(self.lost),
            "components": {
                c.component_id: {
                    "kind": c.kind,
                    "executors": c.executors,
                    "tasks": c.tasks,
                    "executed": c.executed,
                    "emitted": c.emitted,
                    "queued": c.queued,
                    **({"acked": c.acked, "failed": c.failed} if c.kind == "spout" else {}),
                }
                for c in final.components
            },
        }


class Observer(Protocol):
    """Who is told what happens during a run; called on the thread of the run, must not block."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """Fresh figures, a few times a second while something happens."""

    def error(self, error: ErrorReport) -> None:
        """User code raised, or a component could not start."""

    def log(self, level: int, source: str, text: str) -> None:
        """A log record of WARNING or above; `source` says component and task.

        Inline also what `topology.debug` logs, at INFO, since no instance has a file there; and, on
        another thread, that user code does not come back.
        """

    def output(self, source: str, line: str) -> None:
        """A line that user code printed."""

    def event(self, text: str) -> None:
        """Something an operator should know: a restart, a drain that begins."""
