"""How a worker starts the programs of its processes.

It imports next to nothing, for the sake of `storm_py.runtime.cluster_worker`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable


def spawn(
    module: str, args: Iterable[object], stdin: int, stdout: int | None
) -> subprocess.Popen[bytes]:
    """Start a program of this package; its standard error joins that of this process.

    Its last argument is this process's id: it ends with that.
    """
    command = [sys.executable, "-P", "-m", f"storm_py.runtime.{module}"]
    return subprocess.Popen(
        [*command, *(str(arg) for arg in args), str(os.getpid())], stdin=stdin, stdout=stdout
    )


def start_fork_server() -> subprocess.Popen[bytes]:
    """Start a fork server, which takes orders and gives news through pipes."""
    return spawn("fork_server", [], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
