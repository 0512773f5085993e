"""WorkerSpec: what a worker is told by whoever launches it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storm_py.errors import LocalStateError
from storm_py.worker_spec import WorkerSpec

SPEC = WorkerSpec(
    "w-1", "s-1", "here", 6700, "words-1-2", "00ff", "/c", "/l", "/h", "/k", {"a.key": [1, None]}
)


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    SPEC.write(path)
    assert WorkerSpec.read(path) == SPEC
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: "),
        (b"{", "cannot be read: "),
        (b"[]", "is no specification of a worker, format 1"),
        (b'{"format": 2}', "is no specification of a worker, format 1"),
        (b'{"format": 1, "more": 1}', "has other fields than expected: code_checksum, .*, more"),
    ],
)
def test_what_is_no_specification(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "spec.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LocalStateError, match=f"{path} {message}"):
        WorkerSpec.read(path)


def test_the_form_of_the_file(tmp_path: Path) -> None:
    SPEC.write(tmp_path / "spec.json")
    assert json.loads((tmp_path / "spec.json").read_text())["format"] == 1
