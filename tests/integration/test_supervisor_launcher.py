"""Launcher: real processes, and supervisors that die at any point."""

from __future__ import annotations

import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from storm_py.heartbeat import Heartbeat
from storm_py.supervisor import launcher as launcher_module
from storm_py.supervisor.assignment import LocalAssignment
from storm_py.supervisor.folders import LocalFolder
from storm_py.supervisor.launcher import WORKER_ID_VARIABLE, Exited, Gone, Launcher, Recovered
from storm_py.supervisor.process_table import Identity, has_in_environment, process_info
from storm_py.supervisor.slot_actions import Severity
from storm_py.supervisor.worker_record import WorkerRecord
from tests.helpers import wait_until
from tests.integration.harness import GENEROUS_SECS, ROOT
from tests.integration.launching import ASSIGNMENT, PORT, WAITING, WORKER

MARKER = f"{WORKER_ID_VARIABLE}={WORKER}".encode()
STUBBORN = ["sh", "-c", "trap '' TERM; touch ready; sleep 1000; sleep 1000"]


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    return LocalFolder(tmp_path / "local")


@pytest.fixture
def working(tmp_path: Path) -> Path:
    path = tmp_path / "working"
    path.mkdir()
    return path


@pytest.fixture
def launcher(folder: LocalFolder) -> Iterator[Launcher]:
    launcher = Launcher(folder)
    yield launcher
    launcher.close()


def launch(launcher: Launcher, working: Path, command: list[str], worker_id: str = WORKER) -> int:
    return launcher.launch(worker_id, PORT, ASSIGNMENT, command, os.environ, working)


def ends(launcher: Launcher, count: int) -> list[Exited | Gone]:
    """The next `count` events."""
    events: list[Exited | Gone] = []

    def look() -> bool:
        events.extend(launcher.poll(0.05))
        return len(events) >= count

    wait_until(look, GENEROUS_SECS, f"{count} events, not {events}")
    return events


def wait_for(path: Path) -> Path:
    wait_until(path.exists, GENEROUS_SECS, f"{path} is there")
    return path


def wait_for_program(pid: int, name: str) -> None:
    """Until a process is this program: shells block signals and open files on their way to it."""
    comm = Path(f"/proc/{pid}/comm")
    wait_until(lambda: comm.read_text() == f"{name}\n", GENEROUS_SECS, f"{pid} is {name}")


def is_there(pid: int) -> bool:
    info = process_info(pid)
    return info is not None and not info.ended


def carriers() -> list[int]:
    """Processes that carry the worker's id."""
    return [pid for pid in psutil.pids() if has_in_environment(pid, MARKER)]


# ---- a worker's program ------------------------------------------------------------------------


def test_it_is_recorded_before_it_runs(
    launcher: Launcher, folder: LocalFolder, working: Path
) -> None:
    record = folder.record(WORKER)
    pid = launch(launcher, working, ["cp", str(record), "seen.json"])
    assert ends(launcher, 2) == [Exited(WORKER, 0), Gone(WORKER)]
    seen = WorkerRecord.read(working / "seen.json")
    assert seen == WorkerRecord.read(record)
    assert (seen.worker_id, seen.port, seen.assignment) == (WORKER, PORT, ASSIGNMENT)
    assert seen.process.pid == pid


def test_it_is_a_session_of_its_own_with_clean_signals(launcher: Launcher, working: Path) -> None:
    pid = launch(launcher, working, WAITING)
    wait_for_program(pid, "sleep")
    info = process_info(pid)
    assert info is not None
    assert (info.group, info.session) == (pid, pid)
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    ignored = {line.split(":")[0]: line.split()[1] for line in status if line.startswith("Sig")}
    for name in ("SigIgn", "SigBlk"):  # Python ignores SIGPIPE, for itself alone
        mask = int(ignored[name], 16)
        assert [number for number in signal.valid_signals() if mask >> (number - 1) & 1] == []
    launcher.end(WORKER, Severity.TERM)
    assert ends(launcher, 2) == [Exited(WORKER, -signal.SIGTERM), Gone(WORKER)]


def test_it_inherits_no_open_file(launcher: Launcher, folder: LocalFolder, working: Path) -> None:
    theirs, ours = os.pipe()
    os.set_inheritable(ours, True)
    pid = launch(launcher, working, WAITING)
    wait_for_program(pid, "sleep")
    logs = folder.logs("words-1-1", PORT)
    fds = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert fds == {
        0: "/dev/null",
        1: str(logs / "worker.log.out"),
        2: str(logs / "worker.log.err"),
    }
    os.close(ours)
    os.close(theirs)
    launcher.end(WORKER, Severity.TERM)
    assert ends(launcher, 2) == [Exited(WORKER, -signal.SIGTERM), Gone(WORKER)]


def test_its_files_are_for_its_user_alone(
    launcher: Launcher, folder: LocalFolder, working: Path
) -> None:
    launch(launcher, working, ["sh", "-c", "mkdir made; touch made/file"])
    ends(launcher, 2)
    logs = folder.logs("words-1-1", PORT)
    for path in (working / "made", working / "made" / "file", folder.path, logs, *logs.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_its_environment_is_what_it_is_given(launcher: Launcher, working: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "SPECIAL": "a 'b' $c", **marked_environment()}
    launcher.launch(WORKER, PORT, ASSIGNMENT, ["sh", "-c", "env > env"], environment, working)
    ends(launcher, 2)
    lines = (working / "env").read_text().splitlines()
    assert "SPECIAL=a 'b' $c" in lines
    assert MARKER.decode() in lines
    assert not any(line.startswith("HOME=") for line in lines)


def marked_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name == "STORM_PY_TEST_RUN"}


def test_its_arguments_reach_it_as_they_are(launcher: Launcher, working: Path) -> None:
    arguments = ["a b", "$HOME", "'", '"', "*", "", "-n", "ä"]
    launch(launcher, working, ["sh", "-c", 'printf "%s\\n" "$@" > arguments', "sh", *arguments])
    ends(launcher, 2)
    assert (working / "arguments").read_text().split("\n") == [*arguments, ""]


def test_its_output_is_appended_to_files(
    launcher: Launcher, folder: LocalFolder, working: Path
) -> None:
    for n in (1, 2):
        launch(launcher, working, ["sh", "-c", f"echo out {n}; echo err {n} >&2"])
        ends(launcher, 2)
    logs = folder.logs("words-1-1", PORT)
    assert (logs / "worker.log.out").read_text() == "out 1\nout 2\n"
    assert (logs / "worker.log.err").read_text() == "err 1\nerr 2\n"


def test_large_output_of_earlier_workers_is_put_aside(
    launcher: Launcher, folder: LocalFolder, working: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher_module, "OUTPUT_BYTES", 5)
    for n in range(1, 7):
        launch(launcher, working, ["echo", f"line {n}"])
        ends(launcher, 2)
    logs = folder.logs("words-1-1", PORT)
    outputs = {path.name: path.read_text() for path in logs.glob("worker.log.out*")}
    assert outputs == {
        "worker.log.out": "line 6\n",
        "worker.log.out.1": "line 5\n",
        "worker.log.out.2": "line 4\n",
        "worker.log.out.3": "line 3\n",
    }


@pytest.mark.parametrize(
    ("command", "returncode"),
    [(["sh", "-c", "exit 3"], 3), (["sh", "-c", "kill -9 $$"], -9), (["true"], 0)],
)
def test_its_exit_is_told(
    launcher: Launcher, working: Path, command: list[str], returncode: int
) -> None:
    launch(launcher, working, command)
    assert ends(launcher, 2) == [Exited(WORKER, returncode), Gone(WORKER)]
    assert launcher.poll() == []


def test_a_program_that_is_not_there_is_an_exit_with_a_reason(
    launcher: Launcher, folder: LocalFolder, working: Path
) -> None:
    launch(launcher, working, ["/no/such/program"])
    assert ends(launcher, 2) == [Exited(WORKER, 127), Gone(WORKER)]
    err = folder.logs("words-1-1", PORT) / "worker.log.err"
    assert "/no/such/program" in err.read_text()


def test_a_working_folder_that_is_not_there_is_an_exit_with_a_reason(
    launcher: Launcher, folder: LocalFolder, tmp_path: Path
) -> None:
    launch(launcher, tmp_path / "missing", ["true"])
    [exited, gone] = ends(launcher, 2)
    assert isinstance(exited, Exited)
    assert exited.returncode not in (0, None)
    assert gone == Gone(WORKER)
    err = folder.logs("words-1-1", PORT) / "worker.log.err"
    assert "missing" in err.read_text()


def test_a_worker_that_cannot_be_recorded_does_not_run(
    launcher: Launcher, folder: LocalFolder, working: Path
) -> None:
    folder.record(WORKER).mkdir(parents=True)  # where its record should be
    with pytest.raises(OSError, match=r"worker\.json"):
        launch(launcher, working, WAITING)
    assert carriers() == []
    assert list(working.iterdir()) == []
    assert launcher.poll() == []


def test_a_selector_is_woken_by_an_exit(launcher: Launcher, working: Path) -> None:
    poller = select.poll()
    poller.register(launcher.fileno(), select.POLLIN)
    launch(launcher, working, WAITING)
    wait_for(working / "ready")
    assert poller.poll(0) == []
    launcher.end(WORKER, Severity.KILL)
    assert poller.poll(GENEROUS_SECS * 1000) == [(launcher.fileno(), select.POLLIN)]
    assert ends(launcher, 2) == [Exited(WORKER, -9), Gone(WORKER)]


def test_several_workers_are_told_apart(launcher: Launcher, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        launch(launcher, tmp_path / name, WAITING, name)
        wait_for(tmp_path / name / "ready")
    launcher.end("one", Severity.TERM)
    assert ends(launcher, 2) == [Exited("one", -15), Gone("one")]
    assert launcher.poll() == []
    launcher.end("one", Severity.KILL)  # gone already
    launcher.end("two", Severity.KILL)
    assert ends(launcher, 2) == [Exited("two", -9), Gone("two")]


def test_a_worker_that_is_gone_is_cleaned_up_but_for_its_logs(
    launcher: Launcher, folder: LocalFolder, working: Path
) -> None:
    launch(launcher, working, ["echo", "hello"])
    ends(launcher, 2)
    launcher.cleanup(WORKER)
    assert list(folder.workers.iterdir()) == []
    assert (folder.logs("words-1-1", PORT) / "worker.log.out").read_text() == "hello\n"
    launcher.cleanup(WORKER)


# ---- ending ------------------------------------------------------------------------------------


def test_a_worker_that_ignores_term_is_killed(launcher: Launcher, working: Path) -> None:
    pid = launch(launcher, working, STUBBORN)
    wait_for(working / "ready")
    launcher.end(WORKER, Severity.TERM)
    assert launcher.poll(0.0) == []
    assert is_there(pid)
    launcher.end(WORKER, Severity.KILL)
    assert ends(launcher, 2) == [Exited(WORKER, -9), Gone(WORKER)]
    assert carriers() == []


def test_a_child_in_the_group_is_killed_with_the_worker(launcher: Launcher, working: Path) -> None:
    script = "sleep 1000 & echo $! > tmp; mv tmp child; wait"
    launch(launcher, working, ["sh", "-c", script])
    child = int(wait_for(working / "child").read_text())
    launcher.end(WORKER, Severity.KILL)
    assert ends(launcher, 2) == [Exited(WORKER, -9), Gone(WORKER)]
    assert not is_there(child)


def test_a_grandchild_with_a_session_of_its_own_is_killed_with_the_worker(
    launcher: Launcher, working: Path
) -> None:
    script = "setsid sh -c 'echo $$ > tmp; mv tmp child; exec sleep 1000' & wait"
    pid = launch(launcher, working, ["sh", "-c", script])
    child = int(wait_for(working / "child").read_text())
    info = process_info(child)
    assert info is not None
    assert info.session != pid
    launcher.end(WORKER, Severity.KILL)
    assert ends(launcher, 2) == [Exited(WORKER, -9), Gone(WORKER)]
    assert not is_there(child)


def test_what_survives_its_worker_is_found_without_parent_and_group(
    launcher: Launcher, working: Path
) -> None:
    script = "setsid sh -c 'echo $$ > tmp; mv tmp child; exec sleep 1000' & wait"
    pid = launch(launcher, working, ["sh", "-c", script])
    child = int(wait_for(working / "child").read_text())
    os.kill(pid, signal.SIGKILL)
    assert ends(launcher, 1) == [Exited(WORKER, -9)]
    assert launcher.poll() == []  # not gone: the child lives
    assert is_there(child)
    launcher.end(WORKER, Severity.KILL)
    assert ends(launcher, 1) == [Gone(WORKER)]
    assert not is_there(child)


def test_a_child_without_environment_is_known_from_before_its_parent_ended(
    launcher: Launcher, working: Path
) -> None:
    script = "setsid env -i /bin/sh -c 'echo $$ > tmp; /bin/mv tmp child; exec /bin/sleep 1000'"
    launch(launcher, working, ["sh", "-c", f"{script} & wait"])
    child = int(wait_for(working / "child").read_text())
    assert not has_in_environment(child, MARKER)
    launcher.end(WORKER, Severity.TERM)
    assert ends(launcher, 1) == [Exited(WORKER, -15)]
    assert is_there(child)
    launcher.end(WORKER, Severity.KILL)
    assert ends(launcher, 1) == [Gone(WORKER)]
    assert not is_there(child)


@pytest.mark.parametrize("main_ends", [False, True])
def test_a_child_without_environment_and_parent_is_known_by_its_group(
    launcher: Launcher, working: Path, main_ends: bool
) -> None:
    script = "(env -i /bin/sh -c 'echo $$ > tmp; /bin/mv tmp child; exec /bin/sleep 1000' &)"
    pid = launch(launcher, working, ["sh", "-c", f"{script}; exec sleep 1000"])
    child = int(wait_for(working / "child").read_text())
    info = process_info(child)
    assert info is not None
    assert (info.group, info.parent == pid) == (pid, False)
    assert not has_in_environment(child, MARKER)
    if main_ends:
        os.kill(pid, signal.SIGKILL)
        assert ends(launcher, 1) == [Exited(WORKER, -9)]
    launcher.end(WORKER, Severity.KILL)
    assert ends(launcher, 1 if main_ends else 2)[-1] == Gone(WORKER)
    assert not is_there(child)


# ---- supervisors that die ----------------------------------------------------------------------


class Supervisor:
    """The program of `tests.integration.launching`."""

    def __init__(self, folder: LocalFolder, working: Path, dies: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.launching", folder.path, working, dies],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def launched(self) -> int:
        """The process id of the worker."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill it as `kill -9` does, if it has not done so itself."""
        self._process.send_signal(signal.SIGKILL)

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait(GENEROUS_SECS)


def test_a_worker_survives_its_supervisor_and_is_adopted_by_the_next(
    folder: LocalFolder, working: Path
) -> None:
    first = Supervisor(folder, working, "never")
    pid = first.launched()
    wait_for(working / "ready")
    first.kill()
    assert first.ended() == -9
    assert is_there(pid)
    beat = Heartbeat(WORKER, 1, 1, 12.5)
    beat.write(folder.heartbeat(WORKER))
    second = Launcher(folder)
    [recovered] = second.recover()
    assert recovered == Recovered(WorkerRecord.read(folder.record(WORKER)), True, beat)
    assert recovered.record.process.pid == pid
    assert second.poll() == []
    second.end(WORKER, Severity.TERM)
    assert ends(second, 2) == [Exited(WORKER, None), Gone(WORKER)]
    second.close()


def test_a_worker_that_died_meanwhile_is_told_as_dead(folder: LocalFolder, working: Path) -> None:
    first = Supervisor(folder, working, "never")
    pid = first.launched()
    first.kill()
    first.ended()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_there(pid), GENEROUS_SECS)
    second = Launcher(folder)
    [recovered] = second.recover()
    assert not recovered.alive
    assert recovered.heartbeat is None
    second.end(WORKER, Severity.KILL)
    assert ends(second, 1) == [Gone(WORKER)]
    second.close()


def test_no_worker_runs_that_was_not_recorded(folder: LocalFolder, working: Path) -> None:
    supervisor = Supervisor(folder, working, "before")
    assert supervisor.ended() == -9
    wait_until(lambda: not carriers(), GENEROUS_SECS, "the gate falls")
    assert list(working.iterdir()) == []
    launcher = Launcher(folder)
    assert launcher.recover() == []
    assert list(folder.workers.iterdir()) == []
    launcher.close()


def test_a_worker_whose_supervisor_died_before_it_might_run_is_told_as_dead(
    folder: LocalFolder, working: Path
) -> None:
    supervisor = Supervisor(folder, working, "after")
    assert supervisor.ended() == -9
    wait_until(lambda: not carriers(), GENEROUS_SECS, "the gate falls")
    assert list(working.iterdir()) == []
    launcher = Launcher(folder)
    [recovered] = launcher.recover()
    assert not recovered.alive
    launcher.close()


def test_a_launcher_that_is_closed_lets_its_workers_run(folder: LocalFolder, working: Path) -> None:
    first = Launcher(folder)
    pid = launch(first, working, WAITING)
    wait_for(working / "ready")
    first.close()
    assert is_there(pid)
    second = Launcher(folder)
    [recovered] = second.recover()
    assert recovered.alive
    second.end(WORKER, Severity.KILL)
    assert ends(second, 2) == [Exited(WORKER, None), Gone(WORKER)]
    second.close()
    os.waitpid(pid, 0)


def test_what_a_worker_was_told_is_recorded(
    launcher: Launcher, folder: LocalFolder, working: Path
) -> None:
    launch(launcher, working, WAITING)
    wait_for(working / "ready")
    newer = LocalAssignment("words-1-1", 2, ((1, 1),), "c1", "ann")
    before = WorkerRecord.read(folder.record(WORKER))
    launcher.told(WORKER, newer)
    assert WorkerRecord.read(folder.record(WORKER)) == before.with_assignment(newer)
    launcher.end(WORKER, Severity.KILL)
    ends(launcher, 2)


# ---- strangers ---------------------------------------------------------------------------------


def recorded(folder: LocalFolder, process: Identity) -> None:
    folder.worker(WORKER).mkdir(parents=True)
    WorkerRecord(WORKER, PORT, ASSIGNMENT, process).write(folder.record(WORKER))


@pytest.mark.parametrize("other", ["start_ticks", "boot_id"])
def test_a_process_id_that_is_used_again_is_never_killed(
    launcher: Launcher, folder: LocalFolder, other: str
) -> None:
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    info = process_info(stranger.pid)
    assert info is not None
    mine = info.identity
    if other == "start_ticks":
        recorded(folder, Identity(mine.pid, mine.start_ticks - 1, mine.boot_id))
    else:
        recorded(folder, Identity(mine.pid, mine.start_ticks, "another boot"))
    [recovered] = launcher.recover()
    assert not recovered.alive
    launcher.end(WORKER, Severity.TERM)
    launcher.end(WORKER, Severity.KILL)
    assert ends(launcher, 1) == [Gone(WORKER)]
    assert is_there(stranger.pid)
    stranger.kill()
    stranger.wait()


def test_a_stranger_beside_a_worker_is_never_killed(launcher: Launcher, working: Path) -> None:
    stranger = subprocess.Popen(["sleep", "1000"], env={**os.environ, WORKER_ID_VARIABLE: "other"})
    launch(launcher, working, WAITING)
    wait_for(working / "ready")
    launcher.end(WORKER, Severity.KILL)
    assert ends(launcher, 2) == [Exited(WORKER, -9), Gone(WORKER)]
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_worker_whose_record_is_broken_is_ended(
    folder: LocalFolder, working: Path, content: str
) -> None:
    first = Launcher(folder)
    pid = launch(first, working, WAITING)
    wait_for(working / "ready")
    first.close()
    folder.record(WORKER).write_text(content)
    second = Launcher(folder)
    assert second.recover() == []
    assert os.waitpid(pid, 0) == (pid, signal.SIGKILL)
    assert list(folder.workers.iterdir()) == []
    second.close()


def test_a_heartbeat_of_another_worker_is_none_of_this_one(
    launcher: Launcher, folder: LocalFolder
) -> None:
    folder.worker(WORKER).mkdir(parents=True)
    assert launcher.heartbeat(WORKER) is None
    Heartbeat("another", 1, 1, 1.0).write(folder.heartbeat(WORKER))
    assert launcher.heartbeat(WORKER) is None
    Heartbeat(WORKER, 1, 1, 1.0).write(folder.heartbeat(WORKER))
    assert launcher.heartbeat(WORKER) == Heartbeat(WORKER, 1, 1, 1.0)
