"""`storm-py local` as a process of its own: exit codes, signals, and a parent that is killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import wait_until
from tests.integration.harness import (
    GENEROUS_SECS,
    Command,
    alive,
    processes_of,
    run_folders,
    run_local,
)
from tests.integration.topologies_for_tests.stopping import endless


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Command]:
    """A run over two workers through which tuples flow."""
    with Command(tmp_path, "stopping", ["--workers", "2"], [str(tmp_path)]) as command:
        command.wait_for((tmp_path / "flowing").exists, "a first tuple")
        yield command


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Command]:
    """A run that cannot be drained."""
    args = [str(tmp_path), "stuck"]
    with Command(tmp_path, "stopping", ["--workers", "2"], args) as command:
        command.wait_for((tmp_path / "flowing").exists, "a first tuple")
        yield command


def check_drained(command: Command) -> None:
    components = command.result["components"]
    assert components["relay"]["executed"] == components["numbers"]["emitted"]
    assert components["last"]["executed"] == components["relay"]["emitted"] > 0
    assert command.result["lost"] == []
    assert not command.result["forced"]
    assert not command.result["failed"]


def check_nothing_left(pids: list[int]) -> None:
    """Processes whose parent has died need a moment to follow it; files and folders do not."""
    assert run_folders() == []
    wait_until(lambda: not alive(pids), GENEROUS_SECS, f"{pids} gone")


def pids_of(command: Command) -> list[int]:
    """The processes of a run: two workers with fork server, stream manager and 3 instances each."""
    pids = [process.pid for process in processes_of(command.pid)]
    assert len(pids) == 2 * 6
    return pids


def test_a_run_that_ends_by_itself(running: Command, tmp_path: Path) -> None:
    pids = pids_of(running)
    (tmp_path / "gate").touch()
    assert running.wait() == 0
    check_drained(running)
    assert not running.result["interrupted"]
    check_nothing_left(pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains(running: Command, number: signal.Signals) -> None:
    pids = pids_of(running)
    running.send(number)
    assert running.wait() == 130
    check_drained(running)
    assert running.result["interrupted"]
    check_nothing_left(pids)


def test_a_terminal_sends_its_signal_to_the_whole_group(running: Command) -> None:
    pids = pids_of(running)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait() == 130
    check_drained(running)
    check_nothing_left(pids)


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_forces(stuck: Command, second: signal.Signals) -> None:
    pids = pids_of(stuck)
    stuck.send(signal.SIGINT)
    stuck.wait_for(lambda: "draining" in stuck.output, "the drain")
    assert not stuck.has_result
    stuck.send(second)
    assert stuck.wait() == 130
    assert stuck.result["forced"]
    assert stuck.result["interrupted"]
    assert any("stopped before it was drained" in sentence for sentence in stuck.result["lost"])
    check_nothing_left(pids)


@pytest.mark.parametrize("state", ["running", "stuck"])
def test_the_death_of_the_parent(
    state: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Nobody can tidy up then; the processes go by themselves, and the next run sweeps."""
    command: Command = request.getfixturevalue(state)
    pids = pids_of(command)
    command.send(signal.SIGKILL)
    assert command.wait() == -signal.SIGKILL
    wait_until(lambda: not alive(pids), GENEROUS_SECS, f"{pids} gone")
    [folder] = run_folders()
    assert folder.name.startswith(f"run-{command.pid}-")
    (tmp_path / "gate").touch()
    run_local(endless(tmp_path)).check_clean()
    assert run_folders() == []


# ---- two at a time -------------------------------------------------------------------------------


def texts(folder: Path, name: str, words: int) -> tuple[list[Path], Counter[str]]:
    """Two files of words that no other name has, and their plain count."""
    counts: Counter[str] = Counter()
    files = []
    for part in range(2):
        some = [f"{name}{(i * i + part) % 97}" for i in range(words)]
        counts.update(some)
        files.append(folder / f"{name}{part}")
        lines = [" ".join(some[i : i + 9]) for i in range(0, len(some), 9)]
        files[-1].write_text("\n".join(lines), encoding="utf-8")
    return files, counts


def test_two_runs_at_the_same_time(tmp_path: Path) -> None:
    """Same topology, same machine, same user: neither hears anything of the other."""
    repeat = 20
    commands = []
    for name in ("left", "right"):
        folder = tmp_path / name
        folder.mkdir()
        files, counts = texts(folder, name, words=3000)
        args = [str(repeat), *map(str, files)]
        commands.append((Command(folder, "words", ["--workers", "2"], args), counts))
    with commands[0][0], commands[1][0]:
        assert [command.wait() for command, _ in commands] == [0, 0]
    for command, counts in commands:
        [report] = command.reports("words")
        assert report["counts"] == {word: repeat * count for word, count in counts.items()}
        assert command.result["lost"] == []
        assert command.result["errors"] == 0


def test_a_run_beside_one_that_is_killed(tmp_path: Path) -> None:
    """The death of one run is nothing to the other, whose folder is not swept by it either."""
    folders = [tmp_path / name for name in ("one", "other", "third")]
    for folder in folders:
        folder.mkdir()
    one, other, third = (
        Command(folder, "stopping", [], [str(folder), "gentle"]) for folder in folders
    )
    with one, other, third:
        for command, folder in zip((one, other, third), folders, strict=True):
            command.wait_for((folder / "flowing").exists, "a first tuple")
        one.send(signal.SIGKILL)
        one.wait()
        (folders[2] / "gate").touch()
        assert third.wait() == 0
        assert {folder.name.split("-")[1] for folder in run_folders()} == {
            str(one.pid),
            str(other.pid),
        }
        run_local(endless(folders[2])).check_clean()  # a run that starts sweeps
        assert [folder.name.split("-")[1] for folder in run_folders()] == [str(other.pid)]
        (folders[1] / "gate").touch()
        assert other.wait() == 0
        check_drained(other)
