"""What many tests need: waiting for a condition, and finding processes and threads left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import psutil

T = TypeVar("T")

MARKER_VARIABLE = "STORM_PY_TEST_RUN"
"""In the environment of every process that a test starts, however it came to be an orphan."""

POLL_SECS = 0.01


def wait_until(predicate: Callable[[], object], timeout: float = 10.0, what: str = "") -> None:
    """Return once `predicate()` is true; AssertionError if it is not within `timeout` seconds.

    The deadline is there for broken code only: choose it generously, a passing test never waits
    for it. `what` names the condition in the error.
    """
    deadline = time.monotonic() + timeout
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what or predicate}")
        time.sleep(POLL_SECS)


def remaining(find: Callable[[], list[T]], timeout: float) -> list[T]:
    """What `find()` still finds after `timeout` seconds; empty as soon as it finds nothing."""
    deadline = time.monotonic() + timeout
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(POLL_SECS)
    return found


def processes_since(before: set[int], marker: str) -> list[psutil.Process]:
    """Processes that this run of the tests started, directly or not, and that `before` lacks.

    A process counts if it descends from this one or carries `marker` in its environment: the
    second finds those whose parent has died. Ended children that nobody waited for count as well.
    """
    found = []
    for pid in set(psutil.pids()) - before:
        try:
            process = psutil.Process(pid)
            if psutil.Process() in process.parents() or (
                process.environ().get(MARKER_VARIABLE) == marker
            ):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue  # gone, or another user's
    return found


def describe_process(process: psutil.Process) -> str:
    """Process id, state and command line, as far as they can still be read."""
    try:
        status = process.status()
        command = "" if status == psutil.STATUS_ZOMBIE else " ".join(process.cmdline())
    except psutil.Error:
        return f"process {process.pid}"
    return f"process {process.pid} ({status}) {command}".rstrip()


def end_process(process: psutil.Process) -> None:
    """Kill a process that was left behind, and reap it if it is a child of this one."""
    try:
        process.kill()
        process.wait(timeout=5)
    except (psutil.NoSuchProcess, psutil.TimeoutExpired):
        return


def threads_since(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads alive now that `before` lacks."""
    return [thread for thread in threading.enumerate() if thread not in before]
