"""Sampling: on which lines the processes of a run spend their CPU time, and what these are for.

A run whose variables are `variables(folder)` notes in each of its processes, every two milliseconds
of CPU time, the line that the main thread is on, as long as that is within the loop of an
instance or of a stream manager; calls into C count for the line that calls. What ZeroMQ's threads
take is the rest of the process's CPU time. Processes may be killed at the end, so they write what
they have noted now and then. `read` sums it up by part, `part_of` says what a line belongs to.
"""

from __future__ import annotations

import atexit
import json
import linecache
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_FOLDER = "STORM_PY_BENCH_SAMPLES"
_HERE = Path(__file__).parent
_INTERVAL_SECS = 0.002
_SAMPLES_PER_WRITING = 100
#: The functions that are the loops, by the end of their file's name.
_LOOPS = ("storm_py/runtime/instance.py", "storm_py/runtime/stream_manager.py")

OTHER_THREADS = "ZeroMQ's threads"
#: What CPU time goes into, in the order in which it is shown.
PARTS = (
    "your code",
    "emit and grouping",
    "packing and unpacking",
    "tracking",
    "running tuples",
    "frames and routing",
    "flow control",
    "sockets",
    OTHER_THREADS,
    "the rest",
)
_PART_OF_FILE = {
    "wire/values.py": "packing and unpacking",
    "wire/standard.py": "packing and unpacking",
    "wire/serializers.py": "packing and unpacking",
    "wire/acks.py": "tracking",
    "engine/acking.py": "tracking",
    "engine/trees.py": "tracking",
    "engine/answers.py": "tracking",
    "engine/spouts.py": "running tuples",
    "core/acker.py": "tracking",
    "core/pending.py": "tracking",
    "core/roots.py": "tracking",
    "api/collector.py": "emit and grouping",
    "engine/keyed.py": "emit and grouping",
    "engine/emitters.py": "emit and grouping",
    "engine/tasks.py": "running tuples",
    "engine/slices.py": "running tuples",
    "engine/calls.py": "running tuples",
    "engine/reuse.py": "running tuples",
    "core/pressure.py": "flow control",
    "engine/announcements.py": "flow control",
    "engine/allowances.py": "flow control",
    "engine/credits.py": "flow control",
    "wire/frames.py": "frames and routing",
    "wire/arrays.py": "frames and routing",
    "core/batching.py": "frames and routing",
    "engine/framing.py": "frames and routing",
    "engine/intake.py": "frames and routing",
    "engine/instance_core.py": "frames and routing",
    "engine/links.py": "frames and routing",
    "engine/outflow.py": "frames and routing",
    "engine/parcels.py": "frames and routing",
    "engine/sessions.py": "frames and routing",
    "engine/stream_manager_core.py": "frames and routing",
}
_TRACKING_WORDS = ("root", "edge", "xor", "pending", "acked", "anchors")
#: Lines elsewhere that deal with acks, and with the columns of roots and edges in a frame.
_TRACKING_TEXTS = ("gathered[root]", 'array("Q"', 'cast("Q")')
_SOCKET_WORDS = ("recv", "receive(", ".send(", ".poll(")


def part_of(file: str, text: str) -> str:
    """What a line of this file, with this text, is for."""
    if file.startswith("<storm-py emit"):
        if "pack(" in text:
            return "packing and unpacking"
        tracking = any(word in text for word in _TRACKING_WORDS)
        return "tracking" if tracking else "emit and grouping"
    if "/benchmarks/" in file:
        return "your code"
    if "/site-packages/zmq/" in file:
        return "sockets"
    if "/site-packages/msgpack/" in file:
        return "packing and unpacking"
    if any(word in text for word in _TRACKING_TEXTS):
        return "tracking"
    module = file.rpartition("/storm_py/")[2]
    if module.startswith("runtime/"):
        return "sockets" if any(word in text for word in _SOCKET_WORDS) else "the rest"
    return _PART_OF_FILE.get(module, "the rest")


def variables(folder: Path) -> dict[str, str]:
    """The environment variables of a run that is sampled; it leaves its notes in the folder."""
    return {
        _FOLDER: str(folder),
        "PYTHONPATH": os.pathsep.join([str(_HERE / "sampled"), str(_HERE.parent)]),
    }


# ---- in the processes of the run -----------------------------------------------------------------


class Notes:
    """What one process has noted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._secs: defaultdict[tuple[str, int], float] = defaultdict(float)
        self._samples = 0
        self._thread_secs = time.thread_time()
        self._process_secs = time.process_time()
        self._other_secs = 0.0

    def sample(self, number: int, frame: FrameType | None) -> None:
        """The handler of the timer's signal."""
        thread, process = time.thread_time(), time.process_time()
        secs, all_secs = thread - self._thread_secs, process - self._process_secs
        self._thread_secs, self._process_secs = thread, process
        if frame is None or not in_a_loop(frame):
            return
        line = frame.f_lineno or 0  # None within what the compiler has added
        self._secs[frame.f_code.co_filename, line] += secs
        self._other_secs += max(0.0, all_secs - secs)
        self._samples += 1
        if self._samples % _SAMPLES_PER_WRITING == 0:
            self._write()

    def _write(self) -> None:
        parts: defaultdict[str, float] = defaultdict(float)
        # A copy: the next signal may come meanwhile.
        for (file, line), secs in dict(self._secs).items():
            parts[part_of(file, linecache.getline(file, line))] += secs
        parts[OTHER_THREADS] += self._other_secs
        notes = {"command": sys.orig_argv, "samples": self._samples, "secs": parts}
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(notes))
        part.replace(self._path)


def in_a_loop(frame: FrameType) -> bool:
    """Whether the frame was called by the loop of an instance or a stream manager."""
    at: FrameType | None = frame
    while at is not None:
        if at.f_code.co_name == "run" and at.f_code.co_filename.endswith(_LOOPS):
            return True
        at = at.f_back
    return False


def begin() -> None:
    """Sample this process and those that it forks, if the run is a sampled one."""
    folder = os.environ.get(_FOLDER)
    if folder is None:
        return

    def start() -> None:
        signal.signal(signal.SIGPROF, Notes(Path(folder) / f"{os.getpid()}.json").sample)
        signal.setitimer(signal.ITIMER_PROF, _INTERVAL_SECS, _INTERVAL_SECS)

    start()
    # While Python ends, its handler is gone before the timer is, and the signal would kill.
    atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)
    os.register_at_fork(after_in_child=start)


# ---- afterwards ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Noted:
    """What one process has noted: its command line, and CPU seconds by part."""

    pid: int
    command: tuple[str, ...]
    secs: Mapping[str, float]


def read(folder: Path) -> Iterator[Noted]:
    """The notes that the processes of a run have left."""
    for path in sorted(folder.glob("*.json")):
        notes = json.loads(path.read_text())
        yield Noted(int(path.stem), tuple(notes["command"]), notes["secs"])
