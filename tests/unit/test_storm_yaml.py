"""storm.yaml: which one counts, what it sets, and how each mistake in one reads."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given

from storm_py import ConfigError
from storm_py.config import KEYS, configuration, defaults
from storm_py.storm_yaml import StormYaml, find, load
from tests.strategies import damaged
from tests.trees import write_tree

PLACES = ["chosen.yaml", "conf/storm.yaml", "home/.storm/storm.yaml"]
PLACES += ["home/.config/storm-py/storm.yaml", "etc/storm.yaml"]
"""Where it is looked for, in this order."""

OTHERS = """
    storm.workers.artifacts.dir storm.cluster.mode storm.cluster.state.store
    storm.messaging.transport storm.messaging.netty.transfer.batch.size
    storm.messaging.netty.min_wait_ms storm.messaging.netty.max_wait_ms
    storm.thrift.socket.timeout.ms storm.thrift.transport storm.log.dir storm.local.hostname
    storm.principal.tolocal storm.auth.simple-acl.users storm.blobstore.replication.factor
    storm.health.check.dir storm.cluster.metrics.consumer.publish.interval.secs
    nimbus.host nimbus.childopts nimbus.even.rebalance.idle.supervisor.enabled
    nimbus.thrift.threads nimbus.blobstore.class nimbus.users nimbus.queue.size
    supervisor.thrift.port supervisor.memory.capacity.mb supervisor.cpu.capacity
    supervisor.run.worker.as.user supervisor.childopts supervisor.enable
    supervisor.worker.heartbeats.max.timeout.secs supervisor.blobstore.class
    supervisor.localizer.cache.target.size.mb worker.max.timeout.secs worker.heap.memory.mb
    worker.childopts worker.profiler.enabled executor.metrics.frequency.secs
    task.refresh.poll.secs task.credentials.poll.secs ui.port ui.host ui.actions.enabled
    logviewer.port logviewer.cleanup.age.mins drpc.port drpc.servers drpc.http.port
    drpc.request.timeout.secs transactional.zookeeper.root transactional.zookeeper.servers
    transactional.zookeeper.port pacemaker.port pacemaker.servers dev.zookeeper.path
    zmq.threads java.library.path client.blobstore.class
    blacklist.scheduler.tolerance.time.secs
"""
"""Keys of Storm's that may stand in a storm.yaml that is carried over, and mean nothing here."""


def found(root: Path, config: str | None = None, **environ: str) -> str | None:
    path = find(config, environ, root / "home", root / "etc")
    return None if path is None else str(path.relative_to(root))


def loaded(folder: Path, text: str) -> StormYaml:
    (folder / "storm.yaml").write_text(text, encoding="utf-8")
    return load(folder / "storm.yaml")


def refused(folder: Path, text: str | bytes) -> str:
    """What is said of a file, behind its name."""
    path = folder / "storm.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path)).removeprefix(", ")


class TestFinding:
    def test_the_first_that_is_there(self, tmp_path: Path) -> None:
        write_tree(tmp_path, dict.fromkeys(PLACES, ""))
        config: str | None = str(tmp_path / PLACES[0])
        environ = {"STORM_CONF_DIR": str(tmp_path / "conf")}
        for place in PLACES:
            assert found(tmp_path, config, **environ) == place
            (tmp_path / place).unlink()
            if config is None:
                environ = {}
            config = None
        assert found(tmp_path) is None

    def test_the_current_folder_is_none_of_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(write_tree(tmp_path, {"storm.yaml": "", "conf/storm.yaml": ""}))
        assert found(tmp_path) is None

    def test_settings_of_the_user_elsewhere(self, tmp_path: Path) -> None:
        write_tree(tmp_path, dict.fromkeys([PLACES[3], "xdg/storm-py/storm.yaml"], ""))
        assert found(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "xdg")) == "xdg/storm-py/storm.yaml"
        assert found(tmp_path, XDG_CONFIG_HOME="") == PLACES[3]

    def test_a_chosen_file_that_is_not_there(self, tmp_path: Path) -> None:
        write_tree(tmp_path, dict.fromkeys(PLACES[2:], ""))
        with pytest.raises(ConfigError) as caught:
            found(tmp_path, str(tmp_path / "no.yaml"))
        assert str(caught.value) == f"--config {tmp_path}/no.yaml: {tmp_path}/no.yaml is not there"
        with pytest.raises(ConfigError) as caught:
            found(tmp_path, str(tmp_path))
        assert str(caught.value) == (
            f"--config {tmp_path}: {tmp_path} is a folder; name a file in it"
        )
        with pytest.raises(ConfigError) as caught:
            found(tmp_path, STORM_CONF_DIR=str(tmp_path / "conf"))
        assert str(caught.value) == (
            f"STORM_CONF_DIR is {tmp_path}/conf, but there is no file {tmp_path}/conf/storm.yaml; "
            "create it, or unset the variable"
        )

    def test_a_variable_without_a_value(self, tmp_path: Path) -> None:
        assert found(tmp_path, STORM_CONF_DIR="") is None


class TestValues:
    def test_what_a_file_of_storms_says(self, tmp_path: Path) -> None:
        read = loaded(
            tmp_path,
            "# the cluster\n"
            "storm.zookeeper.servers:\n"
            '    - "alpha"\n'
            "    - beta\n"
            "nimbus.seeds: [alpha]\n"
            "supervisor.slots.ports: [6700, 6701]\n"
            "storm.local.dir: /mnt/storm\n"
            "topology.debug: true\n"
            "topology.max.spout.pending: null\n"
            "nimbus.childopts: -Xmx1024m\n"
            "isolation.scheduler.machines: {words: 3}\n",
        )
        assert read == StormYaml(
            tmp_path / "storm.yaml",
            {
                "storm.zookeeper.servers": ["alpha", "beta"],
                "nimbus.seeds": ["alpha"],
                "supervisor.slots.ports": [6700, 6701],
                "storm.local.dir": "/mnt/storm",
                "topology.debug": True,
                "topology.max.spout.pending": None,
                "nimbus.childopts": "-Xmx1024m",
                "isolation.scheduler.machines": {"words": 3},
            },
            (),
        )

    @pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}", "\ufeff"])
    def test_a_file_that_says_nothing(self, tmp_path: Path, text: str) -> None:
        assert loaded(tmp_path, text).values == {}

    def test_no_file(self) -> None:
        assert load(None) == StormYaml(None, {}, ())

    def test_every_default_may_stand_in_one(self, tmp_path: Path) -> None:
        assert loaded(tmp_path, yaml.safe_dump(defaults())).values == defaults()

    def test_it_is_above_the_defaults_and_below_the_topology(self) -> None:
        read = {"topology.workers": 2, "topology.debug": True, "topology.message.timeout.secs": 60}
        conf = configuration(
            {"topology.workers": 3, "topology.debug": False}, {"topology.workers": 4}, read
        )
        changed = {key: conf[key] for key in conf if conf[key] != KEYS[key].default}
        assert changed == {"topology.workers": 4, "topology.message.timeout.secs": 60}

    def test_anchors_and_merges_of_yaml(self, tmp_path: Path) -> None:
        text = "x: &hosts [a, b]\nnimbus.seeds: *hosts\nmine: {<<: {a: 1}, b: 2}\n"
        assert loaded(tmp_path, text).values == {
            "x": ["a", "b"],
            "nimbus.seeds": ["a", "b"],
            "mine": {"a": 1, "b": 2},
        }


class TestWarnings:
    def test_a_key_that_looks_misspelt(self, tmp_path: Path) -> None:
        read = loaded(tmp_path, "my.key: 1\nnimbus.seed: [a]\nsupervisor.slot.ports: [1]\n")
        assert read.values == {"my.key": 1, "nimbus.seed": ["a"], "supervisor.slot.ports": [1]}
        start = f"{tmp_path}/storm.yaml, line"
        assert read.warnings == (
            f"{start} 2: no key is called 'nimbus.seed'; did you mean 'nimbus.seeds'?",
            f"{start} 3: no key is called 'supervisor.slot.ports'; did you mean "
            "'supervisor.slots.ports'?",
        )

    def test_none_for_what_only_storm_has(self, tmp_path: Path) -> None:
        text = "".join(f"{key}: 1\n" for key in OTHERS.split() if key not in KEYS)
        assert loaded(tmp_path, text).warnings == ()


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "# workers\ntopology.workers: '2'",
                "line 2: topology.workers is '2' (str); expected an integer from 1 to 65535",
            ),
            (
                "nimbus.thrift.port: 66270",
                "line 1: nimbus.thrift.port is 66270 (int); expected an integer from 1 to 65535",
            ),
            (
                "nimbus.seeds: alpha",
                "line 1: nimbus.seeds is 'alpha' (str); expected a list of host names, without "
                "ports; put it into a list: ['alpha']",
            ),
            (
                "\n\ntopology.worker: 2",
                "line 3: unknown configuration key 'topology.worker'; did you mean "
                "'topology.workers'?",
            ),
            (
                "storm_py.batch.row: 2",
                "line 1: unknown configuration key 'storm_py.batch.row'; did you mean "
                "'storm_py.batch.rows'?",
            ),
            (
                "a: 1\nb: 2\na: 3",
                "line 3, column 1: a is there twice, first in line 1",
            ),
            (
                "a:\n  b: 1\n  b: 2",
                "line 3, column 3: b is there twice, first in line 2",
            ),
            (
                "storm:\n  zookeeper:\n    port: 2181",
                "line 1: storm is a mapping; keys are written in full, as storm.local.dir: ...",
            ),
            (
                "nimbus: {}",
                "line 1: nimbus is a mapping; keys are written in full, as "
                "nimbus.cleanup.inbox.freq.secs: ...",
            ),
            ("6700: x", "line 1, column 1: key 6700 is an int, not a str"),
            ("on: x", "line 1, column 1: key True is a bool, not a str"),
            ("[a, b]: x", "line 1, column 1: key ['a', 'b'] is a list, not a str"),
            (
                "- topology.workers: 2",
                "line 1: the file is a list; expected a mapping, a line as `topology.workers: 2` "
                "for each key",
            ),
            (
                "topology.workers=2",
                "line 1: the file is a str; expected a mapping, a line as `topology.workers: 2` "
                "for each key",
            ),
            (
                "since: 2020-01-01",
                "line 1: since is datetime.date(2020, 1, 1); expected text, numbers, true, false, "
                "null, lists and mappings of these; quotes make a text of anything",
            ),
            (
                "limit: .inf",
                "line 1: limit is inf; expected text, numbers, true, false, null, lists and "
                "mappings of these; quotes make a text of anything",
            ),
        ],
    )
    def test_what_it_says(self, tmp_path: Path, text: str, message: str) -> None:
        assert refused(tmp_path, text) == message

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("a: [1, 2\nb: 3", "line 2, column 2: while parsing a flow sequence: "),
            ("a: 1\n\tb: 2", "line 2, column 1: while scanning for the next token: "),
            ("a: 1\n b: 2", "line 2, column 3: mapping values are not allowed here"),
            ("a: !!python/object:os.system {}", "line 1, column 4: could not determine a constr"),
            ("a: 1\n---\nb: 2", "line 2, column 1: expected a single document in the stream: "),
            ("a: *b", "line 1, column 4: found undefined alias 'b'"),
            (b"a: \xff\xfe", " is no YAML: "),
            ("a: \0", " is no YAML: "),
            ("a: 2020-99-01", " is no YAML: month must be in 1..12"),
            ("a: &a [*a]", "line 1: a is [[...]]; expected text, numbers"),
            ("[" * 3000, ""),
            ("!!str [a]: b", ""),
        ],
    )
    def test_what_yaml_says(self, tmp_path: Path, text: str | bytes, message: str) -> None:
        assert refused(tmp_path, text).startswith(message)

    def test_a_file_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            load(tmp_path)
        assert str(caught.value) == f"{tmp_path} cannot be read: Is a directory"

    @given(damaged(b"nimbus.seeds: [a, b]\ntopology.workers: 2\nx: {y: 'z'} # end\n"))
    def test_any_other_bytes(self, data: bytes) -> None:
        """They are another configuration, or refused by a ConfigError."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            try:
                place = str(load(Path(file.name)).path)
            except ConfigError as error:
                place = str(error)
            assert place.startswith(file.name)
