"""Fork server: `python -m storm_py.runtime.fork_server` - where instances come from.

A process of its own, started before anything else of the worker, single-threaded and without
sockets of ZeroMQ, so that forking it is safe at any time. It has imported what every instance
needs, so an instance starts in tens of milliseconds and shares that memory. Orders come as lines of
JSON on standard input, news of deaths go out on standard output; when the worker dies it dies too,
and its instances with it.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from storm_py.processes import describe_exit, die_with_parent

from .become_instance import run_instance
from .instance_spec import InstanceSpec
from .process import (
    collect_rarely,
    leave_terminal_signals_to_parent,
    redirect,
)


class ForkServer:
    """Forks instances on order and tells of their deaths."""

    def __init__(self) -> None:
        self._children: dict[int, tuple[int, int]] = {}
        self._orders = b""
        self._wakeup, self._wakeup_write = os.pipe()
        for fd in (self._wakeup, self._wakeup_write, 0):
            os.set_blocking(fd, False)

    def run(self) -> None:
        """Serve until standard input ends."""
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        selector = selectors.DefaultSelector()
        selector.register(0, selectors.EVENT_READ)
        selector.register(self._wakeup, selectors.EVENT_READ)
        open_ = True
        while open_ or self._children:
            for key, _ in selector.select():
                data = os.read(key.fd, 65536)
                if key.fd == self._wakeup:
                    self._reap()
                elif data:
                    self._take(data)
                else:
                    open_ = False
                    selector.unregister(0)

    def _take(self, data: bytes) -> None:
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "kill" in order:
                self._kill(*order["kill"])
            else:
                self._fork(order)

    def _kill(self, instance: int, incarnation: int) -> None:
        """Kill a child, unless it is reaped already: only who reaps knows whose a number is."""
        for pid, child in self._children.items():
            if child == (instance, incarnation):
                os.kill(pid, signal.SIGKILL)

    def _fork(self, order: dict[str, Any]) -> None:
        spec = InstanceSpec(**order["spec"])
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_instance(spec, parent, Path(order["out"]), Path(order["err"]))
        self._children[pid] = (spec.instance, spec.incarnation)

    def _become_instance(self, spec: InstanceSpec, parent: int, out: Path, err: Path) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent(parent)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            redirect(out, err)
            code = run_instance(spec)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            instance, incarnation = self._children.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            news = {
                "instance": instance,
                "incarnation": incarnation,
                "reason": f"process {pid} {describe_exit(code)}",
            }
            os.write(1, json.dumps(news).encode() + b"\n")


def main() -> None:
    """Entry point; the only argument is the parent's process id."""
    leave_terminal_signals_to_parent()
    die_with_parent(int(sys.argv[1]))
    server = ForkServer()
    collect_rarely()
    gc.collect()
    gc.freeze()
    server.run()


if __name__ == "__main__":
    main()
