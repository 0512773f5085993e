"""A supervisor, with a cluster in memory, whose workers, disk, nimbus or ZooKeeper fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_py.supervisor import cluster_watch
from storm_py.supervisor.blobs import LeaderBlobs
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.slot_actions import CannotKill, SlotTimeouts
from tests.helpers import wait_until
from tests.integration.harness import GENEROUS_SECS
from tests.integration.supervising import OTHERS, PORTS, WORDS, Cell, archive, is_there

PORT, OTHER = PORTS


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[Cell]:
    with Cell(LocalFolder(tmp_path / "local")) as cell:
        yield cell


def test_a_topology_whose_code_is_not_there_yet_is_tried_again(
    cell: Cell, caplog: pytest.LogCaptureFixture
) -> None:
    late = "jokes-2-2"
    cell.start()
    cell.assign(late, 1)
    wait_until(lambda: "nimbus has no blob jokes-2-2-stormjar.jar" in caplog.text, GENEROUS_SECS)
    cell.nimbus.store(late, archive())
    cell.wait_for(late, 1)


def test_a_worker_that_does_not_follow_is_replaced(cell: Cell) -> None:
    late = "late-2-2"
    cell.nimbus.store(late, archive())
    cell.start(timeouts=SlotTimeouts(GENEROUS_SECS, 2.0, 0.5))
    cell.assign(late, 1)
    first = cell.wait_for(late, 1)
    cell.assign(late, 2)
    assert cell.wait_for(late, 2) != first


def test_a_worker_that_never_comes_up_is_replaced(cell: Cell) -> None:
    mute = "mute-2-2"
    cell.nimbus.store(mute, archive())
    cell.start(timeouts=SlotTimeouts(0.5, 0.5, 0.5))
    cell.assign(mute, 1)
    wait_until(cell.pid, GENEROUS_SECS, "a worker")
    cell.wait_for_another(cell.pid())


def test_a_worker_that_falls_silent_is_replaced(cell: Cell) -> None:
    cell.start(timeouts=SlotTimeouts(GENEROUS_SECS, 2.0, 0.5))
    cell.assign(WORDS, 1)
    first = cell.wait_for(WORDS, 1)
    os.kill(first, signal.SIGSTOP)
    cell.wait_for_another(first)
    cell.wait_for(WORDS, 1)
    assert not is_there(first)


def test_a_worker_that_cannot_be_started_is_tried_again(
    cell: Cell, caplog: pytest.LogCaptureFixture
) -> None:
    cell.start()
    cell.wait_for_none()
    cell.folder.workers.write_text("no folder")
    cell.assign(WORDS, 1)
    wait_until(lambda: "a worker of words-1-1 v1 cannot be started" in caplog.text, GENEROUS_SECS)
    cell.folder.workers.unlink()
    cell.wait_for(WORDS, 1)


def test_an_assignment_that_cannot_be_read_ends_no_worker(
    cell: Cell, caplog: pytest.LogCaptureFixture
) -> None:
    first = cell.start()
    cell.assign(WORDS, 1)
    pid = cell.wait_for(WORDS, 1)
    first.stop()
    storage = cell.cluster.storage()
    storage.start()
    storage.write(f"/assignments/{WORDS}", b"of another age")
    second = cell.start()
    wait_until(lambda: "what runs of this topology goes on" in caplog.text, GENEROUS_SECS)
    cell.assign(OTHERS, 1, ports=[OTHER])
    cell.wait_for(OTHERS, 1, OTHER)
    assert cell.follows(PORT) == (WORDS, 1)
    assert cell.pid() == pid
    storage.delete(f"/assignments/{WORDS}")
    storage.close()
    wait_until(lambda: not is_there(pid), GENEROUS_SECS, "the end of the worker")
    second.stop(end_workers=True)
    os.waitpid(pid, 0)  # the child of this process, whoever adopted it


def test_an_error_of_ours_ends_the_supervisor_and_no_worker(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = cell.start()
    cell.assign(WORDS, 1)
    pid = cell.wait_for(WORDS, 1)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(cluster_watch, "claims_of", broken)
        cell.assign(WORDS, 2)
        running.join()
    assert isinstance(running.error, ZeroDivisionError)
    assert is_there(pid)
    next_one = cell.start()
    assert cell.wait_for(WORDS, 2) == pid
    next_one.stop(end_workers=True)
    os.waitpid(pid, 0)  # the child of this process, whoever adopted it


@pytest.mark.parametrize("operation", ["hold", "children", "read"])
def test_what_zookeeper_did_not_do_is_tried_again(cell: Cell, operation: str) -> None:
    running = cell.start()
    cell.wait_for_none()
    running.storage.fail_next(operation, done=False)
    cell.assign(WORDS, 1)
    cell.wait_for(WORDS, 1)


def test_what_cannot_be_kept_is_told_and_no_worker_is_begun_that_would_not_be_known(
    cell: Cell, caplog: pytest.LogCaptureFixture
) -> None:
    cell.start()
    cell.wait_for_none()
    path = cell.folder.local_state
    known = path.read_bytes()
    path.unlink()
    path.mkdir()
    cell.assign(WORDS, 1)
    wait_until(lambda: "a worker of words-1-1 v1 cannot be started" in caplog.text, GENEROUS_SECS)
    assert "port 6700: what it has to run cannot be kept" in caplog.text
    assert cell.records() == {}
    path.rmdir()
    path.write_bytes(known)
    cell.wait_for(WORDS, 1)


def test_a_download_that_fails_by_an_error_of_ours_ends_no_supervisor(
    cell: Cell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("odd code")

    cell.start()
    with monkeypatch.context() as patch:
        patch.setattr(LeaderBlobs, "checksum", broken)
        cell.assign(WORDS, 1)
        wait_until(lambda: "ZeroDivisionError: odd code" in caplog.text, GENEROUS_SECS)
    cell.wait_for(WORDS, 1)


def test_a_worker_that_cannot_be_killed_is_told_of(
    cell: Cell, caplog: pytest.LogCaptureFixture
) -> None:
    running = cell.start()
    cell.wait_for_none()
    slots = running.supervisor._slots
    slots._act(slots._slots[PORT], [CannotKill("w1", 120.0)])
    assert "worker w1 on port 6700 cannot be killed: 120 s after KILL" in caplog.text
