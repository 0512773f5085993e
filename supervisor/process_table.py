"""Processes of this machine: which is which, who descends from whom, and signals that cannot miss.

A process id is used again by the kernel. What does not come back is the pair of it and the time of
the start, counted by the kernel from the boot, together with the id of that boot: that is an
`Identity`. (The time of day of a start, as psutil gives it, moves when the clock is set.) A signal
goes through a pidfd that was opened first and compared with the identity then.

Linux only: /proc and pidfds. It knows nothing of workers.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Identity:
    """One process, in the life of this machine."""

    pid: int
    #: When it was started, in clock ticks since the boot.
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One line of the table of processes."""

    identity: Identity
    parent: int
    group: int
    session: int
    #: Whether it has ended, and only waits for its parent to ask.
    ended: bool


@cache
def boot_id() -> str:
    """The id of this boot of the machine."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def process_info(pid: int) -> ProcessInfo | None:
    """What the kernel says of a process, None if there is none."""
    try:
        line = (_PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in parentheses and may hold any character: count from the last of them.
    fields = line[line.rindex(b")") + 2 :].split()
    identity = Identity(pid, int(fields[19]), boot_id())
    return ProcessInfo(
        identity, int(fields[1]), int(fields[2]), int(fields[3]), fields[0] in (b"Z", b"X")
    )


def uptime_secs(identity: Identity) -> float:
    """How long ago a process of this boot was started."""
    started_secs = identity.start_ticks / os.sysconf("SC_CLK_TCK")
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started_secs)


def all_processes() -> list[ProcessInfo]:
    """Every process there is, those that have ended included."""
    pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    return [info for info in map(process_info, pids) if info is not None]


def has_in_environment(pid: int, entry: bytes) -> bool:
    """Whether `NAME=value` is in the environment that a process was started with.

    False for processes of other users, and for those that do not let anybody look.
    """
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return False
    return entry in environment.split(b"\0")


def descendants(table: Iterable[ProcessInfo], roots: set[int]) -> set[int]:
    """Process ids of all that descend from `roots`, without these."""
    children: dict[int, list[int]] = {}
    for info in table:
        children.setdefault(info.parent, []).append(info.identity.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found and child not in roots:
                found.add(child)
                waiting.append(child)
    return found


def open_process(identity: Identity) -> int | None:
    """A pidfd of this very process, None if it is gone. It is readable once the process ended."""
    try:
        fd = os.pidfd_open(identity.pid)
    except OSError as error:
        if error.errno not in (errno.ESRCH, errno.EINVAL):  # EINVAL: it is a thread of another now
            raise
        return None
    info = process_info(identity.pid)
    if info is None or info.identity != identity:
        os.close(fd)
        return None
    return fd


def send_signal(fd: int, number: signal.Signals) -> None:
    """Signal the process of a pidfd; nothing happens if it has ended."""
    try:
        signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return


def is_alive(identity: Identity) -> bool:
    """Whether this very process has not ended."""
    fd = open_process(identity)
    if fd is None:
        return False
    try:
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        return not poller.poll(0)
    finally:
        os.close(fd)
