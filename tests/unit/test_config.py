"""Configuration keys: defaults, layers, checks, command line settings, documentation."""

from __future__ import annotations

import configparser
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import storm_py
from storm_py import ConfigError
from storm_py.config import (
    KEYS,
    Config,
    defaults,
    markdown,
    merge,
    parse_assignment,
    validate,
)

ROOT = Path(__file__).parents[2]

EXPECTED_DEFAULTS: dict[str, object] = {
    "topology.name": None,
    "topology.workers": 1,
    "topology.tasks": None,
    "topology.max.task.parallelism": None,
    "topology.debug": False,
    "topology.testing.always.try.serialize": False,
    "topology.acker.executors": None,
    "topology.max.spout.pending": None,
    "topology.message.timeout.secs": 30,
    "topology.tick.tuple.freq.secs": None,
    "topology.auto.task.hooks": None,
    "topology.metrics.consumer.register": None,
    "topology.builtin.metrics.bucket.size.secs": 60,
    "topology.error.throttle.interval.secs": 10,
    "topology.max.error.report.per.interval": 5,
    "nimbus.thrift.threads": 64,
    "nimbus.queue.size": 1024,
    "nimbus.thrift.max_buffer_size": 16777216,
    "storm.thrift.socket.timeout.ms": 600000,
    "storm_py.fuse": True,
    "storm_py.batch.rows": 1024,
    "storm_py.batch.bytes": 65536,
    "storm_py.batch.delay.ms": 2,
    "storm_py.batch.linger.ms": None,
    "storm_py.frame.max.bytes": 8388608,
    "storm_py.key.groups": 1024,
    "storm_py.backpressure.window.secs": 0.5,
    "storm_py.backpressure.high.bytes": 1048576,
    "storm_py.backpressure.low.ratio": 0.5,
    "storm_py.spout.wait.ms": 1000,
    "storm_py.stuck.secs": 30,
    "storm_py.fall.back.on.pickle": False,
    "storm_py.serializers": [],
    "storm_py.kill.on.end": False,
    "storm_py.local.max.failures": 10,
    "storm_py.drain.timeout.secs": 30,
    "storm_py.submit.max.bytes": 104857600,
    "dev.zookeeper.path": None,
    "nimbus.cleanup.inbox.freq.secs": 600,
    "nimbus.inbox.jar.expiration.secs": 3600,
    "nimbus.monitor.freq.secs": 10,
    "nimbus.seeds": ["localhost"],
    "nimbus.supervisor.timeout.secs": 60,
    "nimbus.task.launch.secs": 120,
    "nimbus.task.timeout.secs": 30,
    "nimbus.thrift.port": 6627,
    "nimbus.topology.blobstore.deletion.delay.ms": 300000,
    "storm.local.dir": "~/.local/state/storm-py",
    "storm.local.hostname": "localhost",
    "storm.zookeeper.connection.timeout": 15000,
    "storm.zookeeper.port": 2181,
    "storm.zookeeper.retry.interval": 1000,
    "storm.zookeeper.retry.intervalceiling.millis": 30000,
    "storm.zookeeper.retry.times": 5,
    "storm.zookeeper.root": "/storm",
    "storm.zookeeper.servers": ["localhost"],
    "storm.zookeeper.session.timeout": 20000,
    "supervisor.heartbeat.frequency.secs": 5,
    "supervisor.monitor.frequency.secs": 3,
    "supervisor.slots.ports": [6700, 6701, 6702, 6703],
    "supervisor.worker.shutdown.sleep.secs": 3,
    "supervisor.worker.start.timeout.secs": 120,
    "supervisor.worker.timeout.secs": 30,
    "worker.heartbeat.frequency.secs": 1,
    "worker.log.level.reset.poll.secs": 30,
}

STORMS_OTHER_KEYS = """
    topology.backpressure.check.millis topology.batch.flush.interval.millis
    topology.bolt.wait.strategy topology.classpath
    topology.component.resources.onheap.memory.mb topology.disable.loadaware.messaging
    topology.enable.message.timeouts topology.environment
    topology.eventlogger.executors topology.executor.overflow.limit
    topology.executor.receive.buffer.size topology.fall.back.on.java.serialization
    topology.kryo.register topology.localityaware.higher.bound
    topology.min.replication.count topology.multilang.serializer topology.priority
    topology.producer.batch.size topology.ras.acker.executors.per.worker
    topology.scheduler.strategy topology.shellbolt.max.pending topology.spout.recvq.skips
    topology.spout.wait.strategy topology.state.checkpoint.interval.ms topology.state.provider
    topology.stats.sample.rate topology.subprocess.timeout.secs
    topology.transfer.batch.size topology.transfer.buffer.size topology.users
    topology.worker.childopts topology.worker.max.heap.size.mb
    topology.worker.shared.thread.pool.size
"""


def test_every_default() -> None:
    assert defaults() == EXPECTED_DEFAULTS


def test_defaults_are_valid() -> None:
    validate(defaults())


def test_defaults_are_a_new_dict_each_time() -> None:
    defaults()["topology.workers"] = 9
    assert defaults()["topology.workers"] == 1


@pytest.mark.parametrize("name", KEYS)
def test_each_key_has_its_constant(name: str) -> None:
    assert getattr(Config, name.upper().replace(".", "_")) == name


def test_each_constant_has_its_key() -> None:
    constants = {value for name, value in vars(Config).items() if name.isupper()}
    assert constants == set(KEYS)


@pytest.mark.parametrize("name", KEYS)
def test_each_key_is_described(name: str) -> None:
    key = KEYS[name]
    assert key.name == name
    assert key.doc.endswith(".")
    assert key.expected
    assert bool(key.storm) or name.startswith("storm_py.")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topology.workers", 65535),
        ("topology.tasks", 1),
        ("topology.debug", True),
        ("topology.name", "word count-2"),
        ("topology.acker.executors", 0),
        ("topology.max.spout.pending", 1),
        ("storm_py.batch.rows", 1),
        ("storm_py.batch.delay.ms", 1.5),
        ("storm_py.batch.linger.ms", 0),
        ("storm_py.batch.linger.ms", 20),
        ("storm_py.backpressure.window.secs", 1),
        ("storm_py.backpressure.low.ratio", 0),
        ("storm_py.drain.timeout.secs", 0),
        ("storm_py.fall.back.on.pickle", True),
        ("storm.local.dir", "~/storm"),
        ("storm.zookeeper.servers", ["zk-1.example", "10.0.0.2"]),
        ("storm.zookeeper.root", "/storm/a-b_1"),
        ("storm.zookeeper.root", "/.storm"),
        ("storm.zookeeper.retry.times", 0),
        ("dev.zookeeper.path", None),
        ("dev.zookeeper.path", "/srv/zookeeper"),
    ],
)
def test_good_values(name: str, value: object) -> None:
    validate({name: value})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("topology.workers", 0, "topology.workers is 0 (int); expected an integer from 1 to 65535"),
        ("topology.workers", -1, "from 1"),
        ("topology.workers", "2", "is '2' (str); expected an integer"),
        ("topology.workers", 2.0, "is 2.0 (float); expected an integer"),
        ("topology.workers", True, "is True (bool); expected an integer"),
        ("topology.workers", None, "is None (NoneType); expected an integer"),
        ("topology.tasks", 0, "an integer of at least 1, or null"),
        ("topology.max.task.parallelism", 0, "an integer of at least 1, or null"),
        ("topology.debug", "yes", "expected true or false"),
        ("topology.debug", 1, "expected true or false"),
        ("topology.name", "", "not blank"),
        ("topology.name", "  ", "not blank"),
        ("topology.name", "a/b", "none of / . : \\"),
        ("topology.name", "a.b", "none of"),
        ("topology.name", "a:b", "none of"),
        ("topology.name", "a\\b", "none of"),
        ("topology.name", 7, "a string"),
        ("topology.acker.executors", -1, "an integer of at least 0, or null"),
        ("topology.max.spout.pending", 0, "an integer of at least 1, or null"),
        ("topology.message.timeout.secs", 0, "an integer of at least 1"),
        ("topology.message.timeout.secs", 1.5, "an integer of at least 1"),
        ("topology.auto.task.hooks", ["flow.Hook"], "a list of names, each package.module:Class"),
        (
            "topology.metrics.consumer.register",
            [{"class": "flow.Consumer"}],
            'a list of {"class": "package.module:Class"',
        ),
        ("storm_py.batch.rows", 0, "from 1 to 65535"),
        ("storm_py.batch.bytes", 0, "at least 1"),
        ("storm_py.batch.delay.ms", 0.5, "a number from 1 to 1000"),
        ("storm_py.batch.delay.ms", float("nan"), "a number from 1 to 1000"),
        ("storm_py.batch.linger.ms", 251, "a number from 0 to 250, or null"),
        ("storm_py.frame.max.bytes", 1023, "from 1024 to 1073741824"),
        ("storm_py.key.groups", 0, "from 1 to 65536"),
        ("storm_py.backpressure.window.secs", 0, "from 0.01 to 60"),
        ("storm_py.backpressure.window.secs", float("inf"), "from 0.01 to 60"),
        ("storm_py.backpressure.high.bytes", 1, "at least 1024"),
        ("storm_py.backpressure.low.ratio", 1, "from 0 to 0.95"),
        ("storm_py.backpressure.low.ratio", False, "a number"),
        ("storm_py.spout.wait.ms", 0, "from 1 to 60000"),
        ("storm_py.fall.back.on.pickle", None, "true or false"),
        ("storm_py.drain.timeout.secs", -1, "from 0 to 86400"),
        ("storm.local.dir", "storm", "a path that begins with / or ~/"),
        ("storm.local.dir", "/a\0b", "a path that begins"),
        ("storm.local.dir", None, "a path that begins"),
        ("storm.zookeeper.servers", "here", "without ports; put it into a list: ['here']"),
        ("storm.zookeeper.servers", [], "a list of host names, without ports"),
        ("storm.zookeeper.servers", ["here:2181"], "without ports"),
        ("storm.zookeeper.servers", [7], "a list of host names"),
        ("storm.zookeeper.port", 0, "from 1 to 65535"),
        ("storm.zookeeper.root", "storm", "a path as /storm, without a slash at its end"),
        ("storm.zookeeper.root", "/storm/", "without a slash"),
        ("storm.zookeeper.root", "/storm//a", "a path as /storm"),
        ("storm.zookeeper.root", "/storm/..", "a path as /storm"),
        ("storm.zookeeper.session.timeout", 0, "of at least 1"),
        ("dev.zookeeper.path", 7, "a path that begins with / or ~/, or null"),
    ],
)
def test_bad_values(name: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate({name: value})
    assert expected in str(caught.value)
    assert str(caught.value).startswith(f"{name} is {value!r}")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("storm_py.batch.row", "did you mean 'storm_py.batch.rows'?"),
        ("storm_py.Batch.Rows", "did you mean 'storm_py.batch.rows'?"),
        ("storm_py.spout.wait", "did you mean 'storm_py.spout.wait.ms'?"),
        ("storm_py.zzzzzzzzzzzzzzzzzzzz", "keys: storm_py.fuse, "),
        ("topology.worker", "did you mean 'topology.workers'?"),
        ("topology.max.spout.pendng", "did you mean 'topology.max.spout.pending'?"),
        ("topology.message.timeout.sec", "did you mean 'topology.message.timeout.secs'?"),
    ],
)
def test_unknown_keys_that_look_like_a_mistake(name: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate({name: 1})
    assert f"unknown configuration key {name!r}" in str(caught.value)
    assert expected in str(caught.value)


def test_keys_of_storm_without_meaning_here_pass() -> None:
    validate(dict.fromkeys(STORMS_OTHER_KEYS.split(), 1))


@pytest.mark.parametrize("name", ["my.key", "topology", "topologies.workers", "stormpy.x", ""])
def test_the_users_own_keys_pass_with_any_value(name: str) -> None:
    validate({name: object()})


def test_a_key_that_is_no_str() -> None:
    with pytest.raises(ConfigError, match="key 7 is an int, not a str"):
        validate({7: 1})  # type: ignore[dict-item]


def test_merge_lets_the_last_layer_win() -> None:
    first: dict[str, object] = {"a": 1, "b": 1, "c": 1}
    assert merge(first, None, {"b": 2, "c": 2}, {"c": None}) == {"a": 1, "b": 2, "c": None}
    assert first == {"a": 1, "b": 1, "c": 1}


def test_merge_of_nothing() -> None:
    assert merge() == {}


@given(st.lists(st.dictionaries(st.text(max_size=2), st.integers())))
def test_merge_law(layers: list[dict[str, int]]) -> None:
    merged = merge(*layers)
    for name in {name for layer in layers for name in layer}:
        assert merged[name] == [layer[name] for layer in layers if name in layer][-1]
    assert set(merged) == {name for layer in layers for name in layer}


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("topology.workers=2", ("topology.workers", 2)),
        ("a=0.5", ("a", 0.5)),
        ("a=true", ("a", True)),
        ("a=True", ("a", "True")),
        ("a=null", ("a", None)),
        ("a=[1, 2]", ("a", [1, 2])),
        ('a={"b": "c"}', ("a", {"b": "c"})),
        ('a="2"', ("a", "2")),
        ("a=hello world", ("a", "hello world")),
        ("a=007", ("a", "007")),
        ("a=NaN", ("a", "NaN")),
        ("a=-Infinity", ("a", "-Infinity")),
        ("a=", ("a", "")),
        ("a=b=c", ("a", "b=c")),
        (" a =1", ("a", 1)),
    ],
)
def test_parse_assignment(text: str, parsed: tuple[str, object]) -> None:
    assert parse_assignment(text) == parsed


@pytest.mark.parametrize("text", ["", "topology.workers", "=2", " =2"])
def test_parse_assignment_refuses(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"expected key=value, as in topology\.workers=2"
    ) as caught:
        parse_assignment(text)
    assert repr(text) in str(caught.value)


@given(
    st.text(min_size=1).filter(lambda text: "=" not in text and text.strip() == text),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
)
@example("a", "NaN")
def test_parse_assignment_law(name: str, value: object) -> None:
    assert parse_assignment(f"{name}={json.dumps(value)}") == (name, value)


def test_setters() -> None:
    conf = Config()
    conf.set_num_workers(2)
    conf.set_debug(True)
    conf.set_max_spout_pending(100)
    conf.set_message_timeout_secs(60)
    conf.set_max_task_parallelism(3)
    conf.set_num_ackers(0)
    conf["my.key"] = "mine"
    assert conf == {
        "topology.workers": 2,
        "topology.debug": True,
        "topology.max.spout.pending": 100,
        "topology.message.timeout.secs": 60,
        "topology.max.task.parallelism": 3,
        "topology.acker.executors": 0,
        "my.key": "mine",
    }
    validate(conf)


def test_a_config_starts_empty() -> None:
    assert Config() == {}
    assert Config({"a": 1}) == {"a": 1}


def test_the_documentation_is_current() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == markdown(), "run the command at the top of docs/configuration.md"


def test_the_documentation_is_complete() -> None:
    text = markdown()
    for key in KEYS.values():
        assert f"## `{key.name}`\n\n{key.doc}\n\n- Default: `{json.dumps(key.default)}`" in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_the_version_is_that_of_the_package() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    assert storm_py.__version__ == setup["metadata"]["version"]
