"""When a worker speaks for itself, whatever the machine lets it know of its supervisor."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from storm_py.cluster.memory import MemoryCluster
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.heartbeat import Heartbeat
from storm_py.runtime import direct_beats
from storm_py.runtime.direct_beats import DirectBeats, is_locked
from tests.helpers import wait_until


def test_where_locks_are_not_shown_nobody_is_taken_to_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct_beats, "_LOCKS", tmp_path / "no such file")
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not is_locked(tmp_path / "lock")


def test_a_lock_that_cannot_be_looked_at_is_looked_at_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    asked = threading.Event()

    def no_beat() -> Heartbeat | None:
        asked.set()
        return None

    storage = MemoryCluster().storage()
    storage.start()
    lock = tmp_path / "file" / "lock"
    beats = DirectBeats(ClusterState(storage), "words-1-1", lock, 0.01, no_beat)
    beats.start()
    wait_until(lambda: "Not a directory" in caplog.text, 60)
    (tmp_path / "file").unlink()
    assert asked.wait(60)
    beats.close()
    storage.close()
