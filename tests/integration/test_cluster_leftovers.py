"""What a cluster of one machine has left: workers that run on are ended, data is removed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from storm_py.config import Config, configuration
from storm_py.errors import ClusterFailed
from storm_py.one_machine.leftovers import end_workers, end_workers_of_others, remove_data
from storm_py.one_machine.plan import ClusterPlan, plan
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.launcher import Launcher
from tests.helpers import wait_until
from tests.integration.launching import ASSIGNMENT, PORT, WAITING

Leave = Callable[[Path], psutil.Process]


@pytest.fixture
def leave(tmp_path: Path) -> Leave:
    """A worker in a local folder whose supervisor is gone."""

    def left(folder: Path) -> psutil.Process:
        launcher = Launcher(LocalFolder(folder))
        working = tmp_path / "working" / folder.name
        working.mkdir(parents=True)
        pid = launcher.launch(f"of-{folder.name}", PORT, ASSIGNMENT, WAITING, os.environ, working)
        launcher.close()
        wait_until((working / "ready").exists)
        return psutil.Process(pid)

    return left


def gone(worker: psutil.Process) -> bool:
    """Ended, and reaped as what was its supervisor's child is."""
    return worker.wait(0) is not None


def planned(local_dir: Path, **values: object) -> ClusterPlan:
    conf = configuration(None, {Config.STORM_LOCAL_DIR: str(local_dir), **values})
    return plan(conf, [], Path("/nowhere"), 1, 1)


def written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    return path


def test_workers_of_all_folders_are_ended(tmp_path: Path, leave: Leave) -> None:
    folders = [tmp_path / "supervisor-1", tmp_path / "supervisor-2", tmp_path / "supervisor-3"]
    workers = [leave(folder) for folder in folders[:2]]
    assert end_workers(folders) == 2
    assert all(map(gone, workers))


def test_nothing_is_made_where_nothing_is_left(tmp_path: Path) -> None:
    assert end_workers([tmp_path / "supervisor-1"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_workers_of_supervisors_that_are_not_started_are_ended(
    tmp_path: Path, leave: Leave
) -> None:
    """But not if somebody runs one of these by hand."""
    workers = {number: leave(tmp_path / f"supervisor-{number}") for number in (1, 2, 3)}
    with open(written(tmp_path / "supervisor-3/supervisor/localstate.json.lock")) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert end_workers_of_others(planned(tmp_path)) == 1
    assert gone(workers[2])
    assert [number for number, worker in workers.items() if worker.is_running()] == [1, 3]
    assert end_workers_of_others(planned(tmp_path)) == 1
    assert end_workers(planned(tmp_path).supervisor_dirs) == 1
    assert gone(workers[1])
    assert gone(workers[3])


def test_what_is_removed_and_what_stays(tmp_path: Path, leave: Leave) -> None:
    """Also of supervisors that there are no more; logs and what is not the cluster's stay."""
    local = tmp_path / "local"
    workers = [leave(local / "supervisor-1"), leave(local / "supervisor-7")]
    removed = [
        "zookeeper/version-2/log.1",
        "nimbus/blobs/a",
        "supervisor-1/supervisor/localstate.json",
        "supervisor-7/supervisor/stormdist/a",
    ]
    stays = [
        "cluster.lock",
        "zookeeper/zookeeper.log",
        "logs/words-1-1/6700/worker.log",
        "supervisor-1/logs/words-1-1/6700/worker.log",
        "supervisor-1/mine",
        "supervisor-x/supervisor/localstate.json",
        "supervisor/localstate.json",
        "workers/a/worker.json",
    ]
    for name in (*removed, *stays):
        written(local / name)
    remove_data(planned(local))
    assert all(map(gone, workers))
    assert [name for name in removed if (local / name).exists()] == []
    assert [name for name in stays if not (local / name).exists()] == []
    assert not (local / "supervisor-1" / "workers").exists()
    remove_data(planned(local))  # nothing is left to remove


def test_of_zookeepers_own_folder_only_its_data(tmp_path: Path) -> None:
    local = tmp_path / "local"
    data = written(tmp_path / "mine" / "version-2" / "log.1")
    other = written(tmp_path / "mine" / "thesis")
    kept = written(local / "zookeeper" / "version-2" / "log.1")
    remove_data(planned(local, **{Config.DEV_ZOOKEEPER_PATH: str(tmp_path / "mine")}))
    assert (data.exists(), other.exists(), kept.exists()) == (False, True, True)


@pytest.mark.parametrize(
    ("lock", "folder"),
    [
        ("zookeeper/lock", "zookeeper"),
        ("nimbus/lock", "nimbus"),
        ("supervisor-2/supervisor/localstate.json.lock", "supervisor-2/supervisor"),
    ],
)
def test_what_a_daemon_uses_is_not_removed(tmp_path: Path, lock: str, folder: str) -> None:
    data = written(tmp_path / "zookeeper" / "version-2" / "log.1")
    with open(written(tmp_path / lock)) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ClusterFailed, match=f"cannot remove {tmp_path / folder}: a daemon"):
            remove_data(planned(tmp_path))
    assert data.exists()
    remove_data(planned(tmp_path))
    assert not data.exists()


def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    written(tmp_path / "nimbus")
    with pytest.raises(ClusterFailed, match=f"cannot remove .*{tmp_path.name}/nimbus.*: Not a dir"):
        remove_data(planned(tmp_path))
