"""Localizer: code comes once, whole or not at all, and goes when nobody needs it."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from storm_py.config import KEYS, Config
from storm_py.errors import BlobError, StormPyError
from storm_py.supervisor.assignment import Code
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.localizer import CODE, STORMCODE, STORMCONF, Localizer
from storm_py.supervisor.unpacking import Limits
from tests.disk import little_room
from tests.helpers import wait_until

GENEROUS_SECS = 60.0


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return buffer.getvalue()


PROJECT = {"words.py": b"print('words')\n", "lib/deep/a.txt": b"a" * 10_000}


class FakeBlobs:
    """Blobs in memory, which counts what is read of them and can fail or wait."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.checksums: dict[str, str] = {}
        self.reads: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.reading = threading.Event()
        self.fail: StormPyError | OSError | None = None

    def add(self, topology_id: str, code: bytes) -> Code:
        """Store a topology."""
        parts = {"stormjar.jar": code, STORMCODE: b"topology", STORMCONF: b"{}"}
        for name, data in parts.items():
            self.blobs[f"{topology_id}-{name}"] = data
        return Code(topology_id, sha256(code), "ann")

    def checksum(self, key: str) -> str:
        return self.checksums.get(key) or sha256(self.blobs[key])

    def read(self, key: str) -> Iterator[bytes]:
        self.reads.append(key)
        data = self.blobs[key]
        middle = len(data) // 2
        yield data[:middle]
        self.reading.set()
        assert self.gate.wait(GENEROUS_SECS)
        if self.fail is not None:
            raise self.fail
        yield data[middle:]


@pytest.fixture
def blobs() -> FakeBlobs:
    return FakeBlobs()


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    return LocalFolder(tmp_path / "local")


@pytest.fixture
def localizer(folder: LocalFolder, blobs: FakeBlobs) -> Iterator[Localizer]:
    localizer = Localizer(folder, blobs)
    yield localizer
    blobs.gate.set()
    localizer.close()


def done(future: Future[Path]) -> Path:
    return future.result(GENEROUS_SECS)


def failure(future: Future[Path]) -> str:
    error = future.exception(GENEROUS_SECS)
    assert isinstance(error, BlobError), error
    return str(error)


def left(folder: LocalFolder) -> list[str]:
    """All that lies in the folders of code, complete and incomplete."""
    paths = [*folder.stormdist.rglob("*"), *folder.tmp.rglob("*")]
    return sorted(str(path.relative_to(folder.path / "supervisor")) for path in paths)


# ---- download ----------------------------------------------------------------------------------


def test_code_is_unpacked_beside_topology_and_conf(localizer: Localizer, blobs: FakeBlobs) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    path = done(localizer.localize(code, 6700))
    assert path == localizer.folder(code)
    files = {
        str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()
    }
    assert files == {
        f"{CODE}/words.py": PROJECT["words.py"],
        f"{CODE}/lib/deep/a.txt": PROJECT["lib/deep/a.txt"],
        STORMCODE: b"topology",
        STORMCONF: b"{}",
    }
    for file in [path, *path.rglob("*")]:
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


def test_requests_for_one_topology_share_one_download(
    localizer: Localizer, blobs: FakeBlobs
) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    blobs.gate.clear()
    futures = [localizer.localize(code, port) for port in (6700, 6701, 6702)]
    blobs.gate.set()
    assert {done(future) for future in futures} == {localizer.folder(code)}
    assert done(localizer.localize(code, 6703)) == localizer.folder(code)
    assert sorted(blobs.reads) == [
        "words-1-1-stormcode.ser",
        "words-1-1-stormconf.ser",
        "words-1-1-stormjar.jar",
    ]


def test_two_topologies_are_two_downloads(localizer: Localizer, blobs: FakeBlobs) -> None:
    codes = [blobs.add(name, archive({f"{name}.py": b""})) for name in ("a-1-1", "b-2-1")]
    paths = [done(localizer.localize(code, 6700)) for code in codes]
    assert [os.listdir(path / CODE) for path in paths] == [["a-1-1.py"], ["b-2-1.py"]]


def test_newer_code_of_a_topology_lies_beside_the_older(
    localizer: Localizer, blobs: FakeBlobs
) -> None:
    older = blobs.add("words-1-1", archive({"a.py": b"1"}))
    first = done(localizer.localize(older, 6700))
    newer = blobs.add("words-1-1", archive({"a.py": b"2"}))
    second = done(localizer.localize(newer, 6701))
    assert [(path / CODE / "a.py").read_bytes() for path in (first, second)] == [b"1", b"2"]
    localizer.release(older, 6700)
    assert not first.exists()
    assert second.exists()


# ---- references --------------------------------------------------------------------------------


def test_code_goes_with_the_last_slot_that_needs_it(
    localizer: Localizer, blobs: FakeBlobs, folder: LocalFolder
) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    for port in (6700, 6701, 6701):
        done(localizer.localize(code, port))
    localizer.release(code, 6700)
    localizer.release(code, 6700)
    assert localizer.folder(code).is_dir()
    localizer.release(code, 6701)
    assert left(folder) == []
    localizer.release(code, 6701)


def test_code_that_nobody_needs_any_more_goes_when_it_has_come(
    localizer: Localizer, blobs: FakeBlobs, folder: LocalFolder
) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    blobs.gate.clear()
    future = localizer.localize(code, 6700)
    assert blobs.reading.wait(GENEROUS_SECS)
    localizer.release(code, 6700)
    blobs.gate.set()
    done(future)
    assert left(folder) == []
    done(localizer.localize(code, 6700))
    assert localizer.folder(code).is_dir()


def test_code_that_is_wanted_again_in_time_stays(localizer: Localizer, blobs: FakeBlobs) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    blobs.gate.clear()
    localizer.localize(code, 6700)
    localizer.release(code, 6700)
    future = localizer.localize(code, 6701)
    blobs.gate.set()
    assert done(future).is_dir()
    assert blobs.reads.count("words-1-1-stormjar.jar") == 1


def test_a_restart_finds_what_is_there_and_removes_the_rest(
    folder: LocalFolder, blobs: FakeBlobs
) -> None:
    used = blobs.add("words-1-1", archive(PROJECT))
    unused = blobs.add("old-2-1", archive(PROJECT))
    first = Localizer(folder, blobs)
    for code in (used, unused):
        done(first.localize(code, 6700))
    first.close()
    (folder.tmp / "half").mkdir()
    (folder.tmp / "half" / "file").touch()
    blobs.reads.clear()
    second = Localizer(folder, blobs)
    assert list(folder.tmp.iterdir()) == []
    assert done(second.localize(used, 6700)).is_dir()
    second.remove_unused()
    assert os.listdir(folder.stormdist) == ["words-1-1"]
    assert blobs.reads == []
    second.release(used, 6700)
    assert left(folder) == []
    second.close()


# ---- what goes wrong ---------------------------------------------------------------------------


def test_a_download_that_breaks_off_leaves_nothing_and_can_be_tried_again(
    localizer: Localizer, blobs: FakeBlobs, folder: LocalFolder
) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    blobs.fail = ConnectionResetError(104, "Connection reset by peer")
    message = failure(localizer.localize(code, 6700))
    assert message.startswith(
        f"the code of words-1-1 cannot be brought to {localizer.folder(code)}"
    )
    assert "Connection reset by peer" in message
    assert left(folder) == []
    blobs.fail = None
    assert done(localizer.localize(code, 6700)).is_dir()


def test_a_failure_is_shared_as_well(localizer: Localizer, blobs: FakeBlobs) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    blobs.gate.clear()
    blobs.fail = BlobError("no such blob")
    futures = [localizer.localize(code, port) for port in (6700, 6701)]
    blobs.gate.set()
    assert [failure(future) for future in futures] == ["no such blob"] * 2
    blobs.fail = None
    localizer.release(code, 6700)  # nothing is held
    assert done(localizer.localize(code, 6701)).is_dir()


def test_damaged_code_is_named_and_not_kept(
    localizer: Localizer, blobs: FakeBlobs, folder: LocalFolder
) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    jar = blobs.blobs["words-1-1-stormjar.jar"]
    blobs.blobs["words-1-1-stormjar.jar"] = jar[:-1] + b"x"
    message = failure(localizer.localize(code, 6700))
    assert message.startswith(
        "blob words-1-1-stormjar.jar is damaged or another one: sha256 of its "
    )
    assert code.checksum in message
    assert "submit the topology again" in message
    assert left(folder) == []


@pytest.mark.parametrize("name", [STORMCODE, STORMCONF])
def test_damaged_topology_or_conf_is_named_and_not_kept(
    localizer: Localizer, blobs: FakeBlobs, folder: LocalFolder, name: str
) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    blobs.checksums[f"words-1-1-{name}"] = sha256(b"another")
    assert f"blob words-1-1-{name} is damaged" in failure(localizer.localize(code, 6700))
    assert left(folder) == []


def test_a_node_takes_what_nimbus_may_be_told_to_take() -> None:
    key = KEYS[Config.STORM_PY_SUBMIT_MAX_BYTES]
    assert key.accepts(Limits().blob_bytes)
    assert not key.accepts(Limits().blob_bytes + 1)


def test_a_blob_over_the_limit_is_refused(folder: LocalFolder, blobs: FakeBlobs) -> None:
    code = blobs.add("words-1-1", archive({"a": os.urandom(1000)}))
    localizer = Localizer(folder, blobs, Limits(blob_bytes=500))
    assert failure(localizer.localize(code, 6700)) == (
        "blob words-1-1-stormjar.jar is larger than the limit of 500 bytes"
    )
    assert left(folder) == []
    localizer.close()


@pytest.mark.parametrize("content", [b"a" * 5000, os.urandom(5000)], ids=["unpacking", "download"])
def test_a_disk_without_room_is_named_and_nothing_is_left(
    localizer: Localizer, blobs: FakeBlobs, folder: LocalFolder, content: bytes
) -> None:
    code = blobs.add("words-1-1", archive({"small": b"small", "big": content}))
    with little_room():
        message = failure(localizer.localize(code, 6700))
    assert "File too large" in message
    assert message.endswith("bytes are free there")
    assert left(folder) == []


def test_a_localizer_that_is_closed_gives_up_its_download(
    folder: LocalFolder, blobs: FakeBlobs
) -> None:
    code = blobs.add("words-1-1", archive(PROJECT))
    localizer = Localizer(folder, blobs)
    blobs.gate.clear()
    future = localizer.localize(code, 6700)
    assert blobs.reading.wait(GENEROUS_SECS)
    closing = threading.Thread(target=localizer.close)
    closing.start()
    wait_until(lambda: localizer._closing, GENEROUS_SECS)
    blobs.gate.set()
    closing.join()
    assert "the supervisor stops" in failure(future)
    assert left(folder) == []
