"""What a cluster of one machine consists of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storm_py.config import Config, configuration
from storm_py.errors import ConfigError
from storm_py.one_machine.plan import ONE_MACHINE, Daemon, Port, plan

HOME = Path("/home/me")


def conf(**values: object) -> dict[str, Any]:
    return configuration(None, {key.replace("_", "."): value for key, value in values.items()})


def test_the_daemons_in_the_order_of_their_start() -> None:
    found = plan(configuration(None, None, ONE_MACHINE), ["-c", "a=1"], HOME, 2, 3)
    local = "/home/me/.local/state/storm-py"
    common = (
        *("-c", "a=1", "-c", 'storm.zookeeper.servers=["127.0.0.1"]'),
        *("-c", "storm.zookeeper.session.timeout=5000"),
    )
    supervisor = ("supervisor", "--end-workers-on-stop", *common)
    assert found.daemons == (
        Daemon(
            "zookeeper",
            (
                *("dev-zookeeper", "--host", "127.0.0.1", "--port", "2181"),
                *("--data", f"{local}/zookeeper"),
            ),
        ),
        Daemon("nimbus", ("nimbus", *common, "-c", f'storm.local.dir="{local}"')),
        Daemon(
            "supervisor-1",
            (
                *(*supervisor, "-c", f'storm.local.dir="{local}/supervisor-1"'),
                *("-c", "supervisor.slots.ports=[6700, 6701, 6702]"),
            ),
        ),
        Daemon(
            "supervisor-2",
            (
                *(*supervisor, "-c", f'storm.local.dir="{local}/supervisor-2"'),
                *("-c", "supervisor.slots.ports=[6703, 6704, 6705]"),
            ),
        ),
    )
    assert found.supervisor_dirs == (Path(local, "supervisor-1"), Path(local, "supervisor-2"))


def test_the_ports_that_have_to_be_free() -> None:
    found = plan(conf(nimbus_thrift_port=1000, storm_zookeeper_port=2000), [], HOME, 1, 1)
    assert found.ports == (
        Port("ZooKeeper", "127.0.0.1", 2000, "storm.zookeeper.port"),
        Port("nimbus", "localhost", 1000, "nimbus.thrift.port"),
    )


@pytest.mark.parametrize(
    ("ports", "first"), [([6700, 6701], 6700), ([7003, 7000], 7000), ([1], 1), ([], 6700)]
)
def test_slots_begin_with_the_first_port(ports: list[int], first: int) -> None:
    found = plan(conf(supervisor_slots_ports=ports), [], HOME, 2, 2)
    own = [daemon.arguments[-1] for daemon in found.supervisors]
    assert own == [
        f"supervisor.slots.ports=[{first}, {first + 1}]",
        f"supervisor.slots.ports=[{first + 2}, {first + 3}]",
    ]


def test_more_slots_than_ports() -> None:
    with pytest.raises(ConfigError, match="2 supervisors with 3 slots each would have the ports"):
        plan(conf(supervisor_slots_ports=[65531]), [], HOME, 2, 3)
    assert plan(conf(supervisor_slots_ports=[65530]), [], HOME, 2, 3).slots == 3


@pytest.mark.parametrize(
    ("path", "place"),
    [(None, "/s/zookeeper"), ("/mine", "/mine"), ("~/mine", "/home/me/mine")],
)
def test_where_zookeeper_keeps_its_data(path: str | None, place: str) -> None:
    values = {Config.DEV_ZOOKEEPER_PATH: path, Config.STORM_LOCAL_DIR: "/s"}
    found = plan(configuration(None, values), [], HOME, 1, 1)
    assert found.zookeeper_data == Path(place)
    assert found.zookeeper.arguments[-2:] == ("--data", place)


def test_what_clients_need_to_find_it() -> None:
    assert plan(conf(), [], HOME, 1, 1).client_options == ""
    found = plan(conf(nimbus_thrift_port=1000), [], HOME, 1, 1)
    assert found.client_options == " -c nimbus.thrift.port=1000"
    found = plan(conf(storm_local_hostname="n1"), [], HOME, 1, 1)
    assert found.client_options == """ -c 'nimbus.seeds=["n1"]'"""


def test_a_setting_of_the_operator_stays() -> None:
    """For all daemons, whichever way it came to be set."""
    values = {**ONE_MACHINE, Config.STORM_ZOOKEEPER_SESSION_TIMEOUT: 7000}
    found = plan(configuration(None, None, values), [], HOME, 1, 1)
    for daemon in (found.nimbus, *found.supervisors):
        assert "storm.zookeeper.session.timeout=7000" in daemon.arguments
