"""`storm-py cluster` as a process, for tests that start, kill and stop it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from storm_py.one_machine.plan import HOST
from tests.helpers import wait_until

GENEROUS_SECS = 60.0


class Cluster:
    """`storm-py cluster`, running."""

    def __init__(
        self, folder: Path, program: Sequence[str], arguments: list[str], **environ: str
    ) -> None:
        self._output = folder / "output"
        with open(self._output, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, *program, "cluster", *arguments],
                stdout=output,
                stderr=output,
                env={**os.environ, **environ},
                start_new_session=True,
            )
        self.daemons: dict[str, psutil.Process] = {}

    @property
    def output(self) -> str:
        return self._output.read_text("utf-8")

    def said(self, who: str) -> list[str]:
        """What one of them, or the cluster itself, has said."""
        lines = [line.split(" | ", 1) for line in self.output.splitlines() if " | " in line]
        return [text for name, text in lines if name.strip() == who]

    def wait_said(self, text: str, times: int = 1) -> None:
        wait_until(
            lambda: self.output.count(text) >= times or self.process.poll() is not None,
            GENEROUS_SECS,
        )
        assert self.output.count(text) >= times, self.output

    def wait_up(self) -> None:
        """Return once it says that it is up."""
        self.wait_said("Ctrl-C stops everything")
        self.daemons = self.running()

    def running(self) -> dict[str, psutil.Process]:
        """Its daemons, by name."""
        found = {}
        for process in psutil.Process(self.process.pid).children():
            arguments = process.cmdline()
            if "supervisor" in arguments:
                places = [each for each in arguments if each.startswith("storm.local.dir=")]
                found[places[-1].rpartition("/")[2].strip('"')] = process
            elif "nimbus" in arguments:
                found["nimbus"] = process
            elif "dev-zookeeper" in arguments:
                found["zookeeper"] = process
        return found

    def wait(self) -> int:
        """Its exit code; all of its daemons are gone then."""
        code = self.process.wait(GENEROUS_SECS)
        psutil.wait_procs(self.daemons.values(), GENEROUS_SECS)
        assert not [name for name, process in self.daemons.items() if process.is_running()]
        return code


@contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Ports that nobody listens on, and that the kernel gives to nobody else meanwhile."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            reserved = stack.enter_context(socket.socket())
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind((HOST, 0))
            found.append(reserved.getsockname()[1])
        yield found


def settings(local_dir: Path, ports: Sequence[int]) -> list[str]:
    """What gives a cluster a folder and ports of its own: those of ZooKeeper and nimbus."""
    values = (
        f"storm.local.dir={local_dir}",
        f"storm.zookeeper.port={ports[0]}",
        f"nimbus.thrift.port={ports[1]}",
    )
    return [text for value in values for text in ("-c", value)]
