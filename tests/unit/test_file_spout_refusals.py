"""FileSpout: paths and settings that cannot work are refused, each with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storm_py import InvalidTopologyException
from storm_py.spouts import FileSpout
from tests.file_spouts import first_refusal


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    assert first_refusal(tmp_path) == f"FileSpout: {tmp_path}/text does not exist"
    (tmp_path / "text").mkdir()
    assert first_refusal(tmp_path) == (
        f"FileSpout: {tmp_path}/text is no regular file; name a text file"
    )


def test_an_offset_dir_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a line\n")
    assert first_refusal(tmp_path, offsets="text") == (
        f"FileSpout: offset_dir {tmp_path}/text is a file; name a folder, which is made if need be"
    )
    assert first_refusal(tmp_path, offsets="text/offsets") == (
        f"FileSpout: offset_dir {tmp_path}/text/offsets cannot be made: Not a directory; name a "
        "folder, which is made if need be"
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"encoding": "utf8x"}, "encoding='utf8x'; expected a known encoding"),
        ({"encoding": "base64"}, "encoding='base64'; expected a known encoding"),
        ({"encoding": "utf-16"}, "encoding='utf-16'; expected one that writes the end of a line"),
        ({"errors": "ingore"}, "errors='ingore'; expected a name such as 'strict'"),
        ({"max_per_sec": 0}, "max_per_sec=0; expected more than 0"),
        ({"max_retries": -1}, "max_retries=-1; expected at least 0"),
        ({"save_secs": -1}, "save_secs=-1; expected at least 0"),
        ({"save_rows": 0}, "save_rows=0; expected at least 1"),
        ({"max_line_bytes": 0}, "max_line_bytes=0; expected at least 1"),
    ],
)
def test_settings_that_cannot_work(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidTopologyException) as caught:
        FileSpout("text", "offsets", **options)
    assert f"FileSpout got {expected}" in str(caught.value)
