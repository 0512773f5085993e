"""Keys of the cluster: what their values may be; the rest is as for the keys of topologies."""

from __future__ import annotations

from pathlib import Path

import pytest

from storm_py import ConfigError
from storm_py.config import KEYS, defaults, local_dir, validate
from storm_py.config_cluster_keys import CLUSTER_KEYS


def test_they_are_sorted_and_no_topologys() -> None:
    names = [key.name for key in CLUSTER_KEYS]
    assert names == sorted(set(names))
    assert not [name for name in names if name.startswith("topology.")]
    assert list(KEYS)[-len(names) :] == names


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nimbus.seeds", ["alpha", "10.0.0.2"]),
        ("supervisor.slots.ports", []),
        ("storm.local.dir", "/var/lib/storm"),
        ("storm.local.dir", "~/storm"),
        ("storm.local.hostname", "node-1.example"),
        ("storm.zookeeper.root", "/storm/blue"),
        ("storm.zookeeper.retry.times", 0),
    ],
)
def test_good_values(name: str, value: object) -> None:
    validate({name: value})


def test_the_local_folder_may_be_in_the_home_folder() -> None:
    home = Path("/home/somebody")
    assert local_dir(defaults(), home) == home / ".local" / "state" / "storm-py"
    assert local_dir({"storm.local.dir": "/var/lib/~/storm"}, home) == Path("/var/lib/~/storm")


HOST = "the name of a host, without a port"
HOSTS = "a list of host names, without ports"
PORTS = "a list of ports from 1 to 65535, each once"
FOLDER = "a path that begins with / or ~/"
ZNODE = "a path as /storm, without a slash at its end"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("nimbus.seeds", [], HOSTS),
        ("nimbus.seeds", ["a", 7], HOSTS),
        ("nimbus.seeds", ["a", ""], HOSTS),
        ("nimbus.seeds", "alpha", f"{HOSTS}; put it into a list: ['alpha']"),
        ("storm.zookeeper.servers", ["a:2181"], HOSTS),
        ("supervisor.slots.ports", [6700, 6700], PORTS),
        ("supervisor.slots.ports", [0], PORTS),
        ("supervisor.slots.ports", [True], PORTS),
        ("supervisor.slots.ports", 6700, PORTS),
        ("storm.local.dir", "storm-local", FOLDER),
        ("storm.local.dir", "~other/storm", FOLDER),
        ("storm.local.dir", None, FOLDER),
        ("storm.local.hostname", "node:6700", HOST),
        ("storm.local.hostname", ["node"], HOST),
        ("storm.local.hostname", "", HOST),
        ("storm.zookeeper.root", "storm", ZNODE),
        ("storm.zookeeper.root", "/", ZNODE),
        ("storm.zookeeper.root", "/storm/", ZNODE),
        ("storm.zookeeper.root", "/a//b", ZNODE),
        ("storm.zookeeper.root", "/a/../b", ZNODE),
        ("nimbus.thrift.port", 0, "an integer from 1 to 65535"),
        ("supervisor.worker.timeout.secs", 0, "an integer of at least 1"),
    ],
)
def test_bad_values(name: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate({name: value})
    assert str(caught.value) == f"{name} is {value!r} ({type(value).__name__}); expected {expected}"
