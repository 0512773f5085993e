"""LocalState: what a supervisor knows after its restart; and the values in its files."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storm_py.errors import LocalStateError
from storm_py.supervisor.assignment import LocalAssignment
from storm_py.supervisor.local_state import LocalState
from storm_py.supervisor.process_table import Identity
from storm_py.supervisor.worker_record import WorkerRecord
from tests.slots import OTHER, WORDS, assignment


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "supervisor" / "localstate.json"


@contextlib.contextmanager
def local_state(path: Path) -> Iterator[LocalState]:
    state = LocalState(path)
    yield state
    state.close()


def test_the_id_is_made_once(path: Path) -> None:
    ids = []
    for _ in range(2):
        with local_state(path) as state:
            ids.append(state.supervisor_id)
    path.unlink()
    with local_state(path) as state:
        ids.append(state.supervisor_id)
    assert all(ids)
    assert ids[0] == ids[1] != ids[2]


def test_what_was_known_is_known_again(path: Path) -> None:
    with local_state(path) as state:
        state.assign(6700, WORDS)
        state.assign(6701, OTHER)
        state.approve("w1", 6700)
        state.approve("w2", 6701)
        supervisor_id = state.supervisor_id
        assert state.assignments == {6700: WORDS, 6701: OTHER}
        assert state.approved_workers == {"w1": 6700, "w2": 6701}
    with local_state(path) as again:
        assert again.assignments == {6700: WORDS, 6701: OTHER}
        assert again.approved_workers == {"w1": 6700, "w2": 6701}
        again.assign(6700, assignment(version=2))
        again.assign(6701, None)
        again.assign(6702, None)
        again.forget("w2")
        again.forget("w9")
    with local_state(path) as last:
        assert last.assignments == {6700: assignment(version=2)}
        assert last.approved_workers == {"w1": 6700}
        assert last.supervisor_id == supervisor_id


def test_a_second_supervisor_is_kept_out_until_the_first_is_gone(path: Path) -> None:
    first = LocalState(path)
    with pytest.raises(
        LocalStateError, match=f"another supervisor uses the folder {path.parents[1]}"
    ):
        LocalState(path)
    first.close()
    LocalState(path).close()


def test_who_looks_whether_a_supervisor_lives_keeps_none_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LocalState(path).close()
    looking = path.with_name("localstate.json.lock").open()
    fcntl.flock(looking, fcntl.LOCK_SH)
    pauses = []

    def pause(secs: float) -> None:
        pauses.append(secs)
        looking.close()

    monkeypatch.setattr(time, "sleep", pause)
    with local_state(path) as state:
        assert state.lock_path == Path(looking.name)
    assert len(pauses) == 1


def test_what_cannot_be_written_is_not_known(path: Path) -> None:
    state = LocalState(path)
    state.approve("w1", 6700)
    path.unlink()
    path.mkdir()
    (path / "file").touch()
    changes: list[Callable[[], None]] = [
        lambda: state.assign(6700, WORDS),
        lambda: state.approve("w2", 6701),
        lambda: state.forget("w1"),
    ]
    for change in changes:
        with pytest.raises(OSError, match=r"localstate\.json"):
            change()
    assert state.assignments == {}
    assert state.approved_workers == {"w1": 6700}
    state.close()


def good(**changes: Any) -> dict[str, Any]:
    plain = {
        "format": 1,
        "supervisor_id": "an-id",
        "assignments": {"6700": WORDS.to_dict()},
        "approved_workers": {"w1": 6700},
    }
    return {**plain, **changes}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value"),
        (b'{"format": 1, "supervis', "Unterminated string"),
        (b"\xff", "decode"),
        (b"[" * 100_000, "recursion"),
        (b"[]", "it holds [], not an object"),
        (good(format=0), "format is 0, not 1"),
        (good(supervisor_id=""), "supervisor_id is '', not a text"),
        (good(assignments=[]), "assignments is [], not an object of objects by port"),
        (good(assignments={"a": {}}), "assignments is"),
        (good(assignments={"6700": {}}), "executors is None, not a list of"),
        (good(approved_workers={"w": "6700"}), "approved_workers is"),
    ],
)
def test_a_broken_file_is_kept_and_the_next_start_begins_anew(
    path: Path, content: bytes | dict[str, Any], reason: str
) -> None:
    path.parent.mkdir()
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(data)
    with pytest.raises(LocalStateError) as caught:
        LocalState(path)
    message = str(caught.value)
    assert message.startswith(f"{path} is not what a supervisor writes: ")
    assert reason in message
    aside = path.with_name("localstate.json.broken-1")
    assert f"it is kept as {aside}. Start the supervisor again" in message
    assert aside.read_bytes() == data
    with local_state(path) as state:
        assert state.assignments == {}


def test_each_broken_file_is_kept(path: Path) -> None:
    LocalState(path).close()
    for number in (1, 2):
        path.write_text(f"broken {number}")
        with pytest.raises(LocalStateError, match=f"broken-{number}"):
            LocalState(path)
    assert sorted(os.listdir(path.parent)) == [
        "localstate.json.broken-1",
        "localstate.json.broken-2",
        "localstate.json.lock",
    ]


def test_a_file_of_a_newer_version_is_left_where_it_is(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(json.dumps(good(format=2)))
    with pytest.raises(LocalStateError, match="has format 2, and this storm-py reads 1"):
        LocalState(path)
    assert json.loads(path.read_text()) == good(format=2)


# ---- values ------------------------------------------------------------------------------------


def test_an_assignment_is_read_as_it_was_written() -> None:
    known = assignment(version=3, executors=((4, 5), (1, 1)))
    assert LocalAssignment.from_dict(json.loads(json.dumps(known.to_dict()))) == known
    assert known.executors == ((1, 1), (4, 5))
    assert str(known) == "words-1-1 v3"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("executors", [[1]], r"executors is \[\[1\]\], not a list of"),
        ("executors", [[1, "2"]], "executors is"),
        ("executors", {}, "executors is {}"),
        ("version", "1", "version is '1', not a number"),
        ("topology_id", None, "topology_id is None, not a text"),
        ("checksum", 7, "checksum is 7, not a text"),
        ("owner", [], r"owner is \[\], not a text"),
    ],
)
def test_what_is_no_assignment_is_named(field: str, value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        LocalAssignment.from_dict({**WORDS.to_dict(), field: value})


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = WorkerRecord("w1", 6700, WORDS, Identity(17, 123456, "a-boot"))
    record.write(tmp_path / "worker.json")
    assert WorkerRecord.read(tmp_path / "worker.json") == record


@pytest.mark.parametrize(
    "field", ["worker_id", "port", "assignment", "pid", "start_ticks", "boot_id"]
)
def test_what_is_no_record_is_named(tmp_path: Path, field: str) -> None:
    path = tmp_path / "worker.json"
    WorkerRecord("w1", 6700, WORDS, Identity(17, 123456, "a-boot")).write(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), field: None}))
    with pytest.raises(ValueError, match=f"{field} is None"):
        WorkerRecord.read(path)
