"""A cluster of real daemons on this machine, by the command line: started, killed, started again.

ZooKeeper, nimbus and supervisors are processes of `storm-py`, and so is every command; each
supervisor has a storm.local.dir of its own as if it were a machine. Nothing here looks into them:
what is known of them is what they log, and the records that supervisors keep of their workers. Who
uses it ends it (`Cluster.close`), whatever has become of the daemons; workers are ended with them,
which no supervisor would do.

What flows through it is `benchmarks.flowing`.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import psutil

GENEROUS_SECS = 60.0
"""For waits that end early unless something is broken."""
POLL_SECS = 0.02
FIRST_PORT = 6700
HOST = "127.0.0.1"
_PROGRAMS = "storm_py.runtime."

SETTINGS: Mapping[str, object] = {
    # A second is the least that there is; nobody here is silent because of a network.
    "nimbus.monitor.freq.secs": 1,
    "nimbus.supervisor.timeout.secs": 5,
    "nimbus.task.timeout.secs": 6,
    "nimbus.task.launch.secs": 30,
    "nimbus.topology.blobstore.deletion.delay.ms": 0,
    "storm.zookeeper.session.timeout": 5000,
    "storm.zookeeper.connection.timeout": 30000,
    "supervisor.heartbeat.frequency.secs": 1,
    "supervisor.monitor.frequency.secs": 1,
    "supervisor.worker.timeout.secs": 10,
    "supervisor.worker.start.timeout.secs": 30,
}
"""Of a cluster that notices deaths soon."""


class Failed(AssertionError):
    """Something did not come to pass, or a command failed; what was said is in the message."""


def wait_for(condition: Callable[[], object], what: str, secs: float = GENEROUS_SECS) -> None:
    """Return once the condition holds; Failed if it does not for so long."""
    deadline = time.monotonic() + secs
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"not within {secs:g} s: {what}")
        time.sleep(POLL_SECS)


class Daemon:
    """One daemon: the command that starts it, and the process that it is now, if any."""

    def __init__(self, name: str, arguments: list[str], log: Path) -> None:
        self.name = name
        self._command = [sys.executable, "-m", "storm_py", *arguments]
        self.log = log
        self._log_start = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; it is not up by that."""
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What it has logged since its last start."""
        return self.log.read_bytes()[self._log_start :].decode(errors="replace")

    def wait_said(self, text: str) -> None:
        """Wait until it has logged this; Failed if it dies, or does not."""
        process = self._process
        assert process is not None, f"{self.name} is not started"
        wait_for(
            lambda: text in self.said or process.poll() is not None, f"{self.name} says {text!r}"
        )
        if text not in self.said:
            raise Failed(f"{self.name} ended with {process.returncode}:\n{self.said}")

    def kill(self) -> None:
        """End it as hard as it gets."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it in order; by force if it does not."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(GENEROUS_SECS / 2)
            except subprocess.TimeoutExpired:
                pass
            self.kill()


class WorkerProcess(NamedTuple):
    """A worker that runs."""

    supervisor: int
    port: int
    topology: str
    pid: int

    def children(self) -> dict[str, list[int]]:
        """The processes below it, by the last part of their program's name.

        Instances are forked and have that of their fork server; `benchmarks.oracle` knows them.
        """
        found: dict[str, list[int]] = {}
        for child in psutil.Process(self.pid).children(recursive=True):
            try:
                command = child.cmdline()
            except psutil.NoSuchProcess:  # it has just died
                continue
            for program in command:
                if program.startswith(_PROGRAMS):
                    found.setdefault(program.removeprefix(_PROGRAMS), []).append(child.pid)
        return found


class Cluster:
    """The daemons, and the commands that speak with them."""

    def __init__(
        self,
        folder: Path,
        supervisors: int = 2,
        slots: int = 2,
        settings: Mapping[str, object] = SETTINGS,
    ) -> None:
        self.folder = folder
        self._ports = ExitStack()
        self.zookeeper_port = self._free_port()
        self.config = folder / "storm.yaml"
        conf = {
            **settings,
            "nimbus.thrift.port": self._free_port(),
            "storm.local.dir": str(folder / "nimbus-node"),
            "storm.zookeeper.port": self.zookeeper_port,
            "storm.zookeeper.servers": [HOST],
        }
        self.config.write_text(json.dumps(conf))  # which is YAML
        data = ["--port", str(self.zookeeper_port), "--data", str(folder / "zookeeper")]
        self.zookeeper = self._daemon("zookeeper", ["dev-zookeeper", *data])
        self.nimbus = self._daemon("nimbus", ["nimbus", "--config", str(self.config)])
        self.local_dirs = [folder / f"node-{number}" for number in range(supervisors)]
        self.supervisors = [
            self._daemon(
                f"supervisor-{number}",
                [
                    *("supervisor", "--config", str(self.config)),
                    *("-c", f"storm.local.dir={local_dir}"),
                    *("-c", f"supervisor.slots.ports={self.ports_of(number, slots)}"),
                ],
            )
            for number, local_dir in enumerate(self.local_dirs)
        ]

    @staticmethod
    def ports_of(supervisor: int, slots: int) -> list[int]:
        """The slots of a supervisor; nobody listens there."""
        first = FIRST_PORT + 10 * supervisor
        return list(range(first, first + slots))

    def _daemon(self, name: str, arguments: list[str]) -> Daemon:
        return Daemon(name, arguments, self.folder / f"{name}.log")

    def _free_port(self) -> int:
        """One that stays free: it is bound here, and nobody listens."""
        reserved = self._ports.enter_context(socket.socket())
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((HOST, 0))
        port: int = reserved.getsockname()[1]
        return port

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---- start and end -------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything, and return once nimbus leads and knows all supervisors."""
        for daemon in (self.zookeeper, self.nimbus, *self.supervisors):
            daemon.start()
        self.zookeeper.wait_said("ZooKeeper is ready")
        self.wait_led(len(self.supervisors))

    def wait_led(self, supervisors: int) -> None:
        """Wait until nimbus leads and knows so many supervisors."""
        self.nimbus.wait_said(" leads")
        wait_for(
            lambda: (
                len(set(re.findall(r"supervisor (\S+) on \S+ offers", self.nimbus.said)))
                >= supervisors
            ),
            f"nimbus knows {supervisors} supervisors",
        )

    def close(self) -> None:
        """End everything that runs, workers included."""
        for supervisor in self.supervisors:
            supervisor.stop()
        self._end_workers()
        self.nimbus.stop()
        self.zookeeper.stop()
        self._ports.close()

    def _end_workers(self) -> None:
        processes = [psutil.Process(worker.pid) for worker in self.workers()]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        _, alive = psutil.wait_procs(processes, GENEROUS_SECS / 4)
        for process in alive:
            process.kill()  # what is below it dies with it
        psutil.wait_procs(alive, GENEROUS_SECS / 4)

    # ---- what runs -----------------------------------------------------------------------------

    def workers(self) -> list[WorkerProcess]:
        """All workers that run, by their records; in the order of supervisors and ports."""
        found = []
        for number, local_dir in enumerate(self.local_dirs):
            for path in local_dir.glob("workers/*/worker.json"):
                try:
                    record = json.loads(path.read_text())
                except FileNotFoundError:  # it has just been removed
                    continue
                pid = record["pid"]
                if is_worker(pid):
                    topology = record["assignment"]["topology_id"]
                    found.append(WorkerProcess(number, record["port"], topology, pid))
        return sorted(found)

    # ---- commands ------------------------------------------------------------------------------

    def run(self, command: str, *arguments: str, tail: tuple[str, ...] = ()) -> str:
        """What `storm-py COMMAND ARGUMENTS -- TAIL` prints; Failed if its exit code is not 0."""
        line = [sys.executable, "-m", "storm_py", command, "--config", str(self.config)]
        line += [*arguments, *(("--", *tail) if tail else ())]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{command} {arguments} exits with {done.returncode}:\n{done.stderr}")
        return done.stdout


def is_worker(pid: int) -> bool:
    """Whether the process runs, and is the main process of a worker of a cluster."""
    try:
        process = psutil.Process(pid)
        return (
            process.status() != psutil.STATUS_ZOMBIE
            and "storm_py.runtime.cluster_worker" in process.cmdline()
        )
    except psutil.NoSuchProcess:
        return False
