"""A supervisor that launches one worker, for tests that kill it: a program of its own.

`python -m tests.integration.launching LOCAL_FOLDER WORKING_FOLDER DIES`; DIES says when it kills
itself: `never` (it prints the worker's process id and waits), `before` the worker is recorded or
`after` that, in both cases before the worker's program may run.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from storm_py.supervisor.assignment import LocalAssignment
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.launcher import Launcher

ASSIGNMENT = LocalAssignment("words-1-1", 1, ((1, 2),), "c1", "ann")
WORKER = "a-worker"
PORT = 6700
#: Says that it runs, in the working folder, and goes on for as long as it may.
WAITING = ["sh", "-c", "touch ready; exec sleep 1000"]


class _Dying(Launcher):
    when = ""

    def _record(self, worker_id: str, port: int, assignment: LocalAssignment, pid: int) -> None:
        if self.when == "after":
            super()._record(worker_id, port, assignment, pid)
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Launch it."""
    local, working, dies = sys.argv[1:]
    launcher = (
        Launcher(LocalFolder(Path(local))) if dies == "never" else _Dying(LocalFolder(Path(local)))
    )
    if isinstance(launcher, _Dying):
        launcher.when = dies
    pid = launcher.launch(WORKER, PORT, ASSIGNMENT, WAITING, os.environ, Path(working))
    sys.stdout.write(f"{pid}\n")
    sys.stdout.flush()
    signal.pause()


if __name__ == "__main__":
    main()
