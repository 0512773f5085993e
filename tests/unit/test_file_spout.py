"""FileSpout by itself: what it emits, and what it keeps on disk."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.file_spouts import RUN_ID, Lines, SpoutTask, first_refusal

TEXT = "the cow\njumped\nover\n"


class Maker(Protocol):
    """Makes a task on a file with this text (None: the file as it is); earlier ones die first."""

    def __call__(self, text: str | bytes | None = TEXT, **options: Any) -> SpoutTask: ...


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Maker]:
    made: list[SpoutTask] = []

    def make(text: str | bytes | None = TEXT, **options: Any) -> SpoutTask:
        for earlier in made:
            earlier.release()
        if text is not None:
            (tmp_path / "text").write_bytes(text if isinstance(text, bytes) else text.encode())
        made.append(SpoutTask(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.release()


def test_lines_are_emitted_with_their_number_and_their_offset_as_id(task: Maker) -> None:
    found = task()
    assert found.spins() == [(0, [1, "the cow"]), (8, [2, "jumped"]), (15, [3, "over"])]
    assert not found.ended


def test_the_input_ends_once_every_line_is_acked(task: Maker) -> None:
    found = task()
    found.spins()
    for msg_id in (15, 0):
        found.spout.ack(msg_id)
        assert found.spins() == []
        assert not found.ended
    found.spout.ack(8)
    assert found.spins() == []
    assert found.ended


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\nb", "a\r\n\r\nb\r\n"])
def test_line_ends(task: Maker, text: str) -> None:
    emitted = task(text).spins()
    assert [values for _, values in emitted] == [
        [number, line] for number, line in enumerate(text.splitlines(), 1)
    ]


def test_only_the_byte_10_ends_a_line(task: Maker) -> None:
    """str.splitlines would cut here eight times."""
    text = "a\rb\x0bc\x0cd\x1ce\x1df\x1eg\x85h\u2028i\n"
    assert task(text).lines() == [text[:-1]]


def test_tasks_share_a_file_by_line_number(task: Maker, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"line {i}\n" for i in range(1, 8)))
    shares = [task(None, index=index, tasks=3).spins() for index in range(3)]
    numbers = [[number for _, (number, _) in share] for share in shares]
    assert numbers == [[1, 4, 7], [2, 5], [3, 6]]
    assert shares[1] == [(7, [2, "line 2"]), (28, [5, "line 5"])]


def test_a_failed_line_is_emitted_again_at_once_then_after_longer_and_longer_waits(
    task: Maker,
) -> None:
    found = task("poison\n")
    found.spins()
    for wait in (0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10):
        found.spout.fail(0)
        found.now += wait - 0.001
        assert not wait or found.spins() == []
        found.now += 0.002
        assert found.spins() == [(0, [1, "poison"])]


def test_retries_go_before_new_lines(task: Maker) -> None:
    found = task(TEXT, pending=2)
    assert [msg_id for msg_id, _ in found.spins()] == [0, 8]
    found.spout.fail(8)
    found.spout.ack(0)
    assert [msg_id for msg_id, _ in found.spins()] == [8, 15]


def test_a_line_that_fails_too_often_is_reported_and_skipped(task: Maker, tmp_path: Path) -> None:
    found = task("fine\npoison\n", max_retries=2)
    found.spins()
    found.spout.ack(0)
    for _ in range(3):
        found.spout.fail(5)
        found.now += 60
        found.spins()
    assert found.ended
    assert found.errors == [
        f"line 2 of {tmp_path}/text (byte 5) failed 3 times and is skipped (max_retries=2)"
    ]
    assert task(None).spins() == [], "and it is not emitted by a second run either"


def test_open_lines_are_bounded_also_when_all_of_them_fail(task: Maker) -> None:
    found = task("x\n" * 100, pending=5)
    for _ in range(20):
        for msg_id, _ in found.spins():
            found.spout.fail(msg_id)
        found.now += 60
    assert found.seen == {0, 2, 4, 6, 8}


def test_the_rate_is_limited_on_average(task: Maker) -> None:
    found = task("x\n" * 1000, max_per_sec=50)
    counts = []
    for _ in range(4):
        before = len(found.seen)
        for _ in range(100):
            found.now += 0.01
            found.spins()
        counts.append(len(found.seen) - before)
    assert sum(counts) in (200, 201)
    assert set(counts) <= {49, 50, 51}
    found.now += 60
    assert len(found.spins()) <= 6, "a pause is not made up for"


# ---- what survives ---------------------------------------------------------------------------


def test_a_successor_emits_what_was_not_acked_and_goes_on(task: Maker) -> None:
    found = task("a\nb\nc\nd\n", pending=3)
    found.spins()
    found.spout.ack(2)
    found.saves()
    assert [values for _, values in task(None).spins()] == [[1, "a"], [3, "c"], [4, "d"]]


def test_what_was_acked_since_the_last_save_is_repeated(task: Maker) -> None:
    found = task()
    found.saves()
    for msg_id, _ in found.spins():
        found.spout.ack(msg_id)
    assert task(None).lines() == ["the cow", "jumped", "over"]


def test_an_orderly_end_saves(task: Maker) -> None:
    found = task()
    found.spins()
    found.spout.ack(0)
    found.close()
    assert task(None).lines() == ["jumped", "over"]


def test_a_run_over_a_file_that_is_done_ends_at_once_and_says_why(
    task: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    found = task()
    for msg_id, _ in found.spins():
        found.spout.ack(msg_id)
    found.spins()
    assert found.ended
    assert caplog.messages == []
    again = task(None)
    assert again.spins() == []
    assert again.ended
    assert caplog.messages == [
        f"every line of {again.spout.path} was acked before, says {again.offsets}; remove that to "
        "read the file again"
    ]


def test_saves_are_bounded_by_rows_and_time(task: Maker) -> None:
    found = task("x\n" * 100, save_rows=10, save_secs=5.0)

    def stored() -> list[int] | None:
        path = found.offsets
        return json.loads(path.read_text())["lowest"] if path.exists() else None

    emitted = [msg_id for msg_id, _ in found.spins()]
    for msg_id in emitted[:9]:
        found.spout.ack(msg_id)
    assert stored() is None
    found.spout.ack(emitted[9])
    assert stored() == [20, 11]
    found.spout.ack(emitted[10])
    found.now += 4.9
    found.spins()
    assert stored() == [20, 11]
    found.now += 0.2
    found.spins()
    assert stored() == [22, 12]
    before = found.offsets.stat().st_mtime_ns
    found.now += 60
    found.spins()
    assert found.offsets.stat().st_mtime_ns == before, "nothing changed, nothing is written"


def test_a_draft_that_was_not_finished_does_no_harm(task: Maker) -> None:
    found = task()
    found.spins()
    found.spout.ack(0)
    found.saves()
    found.offsets.with_suffix(".new").write_text('{"format": 1, "pa')
    assert task(None).lines() == ["jumped", "over"]


# ---- following -------------------------------------------------------------------------------


def test_a_followed_file_has_no_end_and_its_lines_are_whole(task: Maker, tmp_path: Path) -> None:
    found = task("one\ntw", follow=True)
    assert found.lines() == ["one"]
    found.spout.ack(0)
    assert found.lines() == []
    with (tmp_path / "text").open("a") as text:
        text.write("o\nthr")
    assert found.spins() == [(4, [2, "two"])]
    with (tmp_path / "text").open("a") as text:
        text.write("ee\n")
    assert found.lines() == ["three"]
    assert not found.ended


@pytest.mark.parametrize("cut", [True, False])
def test_a_followed_file_may_only_grow(task: Maker, tmp_path: Path, cut: bool) -> None:
    found = task(TEXT, follow=True)
    found.spins()
    if cut:
        (tmp_path / "text").write_text("x\n")
        expected = "was cut to 2 bytes while it was read up to byte 20"
    else:
        (tmp_path / "other").write_text(TEXT + "more\n")
        (tmp_path / "other").rename(tmp_path / "text")
        expected = "was replaced by another file while it was followed"
    with pytest.raises(ValueError, match=expected):
        found.spins()


# ---- bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({"errors": "replace"}, ["gr\ufffdn", "ok"]),
        ({"encoding": "latin-1"}, ["gr\xfcn", "ok"]),
        ({"encoding": None}, [b"gr\xfcn", b"ok"]),
    ],
)
def test_bytes_are_decoded_as_told(
    task: Maker, options: dict[str, Any], lines: Sequence[object]
) -> None:
    assert task(b"gr\xfcn\nok\n", **options).lines() == lines


def test_bytes_that_are_no_text_are_an_error_that_says_where(task: Maker, tmp_path: Path) -> None:
    found = task(b"ok\ngr\xfcn\n")
    with pytest.raises(ValueError, match="no utf-8") as caught:
        found.spins()
    assert str(caught.value) == (
        f"line 2 of {tmp_path}/text (byte 3) is no utf-8: invalid start byte at byte 5; give the "
        "FileSpout the right encoding, errors='replace', or encoding=None for lines as bytes"
    )


def test_a_line_that_is_too_long_is_an_error_that_says_where(task: Maker) -> None:
    assert task("a\n1234\n", max_line_bytes=5).lines() == ["a", "1234"]
    found = task("a\n12345\n", max_line_bytes=5, offsets="other")
    with pytest.raises(ValueError, match=r"line 2 of .*/text \(byte 2\) is longer than 5 bytes"):
        found.spins()


# ---- refusals --------------------------------------------------------------------------------


def other_content(folder: Path, found: SpoutTask) -> None:
    (folder / "text").write_text("something else of the same length"[: len(TEXT) - 1] + "\n")


def shorter(folder: Path, found: SpoutTask) -> None:
    (folder / "text").write_text(TEXT[:8])


def inside_a_line(folder: Path, found: SpoutTask) -> None:
    (folder / "text").write_text("the cow\njumped\nove that fence\n")


def no_json(folder: Path, found: SpoutTask) -> None:
    found.offsets.write_text("{")


def from_the_future(folder: Path, found: SpoutTask) -> None:
    found.offsets.write_text('{"format": 2}')


def edited(folder: Path, found: SpoutTask) -> None:
    found.offsets.write_text(found.offsets.read_text().replace('"next": [20', '"next": [7'))


def incomplete(folder: Path, found: SpoutTask) -> None:
    found.offsets.write_text('{"format": 1, "path": 3}')


@pytest.mark.parametrize(
    ("spoil", "options", "expected"),
    [
        (other_content, {}, "is not the file that offset file"),
        (shorter, {}, "was read up to byte 20 then and has 8 bytes of other content now"),
        (inside_a_line, {}, "is not the file that offset file"),
        (no_json, {}, "is damaged: it is not JSON"),
        (from_the_future, {}, "is damaged: it is not of format 1"),
        (edited, {}, "is damaged: its offsets contradict each other"),
        (incomplete, {}, "is damaged: something is missing or of the wrong type: 3 is no str"),
        (None, {"file": "text2"}, "belongs to {folder}/text, not to {folder}/text2"),
        (
            None,
            {"tasks": 2},
            "was written by task 0 of 1, and this is task 0 of 2: keep the number",
        ),
    ],
)
def test_an_offset_file_that_does_not_fit(
    task: Maker, tmp_path: Path, spoil: Any, options: dict[str, Any], expected: str
) -> None:
    found = task()
    for msg_id, _ in found.spins():
        found.spout.ack(msg_id)
    found.saves()
    found.release()
    (tmp_path / "text2").write_text(TEXT)
    if spoil is not None:
        spoil(tmp_path, found)
    message = first_refusal(tmp_path, **options)
    assert expected.format(folder=tmp_path) in message
    assert str(tmp_path / "offsets") in message
    assert "remove" in message


def test_offsets_that_another_run_uses(task: Maker, tmp_path: Path) -> None:
    task().release()
    with next((tmp_path / "offsets").glob("*.lock")).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        message = first_refusal(tmp_path, step_secs=0.5)
    assert message == (
        f"the offsets in {tmp_path}/offsets are in use by another run; end it, or give each run "
        "an offset_dir of its own"
    )


def test_offsets_that_a_known_run_uses_are_not_waited_for(task: Maker, tmp_path: Path) -> None:
    found = task()
    found.release()
    lock_file = tmp_path / "offsets" / "source-0.lock"
    assert lock_file.read_text() == RUN_ID
    lock_file.write_text("lines-1-1700000000")
    with lock_file.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        message = first_refusal(tmp_path)  # its clock stands still: it would wait for ever
    assert message == (
        f"the offsets in {tmp_path}/offsets are in use by another run, lines-1-1700000000; end it, "
        "or give each run an offset_dir of its own"
    )


def test_a_lock_names_the_run_that_holds_it_and_no_earlier_one(task: Maker, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "source-0.lock").write_text("a run with a longer name-1-1700000000")
    task()
    assert (tmp_path / "offsets" / "source-0.lock").read_text() == RUN_ID


def test_a_subclass_says_what_is_emitted_for_a_line(task: Maker) -> None:
    found = task('{"a": 1}\n', kind=Lines)
    assert found.spins() == [(0, [{"a": 1}])]
