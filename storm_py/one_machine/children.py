"""Children: the daemons of a cluster as child processes, each in a process group of its own.

A Ctrl-C of the terminal reaches only the cluster, which ends them in order. They die with the
cluster whatever it dies of; the workers of supervisors do not. What a daemon says comes through one
pipe, in lines; a daemon that has ended is told once everything is read that it has said.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from storm_py import processes

from .plan import Daemon

__all__ = ["COMMAND", "Children", "Exited", "Line"]

#: What the arguments of a daemon follow; the folder it is called in is none of its modules'.
COMMAND: Final = (sys.executable, "-P", "-m", "storm_py")
_READ_BYTES: Final = 65536
#: A line that is longer is shown in parts.
_LINE_BYTES: Final = 65536


@dataclass(frozen=True, slots=True)
class Line:
    """A daemon has said this."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Exited:
    """A daemon has ended, and `how` it did."""

    name: str
    how: str


Told: TypeAlias = Line | Exited


@dataclass(slots=True)
class _Child:
    name: str
    process: subprocess.Popen[bytes]
    pidfd: int
    said: bytearray = field(default_factory=bytearray)

    @property
    def pipe(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()


class Children:
    """For the main thread: children die with the thread that starts them."""

    def __init__(self, selector: selectors.BaseSelector, command: Sequence[str] = COMMAND) -> None:
        """Registers with the selector, `self` being the data of its keys."""
        self._selector = selector
        self._command = tuple(command)
        self._children: dict[str, _Child] = {}

    def start(self, daemon: Daemon) -> None:
        """Start a daemon that does not run; OSError if that is not possible."""
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", processes.__file__, str(os.getpid())),
                *self._command,
                *daemon.arguments,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            process_group=0,
        )
        child = _Child(daemon.name, process, os.pidfd_open(process.pid))
        os.set_blocking(child.pipe, False)
        self._children[daemon.name] = child
        self._selector.register(child.pipe, selectors.EVENT_READ, self)
        self._selector.register(child.pidfd, selectors.EVENT_READ, self)

    def signal(self, name: str, number: int) -> None:
        """Send a signal; nothing happens if the daemon has ended."""
        if name in self._children:
            self._children[name].process.send_signal(number)

    def pids(self) -> dict[str, int]:
        """The process of each daemon that runs."""
        return {name: child.process.pid for name, child in self._children.items()}

    def take(self, fd: int) -> list[Told]:
        """What a descriptor that is readable has to tell."""
        for child in self._children.values():
            if fd == child.pipe:
                return self._read(child)
            if fd == child.pidfd:
                return self._end(child)
        return []  # told together with another one

    def close(self) -> None:
        """Kill what still runs."""
        for child in list(self._children.values()):
            child.process.kill()
            self._end(child)

    def _read(self, child: _Child) -> list[Told]:
        """The lines that are complete; the pipe is watched no more once it is closed."""
        try:
            data = os.read(child.pipe, _READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            if child.pipe in self._selector.get_map():
                self._selector.unregister(child.pipe)
            return self._rest(child)
        child.said += data
        *lines, rest = bytes(child.said).split(b"\n")
        child.said = bytearray(rest)
        told: list[Told] = [Line(child.name, _text(line)) for line in lines]
        return told + (self._rest(child) if len(rest) > _LINE_BYTES else [])

    def _rest(self, child: _Child) -> list[Told]:
        rest, child.said = bytes(child.said), bytearray()
        return [Line(child.name, _text(rest))] if rest else []

    def _end(self, child: _Child) -> list[Told]:
        told: list[Told] = []
        while found := self._read(child):  # not to the end: somebody else may hold the pipe
            told += found
        told += self._rest(child)
        status = child.process.wait()
        for fd in (child.pipe, child.pidfd):
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
        assert child.process.stdout is not None
        child.process.stdout.close()
        os.close(child.pidfd)
        del self._children[child.name]
        return [*told, Exited(child.name, processes.describe_exit(status))]


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r")
