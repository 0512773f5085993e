"""A slot's machine, the launcher and the localizer together, with real workers."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
import uuid
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future
from io import BytesIO
from pathlib import Path

import pytest

from storm_py.supervisor.assignment import Code, LocalAssignment
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.launcher import Exited, Gone, Launcher
from storm_py.supervisor.localizer import CODE, Localizer
from storm_py.supervisor.process_table import process_info
from storm_py.supervisor.slot import SlotMachine
from storm_py.supervisor.slot_actions import (
    Action,
    Cleanup,
    FoundWorker,
    Kill,
    Launch,
    Localize,
    Release,
    SlotTimeouts,
    Tell,
)
from storm_py.supervisor.slot_states import MachineState
from storm_py.supervisor.worker_record import WorkerRecord
from tests.helpers import wait_until
from tests.integration.harness import GENEROUS_SECS, ROOT

PORT = 6700

#: Writes heartbeats, and follows the version in a file beside its heartbeat.
WORKER = """
import sys, time
from pathlib import Path
from storm_py.heartbeat import Heartbeat

folder, worker_id = Path(sys.argv[1]), sys.argv[2]
while True:
    version = int((folder / "version").read_text())
    Heartbeat(worker_id, 1, version, time.monotonic()).write(folder / "heartbeat")
    time.sleep(0.02)
"""


def code_archive() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr(zipfile.ZipInfo("worker.py"), WORKER)  # which has no time of its own
    return buffer.getvalue()


class MemoryBlobs:
    """One topology."""

    def __init__(self) -> None:
        self._jar = code_archive()

    def _blob(self, key: str) -> bytes:
        return self._jar if key.endswith(".jar") else b"{}"

    def checksum(self, key: str) -> str:
        return hashlib.sha256(self._blob(key)).hexdigest()

    def read(self, key: str) -> Iterator[bytes]:
        yield self._blob(key)


class Node:
    """What a supervisor does for one slot."""

    def __init__(self, folder: LocalFolder) -> None:
        self.folder = folder
        self.launcher = Launcher(folder)
        self.localizer = Localizer(folder, MemoryBlobs())
        self.machine = SlotMachine(
            PORT,
            SlotTimeouts(start_secs=GENEROUS_SECS, worker_secs=GENEROUS_SECS, shutdown_secs=0.5),
            iter(lambda: uuid.uuid4().hex, ""),
        )
        self.downloads: dict[Code, Future[Path]] = {}

    def recover(self, wanted: LocalAssignment | None) -> None:
        """Take over what runs."""
        for found in self.launcher.recover():
            beat = None if found.heartbeat is None else found.heartbeat.time
            record = found.record
            worker = FoundWorker(record.worker_id, record.assignment, found.alive, beat)
            self.act(self.machine.recover(wanted, worker, time.monotonic()))

    def assign(self, wanted: LocalAssignment | None) -> None:
        """Nimbus has decided."""
        self.act(self.machine.assign(wanted, time.monotonic()))

    def act(self, actions: list[Action]) -> None:
        """Do what the machine says."""
        for action in actions:
            match action:
                case Localize(code):
                    self.downloads[code] = self.localizer.localize(code, PORT)
                case Release(code):
                    self.localizer.release(code, PORT)
                case Launch(worker_id, wanted):
                    self.launch(worker_id, wanted)
                case Tell(worker_id, wanted):
                    self.launcher.told(worker_id, wanted)
                    self.say_version(worker_id, wanted)
                case Kill(worker_id, severity):
                    self.launcher.end(worker_id, severity)
                case Cleanup(worker_id):
                    self.launcher.cleanup(worker_id)
        self.machine.check()

    def launch(self, worker_id: str, wanted: LocalAssignment) -> None:
        """Start the program in the archive."""
        worker = self.folder.worker(worker_id)
        worker.mkdir(parents=True)
        self.say_version(worker_id, wanted)
        self.launcher.launch(
            worker_id,
            PORT,
            wanted,
            [sys.executable, "worker.py", str(worker), worker_id],
            {**os.environ, "PYTHONPATH": str(ROOT)},
            self.localizer.folder(wanted.code) / CODE,
        )

    def say_version(self, worker_id: str, wanted: LocalAssignment) -> None:
        """How these workers are told."""
        (self.folder.worker(worker_id) / "new").write_text(str(wanted.version))
        (self.folder.worker(worker_id) / "new").replace(self.folder.worker(worker_id) / "version")

    def turn(self) -> None:
        """One turn of the loop."""
        for event in self.launcher.poll(0.01):
            match event:
                case Exited(worker_id, returncode):
                    self.act(self.machine.exited(worker_id, returncode, time.monotonic()))
                case Gone(worker_id):
                    self.act(self.machine.gone(worker_id, time.monotonic()))
        for code in [code for code, future in self.downloads.items() if future.done()]:
            self.downloads.pop(code).result()
            self.act(self.machine.localized(code, time.monotonic()))
        current = self.worker_id
        beat = None if current is None else self.launcher.heartbeat(current)
        if beat is not None:
            self.act(self.machine.heartbeat(beat.worker_id, beat.version, time.monotonic()))
            self.followed = beat.version
        self.act(self.machine.tick(time.monotonic()))

    @property
    def worker_id(self) -> str | None:
        return self.machine.statistics().worker_id

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        assert self.worker_id is not None
        return WorkerRecord.read(self.folder.record(self.worker_id)).process.pid

    def run_until(self, state: MachineState, version: int = 0) -> None:
        """Go on until the slot is there, and its worker follows this version."""
        self.followed = 0

        def there() -> bool:
            self.turn()
            return self.machine.state is state and self.followed >= version

        wait_until(there, GENEROUS_SECS, f"{state} v{version}")

    def stop(self) -> None:
        """The supervisor ends, its workers live on."""
        self.launcher.close()
        self.localizer.close()


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    return LocalFolder(tmp_path / "local")


def wanted(version: int) -> LocalAssignment:
    checksum = hashlib.sha256(code_archive()).hexdigest()
    return LocalAssignment("words-1-1", version, ((1, version),), checksum, "ann")


def is_there(pid: int) -> bool:
    info = process_info(pid)
    return info is not None and not info.ended


def test_a_slot_from_empty_to_empty(folder: LocalFolder) -> None:
    node = Node(folder)
    node.assign(wanted(1))
    node.run_until(MachineState.RUNNING, version=1)
    first = node.pid

    node.assign(wanted(2))
    node.run_until(MachineState.RUNNING, version=2)
    assert node.pid == first, "told, not killed"

    os.kill(first, signal.SIGKILL)
    node.run_until(MachineState.WAITING_FOR_WORKER_START)
    node.run_until(MachineState.RUNNING, version=2)
    second = node.pid
    assert second != first

    node.assign(None)
    node.run_until(MachineState.EMPTY)
    assert not is_there(second)
    assert list(folder.workers.iterdir()) == []
    assert list(folder.stormdist.iterdir()) == []
    node.stop()


def test_a_slot_whose_supervisor_is_started_again(folder: LocalFolder) -> None:
    first = Node(folder)
    first.assign(wanted(1))
    first.run_until(MachineState.RUNNING, version=1)
    pid = first.pid
    first.stop()
    assert is_there(pid)

    second = Node(folder)
    second.recover(wanted(2))
    assert second.machine.state is MachineState.RUNNING
    second.run_until(MachineState.RUNNING, version=2)
    assert second.pid == pid

    second.assign(None)
    second.run_until(MachineState.EMPTY)
    assert not is_there(pid)
    second.stop()
    os.waitpid(pid, 0)  # the child of this process, whoever adopted it
