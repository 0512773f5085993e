"""Files that are whole or not there, and the heartbeat that is one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from storm_py.errors import ProtocolError
from storm_py.files import make_folder, write_atomically
from storm_py.heartbeat import (
    ExecutorStatistics,
    Heartbeat,
    dump_statistics,
    load_statistics,
)
from tests.disk import little_room


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_as_a_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"before", durable)
    with path.open("rb") as reader:
        write_atomically(path, b"after", durable)
        assert reader.read() == b"before"
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".file.new").write_bytes(b"a" * 100)
    write_atomically(tmp_path / "file", b"whole")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_without_room_the_file_stays_as_it_was(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", b"before")
    with little_room(), pytest.raises(OSError, match="File too large"):
        write_atomically(tmp_path / "file", b"x" * 2000)
    assert (tmp_path / "file").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


def test_folders_are_for_their_user_alone(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    make_folder(tmp_path / "a" / "b")
    for path in (tmp_path / "a", tmp_path / "a" / "b"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_heartbeat_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "heartbeat"
    assert Heartbeat.read(path) is None
    executor = ExecutorStatistics(2, 5, 60, 4321, 9, 8, 7, 6, 5, 4)
    for beat in (
        Heartbeat("w", 1, 7, 12.25),
        Heartbeat("w", 2, 8, 13),
        Heartbeat("w", 2, 8, 14, (executor,)),
    ):
        beat.write(path)
        assert Heartbeat.read(path) == beat


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"format": 1, "worker_id": "w", "incarn',
        b"\xff\xfe",
        b"[]",
        b"3",
        b'{"format": 2, "worker_id": "w", "incarnation": 1, "version": 1, "time": 1.0}',
        b'{"format": 1, "worker_id": 3, "incarnation": 1, "version": 1, "time": 1.0}',
        b'{"format": 1, "worker_id": "w", "incarnation": "1", "version": 1, "time": 1.0}',
        b'{"format": 1, "worker_id": "w", "incarnation": 1, "version": null, "time": 1.0}',
        b'{"format": 1, "worker_id": "w", "incarnation": 1, "version": 1, "time": "now"}',
        b'{"format": 1, "worker_id": "w", "incarnation": 1, "version": 1}',
        b'{"format": 1, "worker_id": "w", "incarnation": 1, "version": 1, "time": 1.0}',
        b'{"format": 1, "worker_id": "w", "incarnation": 1, "version": 1, "time": 1.0, '
        b'"executors": [[1, 2]]}',
    ],
)
def test_what_is_no_heartbeat_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "heartbeat").write_bytes(content)
    assert Heartbeat.read(tmp_path / "heartbeat") is None


def test_statistics_travel_as_a_text() -> None:
    executors = [ExecutorStatistics(*range(n, n + 10)) for n in (1, 20)]
    assert load_statistics(dump_statistics(executors)) == tuple(executors)
    assert load_statistics(dump_statistics([])) == ()


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[[1]]", '[["1", 2, 3, 4, 5, 6, 7, 8, 9, 10]]'])
def test_what_are_no_statistics_is_refused(text: str) -> None:
    with pytest.raises(ProtocolError, match=r"^statistics of a worker: "):
        load_statistics(text)
