"""Unpacking: archives of which nothing is believed."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from storm_py.errors import BlobError
from storm_py.supervisor.unpacking import Limits, unpack
from tests.unit.test_localizer import PROJECT, archive


def unpacked(tmp_path: Path, data: bytes, limits: Limits | None = None) -> Path:
    (tmp_path / "archive").write_bytes(data)
    target = tmp_path / "target"
    unpack(tmp_path / "archive", target, "blob a-jar", limits or Limits(), lambda: None)
    return target


def with_infos(change: Callable[[zipfile.ZipInfo], None], name: str = "file") -> bytes:
    """An archive with one file whose entry is changed."""
    buffer = io.BytesIO()
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    change(info)
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr(info, b"data")
    return buffer.getvalue()


def test_programs_stay_programs_and_folders_may_be_empty(tmp_path: Path) -> None:
    def program(info: zipfile.ZipInfo) -> None:
        info.external_attr = (stat.S_IFREG | 0o755) << 16

    target = unpacked(tmp_path, with_infos(program, "bin/run"))
    assert stat.S_IMODE((target / "bin" / "run").stat().st_mode) == 0o700
    (tmp_path / "second").mkdir()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("resources/", b"")
        packed.writestr("resources/a.py", b"")
        packed.writestr("empty/", b"")
    target = unpacked(tmp_path / "second", buffer.getvalue())
    assert sorted(os.listdir(target)) == ["empty", "resources"]
    assert os.listdir(target / "resources") == ["a.py"]


def test_an_archive_may_be_empty(tmp_path: Path) -> None:
    assert os.listdir(unpacked(tmp_path, archive({}))) == []


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../evil", "a/../../evil", "a/..", "..", "a\\..\\evil", "C:\\evil", "/", "."],
)
def test_a_name_outside_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BlobError, match=r"blob a-jar: .*; nothing is unpacked"):
        unpacked(tmp_path, archive({"good": b"", name: b"evil"}))
    assert sorted(os.listdir(tmp_path)) == ["archive", "target"]
    assert os.listdir(tmp_path / "target") == []


@pytest.mark.parametrize(
    "kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR]
)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, kind: int) -> None:
    def change(info: zipfile.ZipInfo) -> None:
        info.external_attr = (kind | 0o777) << 16

    with pytest.raises(BlobError, match="'file' is a link or a device, not a plain file"):
        unpacked(tmp_path, with_infos(change))


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a", "a"], "'a' is there twice"),
        (["a/b", "a/./b"], "'a/b' is there twice"),
        (["a", "a/b"], "'a' is a file and a folder"),
        (["a/b", "a"], "'a' is a file and a folder"),
        (["a", "a/"], "'a' is a file and a folder"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_refused(
    tmp_path: Path, names: list[str], reason: str
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name in names:
            packed.writestr(name, b"")
    with pytest.raises(BlobError, match=reason):
        unpacked(tmp_path, buffer.getvalue())


def test_more_than_the_limits_allow_is_refused(tmp_path: Path) -> None:
    bomb = archive({"zeros": bytes(1_000_000)})
    assert len(bomb) < 2000
    with pytest.raises(BlobError, match="holds 1000000 bytes unpacked; the limit is 999999 bytes"):
        unpacked(tmp_path, bomb, Limits(unpacked_bytes=999_999))
    many = archive({str(n): b"" for n in range(11)})
    (tmp_path / "many").mkdir()
    with pytest.raises(BlobError, match="holds 11 files; the limit is 10"):
        unpacked(tmp_path / "many", many, Limits(files=10))


def test_a_file_that_is_larger_than_it_says_is_refused(tmp_path: Path) -> None:
    data = bytearray(archive({"zeros": bytes(10_000)}))
    size = (10_000).to_bytes(4, "little")
    assert data.count(size) == 2
    lie = bytes(data).replace(size, (100).to_bytes(4, "little"))
    with pytest.raises(BlobError, match="no zip file that can be unpacked"):
        unpacked(tmp_path, lie)
    assert (tmp_path / "target" / "zeros").stat().st_size <= 100


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"no zip file",
        lambda data: data[: len(data) // 2],
        lambda data: data[:40] + bytes([data[40] ^ 255]) + data[41:],
        lambda data: data.replace(b"words.py", b"sword.py", 1),
    ],
    ids=["empty", "other", "cut", "content", "names differ"],
)
def test_a_broken_archive_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(BlobError) as caught:
        unpacked(tmp_path, damage(archive(PROJECT)))
    message = str(caught.value)
    assert message.startswith("blob a-jar is no zip file that can be unpacked: ")
    assert message.endswith("; submit the topology again")


def test_unpacking_can_be_given_up(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(archive(PROJECT))

    def stop() -> None:
        raise BlobError("enough")

    with pytest.raises(BlobError, match="enough"):
        unpack(tmp_path / "archive", tmp_path / "target", "blob a-jar", Limits(), stop)


def test_what_is_encrypted_is_refused(tmp_path: Path) -> None:
    data = bytearray(archive({"secret": b"data"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(BlobError, match="'secret' is encrypted; nothing is unpacked"):
        unpacked(tmp_path, bytes(data))
