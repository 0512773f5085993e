"""`storm-py submit` as a process: its progress on a terminal, and its end by a signal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storm_py.archive import size_words
from tests.fake_nimbus import Cluster
from tests.projects import Project
from tests.rpc import TIMEOUT_SECS

DATA_BYTES = 1_000_000


@pytest.fixture
def command(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Submits a project of a megabyte; temporary files are made in the folder tmp."""
    project.write("flow.py", "def topology(args):\n    return built()\n")
    project.write("pyproject.toml", "", components=False)
    (project.folder / "data").write_bytes(os.urandom(DATA_BYTES))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("TERM", "xterm")
    return [sys.executable, "-m", "storm_py", "submit", "flow.py", "words"]


def test_a_terminal_sees_how_far_it_is(cluster: Cluster, command: list[str]) -> None:
    ours, its = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=its) as process:
        os.close(its)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # how a terminal says that nobody has it any more
        assert process.stdout is not None
        assert process.stdout.read() == b"words-1-1700000000\n"
    os.close(ours)
    assert process.returncode == 0
    text = shown.decode()
    assert "sending" in text
    assert size_words(len(cluster.nimbus.uploads["/inbox/0"])) in text


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_while_it_sends_it_leaves_nothing(
    cluster: Cluster, command: list[str], tmp_path: Path, number: signal.Signals
) -> None:
    temporary, seen = tmp_path / "tmp", list[Path]()
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        cluster.nimbus.before["beginFileUpload"] = lambda: seen.extend(temporary.iterdir())
        cluster.nimbus.before["uploadChunk"] = lambda: process.send_signal(number)
        _, error = process.communicate(timeout=TIMEOUT_SECS)
    assert process.returncode == (-9 if number is signal.SIGKILL else 130)
    if number is signal.SIGTERM:
        assert error.endswith(b"Error: interrupted: nothing is submitted\n")
    assert seen == []  # the archive never has a name
    assert list(temporary.iterdir()) == []
    assert cluster.nimbus.calls == []
