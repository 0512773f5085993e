"""Belongings: every process of one worker, watched and signalled through pidfds.

What belongs to a worker, and why, is told in `storm_py.supervisor.launcher`, whose part this is.
"""

from __future__ import annotations

import os
import select
import signal

from .process_table import (
    Identity,
    all_processes,
    descendants,
    has_in_environment,
    open_process,
    send_signal,
)


class Belongings:
    """The processes of one worker that are known; `look` finds more."""

    def __init__(self, main: Identity | None, marker: bytes, epoll: select.epoll) -> None:
        self._main = main
        self._marker = marker
        self._epoll = epoll
        #: pidfd of each process that has not ended as far as is known
        self._fds: dict[Identity, int] = {}
        self._killing = False
        if main is not None:
            self._add(main)

    def _add(self, identity: Identity) -> None:
        if identity in self._fds:
            return
        fd = open_process(identity)
        if fd is not None:
            self._fds[identity] = fd
            self._epoll.register(fd, select.EPOLLIN)

    def _remove(self, identity: Identity) -> None:
        fd = self._fds.pop(identity)
        self._epoll.unregister(fd)
        os.close(fd)

    def close(self) -> None:
        """Watch none any more."""
        for identity in list(self._fds):
            self._remove(identity)

    @property
    def main_has_ended(self) -> bool:
        """Whether the main process has ended, as far as `ended` was told."""
        return self._main not in self._fds

    def ended(self, fds: set[int]) -> None:
        """The processes of these pidfds have ended, those that are of this worker."""
        for identity in [identity for identity, fd in self._fds.items() if fd in fds]:
            self._remove(identity)

    def look(self) -> None:
        """Find all that belongs to the worker now."""
        table = all_processes()
        # One that has ended and is not reaped still holds the number of its group and session.
        main_pid = 0
        roots = set()
        for info in table:
            if info.identity == self._main:
                main_pid = info.identity.pid
            if info.identity in self._fds or info.identity == self._main:
                roots.add(info.identity.pid)
        for info in table:
            pid = info.identity.pid
            if (main_pid and main_pid in (info.group, info.session)) or has_in_environment(
                pid, self._marker
            ):
                roots.add(pid)
        mine = (roots | descendants(table, roots)) - {os.getpid()}
        for info in table:
            if info.identity.pid in mine and not info.ended:
                self._add(info.identity)

    def are_gone(self) -> bool:
        """Whether none is left; looks for more when all that were known have ended."""
        if self._fds:
            return False
        self.look()
        if self._killing and self._fds:
            self.kill()  # born while the others were killed
        return not self._fds

    def terminate_main(self) -> None:
        """Ask the main process to end."""
        if self._main is not None and self._main in self._fds:
            send_signal(self._fds[self._main], signal.SIGTERM)

    def kill(self) -> None:
        """End all that are known, and from now on each that is found."""
        self._killing = True
        for fd in self._fds.values():
            send_signal(fd, signal.SIGKILL)
