"""`storm-py nimbus` and `storm-py supervisor`: what keeps them from starting, and their end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storm_py.dev_zookeeper import DevZooKeeper
from tests.helpers import wait_until
from tests.integration.clusters import GENEROUS_SECS, free_ports
from tests.zookeepers import HOST

DAEMONS = ["nimbus", "supervisor"]


class Daemon:
    """One of the commands, running."""

    def __init__(self, output: Path, arguments: list[str]) -> None:
        self._output = output
        with open(output, "wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "storm_py", *arguments],
                stdout=file,
                stderr=file,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    @property
    def output(self) -> str:
        return self._output.read_text("utf-8")

    def wait_said(self, text: str) -> None:
        wait_until(lambda: text in self.output or self.process.poll() is not None, GENEROUS_SECS)
        assert text in self.output

    def wait(self) -> int:
        return self.process.wait(GENEROUS_SECS)


Start = Callable[..., Daemon]


@pytest.fixture
def start(zookeeper: DevZooKeeper, tmp_path: Path) -> Iterator[Start]:
    """Start one of them, with a ZooKeeper, a folder and a port that are all right."""
    daemons: list[Daemon] = []
    with free_ports(1) as ports:

        def started(name: str, **settings: object) -> Daemon:
            values = {
                "storm.local.dir": tmp_path / "local",
                "storm.zookeeper.port": zookeeper.port,
                "storm.zookeeper.servers": f'["{HOST}"]',
                "storm.zookeeper.root": f"/{tmp_path.name}",
                "nimbus.thrift.port": ports[0],
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
            flags = [text for key, value in values.items() for text in ("-c", f"{key}={value}")]
            daemons.append(Daemon(tmp_path / f"output{len(daemons)}", [name, *flags]))
            return daemons[-1]

        yield started
        for daemon in daemons:
            daemon.process.kill()
            daemon.process.wait()


@pytest.mark.parametrize("name", DAEMONS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_it_is_stopped(start: Start, name: str, number: int) -> None:
    daemon = start(name)
    daemon.wait_said("leads" if name == "nimbus" else "is up")
    daemon.process.send_signal(number)
    assert daemon.wait() == 130
    assert "Traceback" not in daemon.output


@pytest.mark.parametrize("name", DAEMONS)
def test_no_zookeeper(start: Start, name: str) -> None:
    with free_ports(1) as [port]:
        daemon = start(name, storm_zookeeper_port=port, storm_zookeeper_connection_timeout=100)
        assert daemon.wait() == 1
    assert daemon.output.splitlines()[-1].startswith(
        f"Error: no ZooKeeper answers at {HOST}:{port} within 0.1 s: start it, or set "
    )


@pytest.mark.parametrize("name", DAEMONS)
def test_a_folder_that_cannot_be(start: Start, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    daemon = start(name, storm_local_dir=tmp_path / "file" / "local")
    assert daemon.wait() == 1
    last = daemon.output.splitlines()[-1]
    assert last.startswith("Error: ")
    assert f" {tmp_path}/file" in last
    assert "Traceback" not in daemon.output


@pytest.mark.parametrize("name", DAEMONS)
def test_a_folder_that_another_one_uses(start: Start, tmp_path: Path, name: str) -> None:
    first = start(name)
    first.wait_said("leads" if name == "nimbus" else "is up")
    second = start(name)
    assert second.wait() == 1
    assert f"Error: another {name} uses " in second.output.splitlines()[-1]


def test_a_port_that_is_taken(start: Start) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        daemon = start("nimbus", nimbus_thrift_port=port)
        assert daemon.wait() == 1
    last = daemon.output.splitlines()[-1]
    assert last.startswith(f"Error: nimbus cannot listen at localhost:{port}: Address already in")
    assert "nimbus.thrift.port" in last


@pytest.mark.parametrize("name", DAEMONS)
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--config", "nowhere"], "--config nowhere: "),
        (["-c", "nimbus.thrift.port=x"], "nimbus.thrift.port is 'x' (str); expected an"),
        (["extra"], "unexpected extra argument (extra)"),
    ],
)
def test_wrong_usage(tmp_path: Path, name: str, arguments: list[str], reason: str) -> None:
    daemon = Daemon(tmp_path / "output", [name, *arguments])
    assert daemon.wait() == 2
    assert reason in daemon.output
