"""The archive of a project: the same files give the same bytes, and nothing in one is believed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.archive import (
    Archive,
    FileEntry,
    Manifest,
    PackedFile,
    open_archive,
    size_words,
    write_archive,
)
from storm_py.errors import BlobError, PackingError
from tests.strategies import damaged
from tests.trees import write_tree

LIMIT = 1 << 20
MANIFEST = Manifest("0.1.0", "3.11.4", "jobs.flow", "src", "flows")


def entries(root: Path) -> list[FileEntry]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return [
        FileEntry(
            path.relative_to(root).as_posix(),
            path,
            path.stat().st_size,
            bool(path.stat().st_mode & stat.S_IXUSR),
        )
        for path in files
    ]


def written(folder: Path, tree: dict[str, str]) -> Archive:
    files = entries(write_tree(folder / "tree", tree))
    return write_archive(folder / "flows.zip", files, MANIFEST, LIMIT)


def zip_of(path: Path, *names: str | zipfile.ZipInfo) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name in names:
            packed.writestr(name, b"0123456789")
    return path


def refused(path: Path, limit: int = LIMIT) -> str:
    with pytest.raises(BlobError) as caught:
        open_archive(path, limit)
    return str(caught.value)


class TestWriting:
    def test_what_is_in_it(self, tmp_path: Path) -> None:
        write_tree(tmp_path / "tree", {"run.sh": "#!"})
        (tmp_path / "tree" / "run.sh").chmod(0o755)
        archive = written(tmp_path, {"b/é.py": "ab", "a.py": "c" * 100_000})
        path = tmp_path / "flows.zip"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert archive == Archive(path, digest, path.stat().st_size, 3)
        assert archive.size_bytes < 2000
        with zipfile.ZipFile(path) as packed:
            assert packed.testzip() is None
            assert packed.namelist() == ["storm_py.json", "a.py", "b/é.py", "run.sh"]
            assert packed.read("b/é.py") == b"ab"
            modes = [info.external_attr >> 16 for info in packed.infolist()]
            assert modes == [0o100644, 0o100644, 0o100644, 0o100755]
            assert json.loads(packed.read("storm_py.json")) == {
                "format": 1,
                "storm_py": "0.1.0",
                "python": "3.11.4",
                "module": "jobs.flow",
                "sys_path": "src",
                "root": "flows",
            }

    @given(
        st.dictionaries(
            st.text("abé. ", min_size=1, max_size=3).filter(lambda name: name.strip(". ") != ""),
            st.text(max_size=20),
            max_size=5,
        ),
        st.randoms(use_true_random=False),
        st.integers(0, 2_000_000_000),
    )
    def test_the_same_files_give_the_same_bytes(
        self, tree: dict[str, str], random: object, time: int
    ) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            one, two = Path(temporary, "one"), Path(temporary, "two")
            first = written(write_tree(one, {}), tree)
            files = entries(write_tree(two / "tree", dict(reversed(tree.items()))))
            random.shuffle(files)  # type: ignore[attr-defined]
            for file in files:
                os.utime(file.path, (time, time))
                file.path.chmod(0o600)
            second = write_archive(two / "other.zip", files, MANIFEST, LIMIT)
            assert second.sha256 == first.sha256
            assert second.path.read_bytes() == first.path.read_bytes()

    def test_a_file_that_has_gone(self, tmp_path: Path) -> None:
        gone = FileEntry("gone.py", tmp_path / "gone.py", 1, False)
        with pytest.raises(PackingError) as caught:
            write_archive(tmp_path / "flows.zip", [gone], MANIFEST, LIMIT)
        assert str(caught.value) == (
            f"{tmp_path}/gone.py cannot be read: No such file or directory"
        )
        assert list(tmp_path.iterdir()) == []

    def test_too_large_when_compressed(self, tmp_path: Path) -> None:
        (tmp_path / "noise").write_bytes(os.urandom(3000))
        with pytest.raises(PackingError) as caught:
            write_archive(tmp_path / "flows.zip", entries(tmp_path), MANIFEST, 2048)
        assert str(caught.value).startswith("the archive of flows has 3.")
        assert str(caught.value).endswith(" KiB; the limit is 2.0 KiB (storm_py.submit.max.bytes)")
        assert [path.name for path in tmp_path.iterdir()] == ["noise"]

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(PackingError) as caught:
            write_archive(tmp_path / "no" / "flows.zip", [], MANIFEST, LIMIT)
        assert str(caught.value) == (
            f"cannot write the archive {tmp_path}/no/flows.zip: No such file or directory"
        )

    def test_an_archive_that_is_there_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "flows.zip").write_text("old")
        written(tmp_path, {"a": ""})
        assert open_archive(tmp_path / "flows.zip", LIMIT).manifest == MANIFEST

    @pytest.mark.parametrize(
        ("size", "words"),
        [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (100 * 2**20, "100.0 MiB"),
            (5 * 2**30, "5.0 GiB"),
            (5000 * 2**30, "5000.0 GiB"),
        ],
    )
    def test_sizes_in_words(self, size: int, words: str) -> None:
        assert size_words(size) == words


class TestReading:
    def test_what_was_written(self, tmp_path: Path) -> None:
        archive = written(tmp_path, {"b/c.py": "abc", "a": ""})
        opened = open_archive(archive.path, LIMIT)
        assert opened.manifest == MANIFEST
        assert opened.sha256 == archive.sha256
        assert opened.files[1:] == (PackedFile("a", 0, False), PackedFile("b/c.py", 3, False))
        assert opened.size_bytes == 3 + opened.files[0].size_bytes

    def test_a_jar_of_somebody_else(self, tmp_path: Path) -> None:
        path = zip_of(tmp_path / "a.jar", "META-INF/MANIFEST.MF", "resources/", "resources/a.py")
        opened = open_archive(path, LIMIT)
        assert opened.manifest is None
        assert [file.name for file in opened.files] == ["META-INF/MANIFEST.MF", "resources/a.py"]

    def test_no_archive(self, tmp_path: Path) -> None:
        path = tmp_path / "a.zip"
        assert refused(path) == (
            f"{path} is no zip file that can be read: [Errno 2] No such file or directory: '{path}'"
        )
        path.write_text("print('hello')")
        assert refused(path) == f"{path} is no zip file that can be read: File is not a zip file"

    def test_half_an_archive(self, tmp_path: Path) -> None:
        archive = written(tmp_path, {"a": "b"})
        archive.path.write_bytes(archive.path.read_bytes()[: archive.size_bytes // 2])
        assert refused(archive.path).endswith(
            "is no zip file that can be read: File is not a zip file"
        )

    @given(st.data())
    def test_any_other_bytes(self, data: st.DataObject) -> None:
        """They are refused by a BlobError, or a change in them does no harm to names or sizes."""
        with tempfile.TemporaryDirectory() as temporary:
            archive = written(Path(temporary), {"a.py": "print()", "b/c": "d" * 40})
            archive.path.write_bytes(data.draw(damaged(archive.path.read_bytes())))
            try:
                size, place = open_archive(archive.path, LIMIT).size_bytes, str(archive.path)
            except BlobError as error:
                size, place = 0, str(error)
            assert size <= LIMIT
            assert place.startswith(str(archive.path))

    @pytest.mark.parametrize(
        "name", ["/etc/passwd", "../a", "a/../../b", "a\\b", "..", "../a/", "/a/", ".", "./"]
    )
    def test_a_name_elsewhere(self, tmp_path: Path, name: str) -> None:
        path = zip_of(tmp_path / "a.zip", "ok", name)
        assert refused(path) == (
            f"{path}: {name!r} is no name below the folder that it would be unpacked to"
        )

    def test_no_name(self, tmp_path: Path) -> None:
        path = zip_of(tmp_path / "a.zip", "a")
        data = bytearray(path.read_bytes())
        at = data.index(b"PK\1\2")
        del data[at + 46]
        data[at + 28] = 0  # the length of the name
        data[data.index(b"PK\5\6") + 12] -= 1
        path.write_bytes(data)
        assert refused(path) == (
            f"{path}: '' is no name below the folder that it would be unpacked to"
        )

    def test_a_link(self, tmp_path: Path) -> None:
        link = zipfile.ZipInfo("link")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        path = zip_of(tmp_path / "a.zip", link)
        assert refused(path) == f"{path}: 'link' is no plain file"

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    @pytest.mark.parametrize("name", ["a/b", "a//b", "./a/b", "a/./b"])
    def test_a_name_twice(self, tmp_path: Path, name: str) -> None:
        path = zip_of(tmp_path / "a.zip", "a/b", name)
        assert refused(path) == f"{path}: {name!r} is there twice"

    def test_a_name_that_is_cut_off_when_read(self, tmp_path: Path) -> None:
        path = zip_of(tmp_path / "a.zip", "a_b")
        path.write_bytes(path.read_bytes().replace(b"a_b", b"a\0b"))
        assert refused(path) == (
            f"{path}: 'a\\x00b' is no name below the folder that it would be unpacked to"
        )

    @pytest.mark.parametrize("names", [("a", "a/b"), ("a/b/c", "a"), ("a", "a/")])
    def test_a_file_and_a_folder(self, tmp_path: Path, names: tuple[str, ...]) -> None:
        path = zip_of(tmp_path / "a.zip", *names)
        assert refused(path) == f"{path}: 'a' is a file and a folder"

    def test_an_encrypted_file(self, tmp_path: Path) -> None:
        path = zip_of(tmp_path / "a.zip", "a")
        data = bytearray(path.read_bytes())
        data[data.index(b"PK\1\2") + 8] |= 1
        path.write_bytes(data)
        assert refused(path) == f"{path}: 'a' is encrypted"

    def test_more_than_there_is_room_for(self, tmp_path: Path) -> None:
        path = zip_of(tmp_path / "a.zip", "a", "b")
        assert refused(path, 19) == (f"{path} holds 20 bytes unpacked; the limit is 19 bytes")
        assert len(open_archive(path, 20).files) == 2


class TestManifest:
    def test_round_trip(self) -> None:
        assert Manifest.from_bytes(MANIFEST.to_bytes(), "a.zip") == MANIFEST

    def test_in_the_folder_of_an_unpacked_archive(self, tmp_path: Path) -> None:
        assert Manifest.read(tmp_path) is None
        with zipfile.ZipFile(written(tmp_path, {"a": ""}).path) as packed:
            packed.extractall(tmp_path / "code")
        assert Manifest.read(tmp_path / "code") == MANIFEST
        (tmp_path / "code" / "storm_py.json").write_text("{}")
        with pytest.raises(BlobError, match=r"code: storm_py\.json has format None, and"):
            Manifest.read(tmp_path / "code")
        (tmp_path / "storm_py.json").mkdir()
        with pytest.raises(BlobError) as caught:
            Manifest.read(tmp_path)
        assert str(caught.value) == (f"{tmp_path}: storm_py.json cannot be read: Is a directory")

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"format": 2}, "has format 2, and this storm_py reads 1; use the same version of "),
            ({"format": None}, "has format None, and this storm_py reads 1; "),
            ({"module": None}, ": 'module' is None; expected a text"),
            ({"python": 3.11}, ": 'python' is 3.11; expected a text"),
            ({"root": ""}, ": 'root' is ''; expected a text"),
            ({"sys_path": "../x"}, ": 'sys_path' is '../x', outside the archive"),
            ({"sys_path": "/x"}, ": 'sys_path' is '/x', outside the archive"),
        ],
    )
    def test_what_is_wrong_in_one(self, changes: dict[str, object], message: str) -> None:
        plain = json.loads(MANIFEST.to_bytes())
        with pytest.raises(BlobError) as caught:
            Manifest.from_bytes(json.dumps({**plain, **changes}).encode(), "a.zip")
        assert f"a.zip: storm_py.json{'' if message[0] == ':' else ' '}{message}" in str(
            caught.value
        )

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"[]", "a.zip: storm_py.json holds a list; expected an object"),
            (b"{", "a.zip: storm_py.json is no JSON: Expecting property name"),
            (b"\xff", "a.zip: storm_py.json is no JSON: 'utf-8' codec can't decode"),
            (b"[" * 100_000, "a.zip: storm_py.json is no JSON: "),
        ],
    )
    def test_what_is_none(self, data: bytes, message: str) -> None:
        with pytest.raises(BlobError) as caught:
            Manifest.from_bytes(data, "a.zip")
        assert str(caught.value).startswith(message)

    def test_one_of_another_version_in_an_archive(self, tmp_path: Path) -> None:
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("storm_py.json", '{"format": 7}')
        assert refused(path) == (
            f"{path}: storm_py.json has format 7, and this storm_py reads 1; use the same version "
            "of storm_py where topologies are submitted and on the nodes"
        )
