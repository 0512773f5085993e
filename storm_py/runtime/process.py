"""What every process of a worker does first: find its streams, leave signals to its parent."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from pathlib import Path

#: A loop that is woken by data alone takes it first, if its last look at the rest is not older.
CALM_SECS = 0.02


#: Containers made since the last look for cycles before the next; Python's own 700 are three frames
#: of rows, and it found next to nothing in them for a twentieth of the time.
_GC_OBJECTS = 50_000


def collect_rarely() -> None:
    """Look for cycles less often; who is forked inherits it, and user code may set it anew."""
    gc.set_threshold(_GC_OBJECTS)


def drain_pipe(fd: int) -> None:
    """Empty a wake-up pipe."""
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        return


def run_times() -> tuple[float, float]:
    """Seconds for which the main thread has run, and could have run but had no processor.

    Both are 0 where the kernel does not say.
    """
    try:
        ran, waited, _ = Path("/proc/self/schedstat").read_bytes().split()
    except OSError:
        return 0.0, 0.0
    return int(ran) / 1e9, int(waited) / 1e9


def leave_terminal_signals_to_parent() -> None:
    """Ctrl-C goes to the whole foreground group: only the parent of a run answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def redirect(out: Path, err: Path) -> None:
    """Append standard output and standard error of this process, C libraries included, to files."""
    for path, stream, fd in ((out, sys.stdout, 1), (err, sys.stderr, 2)):
        stream.flush()
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(fd, "w", closefd=False)),
            "utf-8",
            errors="replace",
            line_buffering=True,
        )
        for fd in (1, 2)
    )
