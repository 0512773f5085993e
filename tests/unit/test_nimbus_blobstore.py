"""What a nimbus has on its disk: blobs, uploads and downloads; a disk that is full."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from storm_py.errors import BlobError, KeyNotFoundException
from storm_py.nimbus.blobstore import BlobStore, keys_of
from storm_py.nimbus.downloads import IDLE_SECS, MOST, Downloads
from storm_py.nimbus.inbox import Inbox
from tests.disk import little_room

KEY = "words-1-1-stormcode.ser"
JAR = "words-1-1-stormjar.jar"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "inbox", max_bytes=10_000)


def uploaded(inbox: Inbox, data: bytes = b"zip") -> Path:
    location = inbox.begin()
    inbox.append(location, data)
    inbox.finish(location)
    return inbox.finished(location)


class TestBlobs:
    def test_one_that_is_stored(self, blobs: BlobStore, tmp_path: Path) -> None:
        sha256 = blobs.put(KEY, b"code")
        assert sha256 == hashlib.sha256(b"code").hexdigest()
        again = BlobStore(tmp_path / "blobs")
        assert again.check() == []
        assert again.read(KEY) == b"code"
        info = again.info(KEY)
        assert (info.sha256, info.size_bytes) == (sha256, 4)
        assert again.keys() == {KEY}
        assert again.topologies() == {"words-1-1"}

    def test_other_content_has_another_version(self, blobs: BlobStore) -> None:
        blobs.put("a-1-1-stormcode.ser", b"one")
        blobs.put("b-1-1-stormcode.ser", b"two")
        blobs.put("c-1-1-stormcode.ser", b"one")
        one, two, same = (blobs.info(f"{name}-1-1-stormcode.ser").version for name in "abc")
        assert one == same != two

    def test_all_of_a_topology(self, blobs: BlobStore) -> None:
        jar, code, conf = keys_of("words-1-1")
        assert (jar, code) == (JAR, KEY)
        for key in (jar, code):
            blobs.put(key, b"x")
        assert not blobs.has_all("words-1-1")
        blobs.put(conf, b"x")
        assert blobs.has_all("words-1-1")
        blobs.delete_topology("words-1-1")
        assert list(blobs.folder.iterdir()) == []

    def test_an_upload_becomes_one(self, blobs: BlobStore, inbox: Inbox) -> None:
        path = uploaded(inbox)
        blobs.adopt(JAR, path, hashlib.sha256(b"zip").hexdigest())
        assert blobs.read(JAR) == b"zip"
        assert blobs.check() == []
        assert not path.exists()

    def test_what_was_not_written_to_its_end_is_removed(self, blobs: BlobStore) -> None:
        blobs.put(KEY, b"code")
        (blobs.folder / JAR).write_bytes(b"no checksum yet")
        (blobs.folder / "x-1-1-stormconf.ser.sha256").write_text("no blob any more")
        (blobs.folder / f".{JAR}.new").write_bytes(b"half")
        assert blobs.keys() == {KEY}
        assert blobs.check() == [f".{JAR}.new", JAR, "x-1-1-stormconf.ser"]
        assert sorted(path.name for path in blobs.folder.iterdir()) == [KEY, f"{KEY}.sha256"]

    def test_what_is_damaged_is_removed(self, blobs: BlobStore) -> None:
        blobs.put(KEY, b"code")
        (blobs.folder / KEY).write_bytes(b"cade")
        assert blobs.check() == [KEY]
        assert list(blobs.folder.iterdir()) == []

    @pytest.mark.parametrize("key", [KEY, "../secret", "/etc/passwd", f"{JAR}.sha256", "", "a\0b"])
    def test_one_that_is_not_there(self, blobs: BlobStore, key: str) -> None:
        blobs.put(JAR, b"x")
        for call in (blobs.info, blobs.read, blobs.open):
            with pytest.raises(KeyNotFoundException, match="there is no blob"):
                call(key)

    def test_a_disk_that_is_full(self, blobs: BlobStore) -> None:
        with little_room(), pytest.raises(BlobError) as caught:
            blobs.put(KEY, bytes(5000))
        assert str(caught.value) == (
            f"nimbus cannot store the blob {KEY} in {blobs.folder}: File too large; make room "
            "there, or have storm.local.dir of nimbus name another folder"
        )
        assert list(blobs.folder.iterdir()) == []

    def test_a_checksum_for_which_there_is_no_room(self, blobs: BlobStore, inbox: Inbox) -> None:
        path = uploaded(inbox, bytes(50))
        with little_room(50), pytest.raises(BlobError):
            blobs.adopt(JAR, path, "0" * 64)
        assert list(blobs.folder.iterdir()) == []


class TestUploads:
    def test_pieces_add_up(self, inbox: Inbox) -> None:
        location = inbox.begin()
        for piece in (b"ab", b"", b"c"):
            inbox.append(location, piece)
        with pytest.raises(BlobError, match="is not finished: send the rest of it"):
            inbox.finished(location)
        inbox.finish(location)
        assert inbox.finished(location).read_bytes() == b"abc"
        assert str(inbox.finished(location)) == location

    @pytest.mark.parametrize("location", ["", "/etc/passwd", "stormjar-x.jar", "../x.jar"])
    def test_one_that_is_none(self, inbox: Inbox, location: str) -> None:
        for call in (inbox.finish, inbox.finished, lambda here: inbox.append(here, b"x")):
            with pytest.raises(BlobError, match="there is no upload") as caught:
                call(location)
            assert "submit again" in str(caught.value)

    def test_nothing_is_appended_to_one_that_is_finished(self, inbox: Inbox) -> None:
        path = uploaded(inbox)
        with pytest.raises(BlobError, match="there is no upload"):
            inbox.append(str(path), b"more")
        assert path.read_bytes() == b"zip"

    def test_one_that_grows_too_large_is_gone(self, inbox: Inbox, tmp_path: Path) -> None:
        location = inbox.begin()
        inbox.append(location, bytes(10_000))
        with pytest.raises(BlobError) as caught:
            inbox.append(location, b"x")
        assert str(caught.value) == (
            "the upload has more than 9.8 KiB, the limit of this cluster: leave files out, or "
            "raise storm_py.submit.max.bytes in the storm.yaml of nimbus"
        )
        assert list((tmp_path / "inbox").iterdir()) == []

    def test_a_disk_that_is_full(self, inbox: Inbox, tmp_path: Path) -> None:
        location = inbox.begin()
        with little_room(), pytest.raises(BlobError) as caught:
            inbox.append(location, bytes(5000))
        assert str(caught.value) == (
            f"nimbus cannot store an upload in {tmp_path / 'inbox'}: File too large; make room "
            "there, or have storm.local.dir of nimbus name another folder"
        )
        assert list((tmp_path / "inbox").iterdir()) == []

    def test_what_is_old_is_removed(self, inbox: Inbox, tmp_path: Path) -> None:
        old, begun, new = str(uploaded(inbox)), inbox.begin(), str(uploaded(inbox))
        for path in (old, f"{begun}.part"):
            os.utime(path, (1000, 1000))
        os.utime(new, (2000, 2000))
        assert sorted(inbox.expire(2000)) == sorted([old, begun])
        assert [str(path) for path in (tmp_path / "inbox").iterdir()] == [new]
        with pytest.raises(BlobError, match="there is no upload"):
            inbox.append(begun, b"x")

    def test_the_next_nimbus_removes_what_was_not_finished(
        self, inbox: Inbox, tmp_path: Path
    ) -> None:
        inbox.begin()
        kept = uploaded(inbox)
        after = Inbox(tmp_path / "inbox", 10_000)
        after.clean()
        assert list((tmp_path / "inbox").iterdir()) == [kept]
        assert after.finished(str(kept)) == kept


class TestDownloads:
    def test_piece_by_piece(self, blobs: BlobStore) -> None:
        blobs.put(KEY, b"abcdefg")
        downloads = Downloads(3)
        session = downloads.begin(blobs.open(KEY), 0.0)
        blobs.delete(KEY)
        pieces = [downloads.next(session, 1.0) for _ in range(4)]
        assert pieces == [b"abc", b"def", b"g", b""]
        with pytest.raises(BlobError, match="there is no download"):
            downloads.next(session, 1.0)

    def test_two_at_once(self, blobs: BlobStore) -> None:
        blobs.put(KEY, b"abc")
        downloads = Downloads(2)
        one, two = (downloads.begin(blobs.open(KEY), 0.0) for _ in range(2))
        found = [downloads.next(one, 1.0), downloads.next(two, 1.0), downloads.next(one, 1.0)]
        assert found == [b"ab", b"ab", b"c"]
        downloads.close()

    def test_of_too_many_the_one_that_waits_longest_is_closed(self, blobs: BlobStore) -> None:
        blobs.put(KEY, b"abc")
        downloads = Downloads(2)
        files = [blobs.open(KEY) for _ in range(MOST + 1)]
        sessions = [downloads.begin(file, at) for at, file in enumerate(files[:-1])]
        assert downloads.next(sessions[0], MOST) == b"ab"
        downloads.begin(files[-1], MOST)
        assert [file.closed for file in files] == [False, True] + [False] * (MOST - 1)
        with pytest.raises(BlobError, match="or too many others did; begin anew"):
            downloads.next(sessions[1], MOST)
        downloads.close()
        assert all(file.closed for file in files)

    def test_one_that_nobody_asks_for_is_closed(self, blobs: BlobStore) -> None:
        blobs.put(KEY, b"abc")
        downloads = Downloads(2)
        session = downloads.begin(blobs.open(KEY), 0.0)
        downloads.expire(IDLE_SECS - 1)
        assert downloads.next(session, IDLE_SECS - 1) == b"ab"
        downloads.expire(2 * IDLE_SECS)
        with pytest.raises(BlobError, match="nobody asked for more within 600 s, or too"):
            downloads.next(session, 2 * IDLE_SECS)
