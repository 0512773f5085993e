"""Beginnings and ends of processes: one that dies with its parent, an end told in words.

As a program it becomes another one, which then dies with the process that started it:
`python storm_py/processes.py PARENT PROGRAM [ARGS]...`, for programs that are not written in
Python. It may import the standard library only: it is started without any other path.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

__all__ = ["describe_exit", "die_with_parent"]

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies; leave at once if it is dead already.

    Call it on the main thread of a process that was started by the main thread of its parent. What
    this process becomes by exec inherits it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit(f"parent process {parent} is gone")


def describe_exit(status: int) -> str:
    """A wait status or return code in words."""
    if status < 0:
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"was killed by signal {-status}"
    return f"exited with code {status}"


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
