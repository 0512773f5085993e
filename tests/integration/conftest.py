"""Fixtures of tests with real processes: a place for run folders, left empty by every test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.harness import run_folders


@pytest.fixture(scope="session", autouse=True)
def runtime_folder() -> Iterator[Path]:
    """Run folders go below a folder of this test run, and hash seeds are drawn for each worker.

    Not below tmp_path: addresses of sockets must be short.
    """
    folder = Path(tempfile.mkdtemp(prefix="storm-py-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        patch.delenv("PYTHONHASHSEED", raising=False)
        yield folder
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def no_leaked_folder(no_leaked_process: None) -> Iterator[None]:
    """Fail a test that leaves the folder of a run behind, with its sockets, pages and logs."""
    yield
    left = run_folders()
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    if left:
        pytest.fail(f"left behind by this test: {[str(path) for path in left]}", pytrace=False)
