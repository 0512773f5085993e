"""A supervisor with real workers, and a cluster in memory."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from storm_py.errors import LocalStateError
from storm_py.supervisor.assignment import LocalAssignment
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.launcher import Launcher
from storm_py.worker_spec import WorkerSpec
from tests.helpers import wait_until
from tests.integration.harness import GENEROUS_SECS
from tests.integration.supervising import (
    HOST,
    PORTS,
    WORDS,
    Cell,
    InProcess,
    approve,
    archive,
    is_there,
    sha256,
)

PORT, OTHER = PORTS


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[Cell]:
    with Cell(LocalFolder(tmp_path / "local")) as cell:
        yield cell


def test_a_worker_from_its_assignment_to_its_end(cell: Cell) -> None:
    cell.start()
    cell.wait_for_none()
    cell.assign(WORDS, 1)
    first = cell.wait_for(WORDS, 1)
    info = cell.info()
    assert info is not None
    assert (info.hostname, info.assignment_id) == (HOST, cell.supervisor_id)
    assert (info.meta, info.used_ports) == (PORTS, (PORT,))
    assert info.worker_heartbeats[PORT].executors == ((1, 1),)

    cell.assign(WORDS, 2, ports=PORTS)
    assert cell.wait_for(WORDS, 2) == first, "told, not killed"
    cell.wait_for(WORDS, 2, OTHER)

    os.kill(first, signal.SIGKILL)
    cell.wait_for_another(first)
    second = cell.wait_for(WORDS, 2)

    cell.state.remove_assignment(WORDS)
    cell.wait_for_none()
    assert not is_there(second)
    assert list(cell.folder.workers.iterdir()) == []
    assert list(cell.folder.stormdist.iterdir()) == []
    assert cell.folder.logs(WORDS, PORT).is_dir()


def test_what_a_worker_is_told(cell: Cell) -> None:
    cell.start()
    cell.assign(WORDS, 1)
    pid = cell.wait_for(WORDS, 1)
    [worker] = cell.folder.workers.iterdir()
    spec = WorkerSpec.read(cell.folder.spec(worker.name))
    code = cell.folder.stormdist / WORDS / sha256(archive())
    assert spec == WorkerSpec(
        worker_id=worker.name,
        supervisor_id=cell.supervisor_id,
        host=HOST,
        port=PORT,
        topology_id=WORDS,
        code_checksum=sha256(archive()),
        code_folder=str(code),
        log_folder=str(cell.folder.logs(WORDS, PORT)),
        heartbeat=str(cell.folder.heartbeat(worker.name)),
        supervisor_lock=str(cell.folder.local_state.with_name("localstate.json.lock")),
        conf={"ui.port": 1},
    )
    assert (code / "stormcode.ser").read_bytes() == b"code"
    assert Path(f"/proc/{pid}/cwd").readlink() == code / "code"


def test_nimbus_hears_of_workers(cell: Cell) -> None:
    cell.start(heartbeat_secs=0.01)
    cell.assign(WORDS, 3)
    wait_until(lambda: cell.nimbus.heartbeats, GENEROUS_SECS, "heartbeats")
    heartbeats = cell.nimbus.heartbeats[0]
    assert heartbeats.supervisor_id == cell.supervisor_id
    [worker] = heartbeats.worker_heartbeats
    assert worker.storm_id == WORDS
    assert [(each.task_start, each.task_end) for each in worker.executors] == [(1, 1)]
    assert worker.statistics == "[[1,1,7,4711,1,2,3,4,5,6]]"


def test_a_second_supervisor_on_the_same_folder_is_refused(cell: Cell) -> None:
    cell.start()
    cell.wait_for_none()
    second = InProcess(cell.folder, cell.cluster)
    second.join()
    assert isinstance(second.error, LocalStateError)
    assert "another supervisor uses the folder" in str(second.error)


def test_two_supervisors_of_one_id_say_so(
    cell: Cell, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = cell.start(heartbeat_secs=0.05)
    wait_until(lambda: cell.info() is not None, GENEROUS_SECS, "the first is up")
    copy = LocalFolder(tmp_path / "copy")
    shutil.copytree(cell.folder.local_state.parent, copy.local_state.parent)
    second = InProcess(copy, cell.cluster, heartbeat_secs=0.05, host="elsewhere")
    text = f"another supervisor, on elsewhere, has the id of this one, {cell.supervisor_id} on "
    wait_until(lambda: text in caplog.text, GENEROUS_SECS, text)
    second.stop()
    first.stop()


def test_a_supervisor_that_follows_itself_has_no_twin(
    cell: Cell, caplog: pytest.LogCaptureFixture
) -> None:
    times: set[int] = set()

    def beats(more: int) -> bool:
        info = cell.info()
        if info is not None:
            times.add(info.time_secs)
        return len(times) >= more

    for more in (2, 4):
        found = cell.start(heartbeat_secs=0.05)
        wait_until(partial(beats, more), GENEROUS_SECS, "signs of life")
        found.stop()
    assert "has the id of this one" not in caplog.text


def test_workers_live_on_without_their_supervisor(cell: Cell) -> None:
    first = cell.start()
    cell.assign(WORDS, 1)
    pid = cell.wait_for(WORDS, 1)
    first.stop()
    assert is_there(pid)
    assert cell.info() is None
    cell.assign(WORDS, 2)
    second = cell.start()
    assert cell.wait_for(WORDS, 2) == pid
    second.stop(end_workers=True)
    assert not is_there(pid)
    os.waitpid(pid, 0)  # the child of this process, whoever adopted it


def test_another_code_of_a_topology_is_another_worker(cell: Cell) -> None:
    cell.start()
    cell.assign(WORDS, 1)
    first = cell.wait_for(WORDS, 1)
    cell.nimbus.store(WORDS, archive("new"))
    cell.assign(WORDS, 2, jar=archive("new"))
    assert cell.wait_for(WORDS, 2) != first
    assert not is_there(first)
    folders = cell.folder.stormdist / WORDS
    assert [path.name for path in folders.iterdir()] == [sha256(archive("new"))]


def test_code_of_topologies_that_are_gone_is_removed_by_the_next_supervisor(cell: Cell) -> None:
    old = cell.folder.stormdist / "old-1-1" / "00ff"
    old.mkdir(parents=True)
    cell.start()
    wait_until(lambda: not old.exists(), GENEROUS_SECS, "the end of the old code")


def test_a_worker_that_is_well_is_seldom_looked_at(cell: Cell) -> None:
    running = cell.start()
    cell.assign(WORDS, 1)
    cell.wait_for(WORDS, 1)
    slots = running.supervisor._slots
    due = slots.next_timeout()
    assert due is not None
    # A third of the time after which it would be taken for silent; far more than 0.1 s.
    assert due - slots._slots[PORT].looked == pytest.approx(GENEROUS_SECS / 3)


def test_two_workers_on_one_port_end_before_there_is_another(cell: Cell) -> None:
    sleeping = ["sleep", "1000"]
    approve(cell.folder, {"one": PORT, "two": PORT})
    launcher = Launcher(cell.folder)
    local = LocalAssignment(WORDS, 1, ((1, 1),), sha256(archive()), "ann")
    pids = [
        launcher.launch(name, PORT, local, sleeping, os.environ, Path("/"))
        for name in ("one", "two")
    ]
    launcher.close()
    cell.start()
    cell.assign(WORDS, 1)
    assert cell.wait_for(WORDS, 1) not in pids
    for pid in pids:
        assert not is_there(pid)
        os.waitpid(pid, 0)  # a child of this process, whoever adopted it


def test_a_port_that_is_no_longer_offered_is_served_while_it_is_assigned(cell: Cell) -> None:
    first = cell.start()
    cell.assign(WORDS, 1, ports=[OTHER])
    pid = cell.wait_for(WORDS, 1, OTHER)
    first.stop()
    second = cell.start(ports=(PORT,))
    assert cell.wait_for(WORDS, 1, OTHER) == pid
    info = cell.info()
    assert info is not None
    assert (info.meta, info.used_ports) == ((PORT,), (OTHER,))
    cell.state.remove_assignment(WORDS)
    cell.wait_for_none()
    second.stop()
    os.waitpid(pid, 0)  # the child of this process, whoever adopted it
