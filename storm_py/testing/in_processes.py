"""complete_topology in real processes: the same spies, which write down what they see.

Each task appends to a file of its own in a folder of the run; the test reads them when the run is
over. The run itself is `storm_py.local.LocalRun`, as behind ``storm-py local``.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Final

import cloudpickle

from storm_py.api.spec import StormTopology
from storm_py.config import Config
from storm_py.core.plan import make_plan
from storm_py.local import LocalRun
from storm_py.run import Snapshot
from storm_py.wire.control import ErrorReport

from .outcome import Outcome
from .spies import Log, spy_on
from .start import Resolved

__all__ = ["complete_in_processes"]

#: How many errors, and how many losses, a message shows.
_SHOWN: Final = 3


class _FileLog:
    """A `Log` whose columns append to a file; each process opens one of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self.emitted = _Column("emitted", self)
        self.received = _Column("received", self)
        self.acked = _Column("acked", self)
        self.failed = _Column("failed", self)
        self.raised: list[tuple[str, BaseException]] = []

    def write(self, column: str, record: object) -> None:
        if self._file is None:
            # Unbuffered: what was seen before a kill -9 counts.
            path = self._folder / f"{record.task:05}-{os.getpid()}"  # type: ignore[attr-defined]
            self._file = path.open("ab", buffering=0)
        self._file.write(cloudpickle.dumps((column, record)))


class _Column:
    """One list of a `Log`, for writing only."""

    def __init__(self, name: str, log: _FileLog) -> None:
        self._name = name
        self._log = log

    def append(self, record: object) -> None:
        self._log.write(self._name, record)


def _read(folder: Path) -> Log:
    """What all tasks wrote, task by task; of a task that was killed the last record may lack."""
    log = Log()
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            while True:
                try:
                    column, record = pickle.load(file)
                except (EOFError, pickle.UnpicklingError):
                    break
                getattr(log, column).append(record)
    return log


class _Observer:
    """Hands what components print and log to the test, and keeps errors."""

    def __init__(self) -> None:
        self.errors: list[ErrorReport] = []
        self.events: list[str] = []

    def snapshot(self, snapshot: Snapshot) -> None:
        """Nobody looks at a test while it runs."""

    def error(self, error: ErrorReport) -> None:
        self.errors.append(error)

    def log(self, level: int, source: str, text: str) -> None:
        logging.getLogger("storm_py.testing").log(level, "%s: %s", source, text)

    def output(self, source: str, line: str) -> None:
        sys.stdout.write(f"{source}: {line}\n")

    def event(self, text: str) -> None:
        self.events.append(text)


def complete_in_processes(found: Resolved, timeout_secs: float) -> tuple[Outcome, str]:
    """Run to the end; what was seen, and why it is not complete (empty if it is)."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "complete_topology(..., processes=True) was called on another than the main thread, "
            "where signals cannot be handled; call it on the main thread"
        )
    # Whoever waits longer than this waits in vain: nothing to drain.
    conf = {**found.conf, Config.STORM_PY_DRAIN_TIMEOUT_SECS: 0}
    executors = sum(spec.parallelism for spec in found.topology.components.values())
    workers = min(conf[Config.TOPOLOGY_WORKERS], executors)
    observer = _Observer()
    with tempfile.TemporaryDirectory(prefix="storm-py-test-") as name:
        folder = Path(name)
        with _importable(found.topology):
            result = LocalRun(
                topology_id=found.topology_id,
                topology=_spied(found.topology, _FileLog(folder)),
                conf=conf,
                sys_path=os.getcwd(),
                module=__name__,
                workers=workers,
                log_dir=None,
                observer=observer,
            ).run(timeout_secs)
        log = _read(folder)
    if result.interrupted:
        raise KeyboardInterrupt
    plan = make_plan(found.topology_id, found.topology, conf, workers)
    problem = ""
    # A real run may go on after an exception; a test that raises it in one thread shall here too.
    failed = result.failed or any(error.fatal for error in observer.errors)
    if failed or result.forced:
        problem = "the topology failed" if failed else "the topology is not complete"
        problem += f" (timeout_secs={timeout_secs:g}, processes=True)"
        errors = dict.fromkeys(e.traceback.strip() or e.message for e in observer.errors)
        problem = "\n- ".join([problem, *_few(list(result.lost)), *_few(list(errors))])
    return Outcome(plan, log, observer.errors), problem


def _few(texts: list[str]) -> list[str]:
    return texts if len(texts) <= _SHOWN else [*texts[:_SHOWN], f"... ({len(texts)} in all)"]


def _spied(topology: StormTopology, log: Any) -> StormTopology:
    return StormTopology(
        {
            id: replace(spec, component=spy_on(spec.component, log))
            for id, spec in topology.components.items()
        }
    )


@contextmanager
def _importable(topology: StormTopology) -> Iterator[None]:
    """Let the processes of a run find the classes of the test.

    They look in the same folders as this process. A module that nobody can import by its name, as
    test modules often are, is pickled with its classes.
    """
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    objects = [spec.component for spec in topology.components.values()]
    objects += [edge.grouping.custom for edge in topology.edges if edge.grouping.custom]
    names = {type(each).__module__ for each in objects}
    modules = [sys.modules[name] for name in names if name in sys.modules]
    by_value = [module for module in modules if not _found_by_name(module)]
    try:
        for module in by_value:
            cloudpickle.register_pickle_by_value(module)
        yield
    finally:
        for module in by_value:
            cloudpickle.unregister_pickle_by_value(module)
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _found_by_name(module: ModuleType) -> bool:
    """Whether another process with the same path would import this very file."""
    path: Any = None
    origin = None
    parts = module.__name__.split(".")
    for i in range(len(parts)):
        spec = PathFinder.find_spec(".".join(parts[: i + 1]), path)
        if spec is None:
            return False
        path, origin = spec.submodule_search_locations, spec.origin
    return origin is not None and origin == getattr(module, "__file__", None)
