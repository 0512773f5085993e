"""The calls of nimbus through all of Storm's bytes: what they answer, and what they refuse."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from storm_py.archive import open_archive
from storm_py.bundle import StormCode, jar_key
from storm_py.cluster import paths
from storm_py.errors import (
    AlreadyAliveException,
    InvalidTopologyException,
    KeyNotFoundException,
    NotAliveException,
    RemoteError,
)
from storm_py.rpc import definitions
from storm_py.rpc.definitions import LogConfig, LogLevel, LogLevelAction
from storm_py.thrift_topology import from_thrift, shell, to_thrift
from tests.disk import little_room
from tests.real_nimbuses import BEGIN_SECS, Bench, submit, upload, words


def nothing_is_left(bench: Bench) -> None:
    assert bench.state.storms() == ()
    left = [path for path in bench.folder.rglob("*") if path.is_file()]
    assert left == []
    bench.term.reserve("words")  # and the name is free


def test_a_topology_that_cannot_be_read_hides_no_other(
    bench: Bench, running: str, archive: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    bench.storage.create(paths.storm("broken-1-1"), b"no json")
    assert [found.id for found in bench.nimbus.getTopologySummaries()] == [running]
    assert bench.nimbus.getTopologySummaryByName("words").id == running
    assert "broken-1-1 is left out: " in caplog.text
    assert submit(bench.nimbus, archive, "others")


class TestSubmit:
    def test_what_is_stored(self, bench: Bench, archive: bytes) -> None:
        conf = {"topology.submitter.user": "alice", "mine": [1]}
        id_ = submit(bench.nimbus, archive, conf=conf)
        assert id_ == f"words-1-{BEGIN_SECS + 100}"
        stored = json.loads(bench.nimbus.getTopologyConf(id_))
        assert (stored["storm.id"], stored["topology.name"]) == (id_, "words")
        assert (stored["topology.submitter.user"], stored["mine"]) == ("alice", [1])
        assert from_thrift(bench.nimbus.getUserTopology(id_), "it") == words()
        assert from_thrift(bench.nimbus.getTopology(id_), "it") == words()
        found = bench.state.storm_base(id_)
        assert found is not None
        assert (found.owner, found.storm_py_version, found.num_workers) == ("alice", "0.1.0", 1)
        assert found.component_executors == {"lines": 1, "count": 2}
        meta = bench.nimbus.getBlobMeta(jar_key(id_))
        path = bench.data.blobs.folder / jar_key(id_)
        assert open_archive(path, 1 << 20).sha256 == meta.sha256
        assert list((bench.folder / "inbox").iterdir()) == []

    def test_without_options_it_is_active(self, bench: Bench, archive: bytes) -> None:
        topology = to_thrift(words())
        bench.nimbus.submitTopology("words", upload(bench.nimbus, archive), "{}", topology)
        assert bench.nimbus.getTopologySummaryByName("words").status == "ACTIVE"

    def test_a_foreign_archive_of_shell_components(self, bench: Bench, tmp_path: Path) -> None:
        jar = tmp_path / "topology.jar"
        with zipfile.ZipFile(jar, "w") as packed:
            packed.writestr("resources/words.py", "x")
        made = words()
        code = StormCode(made.topology, dict.fromkeys(made.components, shell("run", "words.py")))
        id_ = submit(bench.nimbus, jar.read_bytes(), code=code)
        user = bench.nimbus.getUserTopology(id_)
        assert user.bolts["count"].bolt_object.shell is not None
        assert bench.nimbus.getTopologySummary(id_).storm_version == "unknown"

    def test_the_limits_of_the_configuration_hold(self, bench: Bench, archive: bytes) -> None:
        id_ = submit(bench.nimbus, archive, conf={"topology.max.task.parallelism": 1})
        assert bench.nimbus.getTopologySummary(id_).num_tasks == 2

    @pytest.mark.parametrize("name", ["", "a/b", "a.b", "a:b", "a\\b"])
    def test_a_name_that_cannot_be(self, bench: Bench, archive: bytes, name: str) -> None:
        with pytest.raises(InvalidTopologyException, match="Topology name"):
            submit(bench.nimbus, archive, name)
        assert not bench.nimbus.isTopologyNameAllowed(name)
        nothing_is_left(bench)

    def test_a_name_that_is_taken(self, bench: Bench, archive: bytes) -> None:
        assert bench.nimbus.isTopologyNameAllowed("words")
        submit(bench.nimbus, archive)
        assert not bench.nimbus.isTopologyNameAllowed("words")
        with pytest.raises(AlreadyAliveException) as caught:
            submit(bench.nimbus, archive)
        assert str(caught.value) == (
            "Topology with name 'words' already exists on the cluster: kill it first, or choose "
            "another name"
        )
        assert list((bench.folder / "inbox").iterdir()) == []
        assert len(bench.data.blobs.topologies()) == 1

    def test_a_broken_archive(self, bench: Bench, archive: bytes) -> None:
        for data in (b"no zip", archive[:-30]):
            with pytest.raises(InvalidTopologyException) as caught:
                submit(bench.nimbus, data)
            assert "topology 'words': its archive is refused: " in str(caught.value)
            assert "is no zip file that can be read" in str(caught.value)
        nothing_is_left(bench)

    @pytest.mark.parametrize(
        ("conf", "message"),
        [
            ({"topology.workers": "two"}, "topology 'words': topology.workers is 'two' (str); "),
            ({"storm_py.fuze": True}, "topology 'words': unknown configuration key"),
            ({"mine": float("nan")}, "topology 'words': mine is nan, which cannot be sent"),
        ],
    )
    def test_a_configuration_that_cannot_be(
        self, bench: Bench, archive: bytes, conf: dict[str, object], message: str
    ) -> None:
        location, topology = upload(bench.nimbus, archive), to_thrift(words())
        with pytest.raises(InvalidTopologyException) as caught:
            bench.nimbus.submitTopology("words", location, json.dumps(conf), topology)
        assert str(caught.value).startswith(message)
        nothing_is_left(bench)

    @pytest.mark.parametrize("text", ["{", "[]", "1"])
    def test_a_configuration_that_is_no_object(
        self, bench: Bench, archive: bytes, text: str
    ) -> None:
        location, topology = upload(bench.nimbus, archive), to_thrift(words())
        with pytest.raises(InvalidTopologyException, match="topology 'words': the configuration"):
            bench.nimbus.submitTopology("words", location, text, topology)
        nothing_is_left(bench)

    def test_a_topology_that_does_not_fit_together(self, bench: Bench, archive: bytes) -> None:
        made = words()
        lines = replace(made.topology.components["lines"], streams={})
        made.topology.components["lines"] = lines  # type: ignore[index]
        with pytest.raises(InvalidTopologyException) as caught:
            submit(bench.nimbus, archive, code=made)
        assert str(caught.value) == (
            "topology 'words': bolt 'count' subscribes to stream 'default' of 'lines', which "
            "declares no streams; declare it in its declare_output_fields (as submitted)"
        )
        nothing_is_left(bench)

    def test_a_disk_that_is_full(self, bench: Bench, archive: bytes) -> None:
        location, topology = upload(bench.nimbus, archive), to_thrift(words())
        with little_room(100), pytest.raises(RemoteError) as caught:
            bench.nimbus.submitTopology("words", location, "{}", topology)
        assert "nimbus cannot store the blob words-1-" in str(caught.value)
        assert "File too large; make room there" in str(caught.value)
        nothing_is_left(bench)

    def test_an_upload_that_is_not_there(self, bench: Bench) -> None:
        with pytest.raises(RemoteError, match=r"there is no upload '/tmp/x\.jar'"):
            bench.nimbus.submitTopology("words", "/tmp/x.jar", "{}", to_thrift(words()))
        nothing_is_left(bench)


class TestChanges:
    @pytest.mark.parametrize("call", ["killTopology", "activate", "deactivate"])
    def test_a_topology_that_is_not_there(self, bench: Bench, archive: bytes, call: str) -> None:
        with pytest.raises(NotAliveException) as caught:
            getattr(bench.nimbus, call)("words")
        assert str(caught.value) == "words is not alive; there is no topology at all"
        submit(bench.nimbus, archive)
        with pytest.raises(NotAliveException) as caught:
            getattr(bench.nimbus, call)("wrds")
        assert str(caught.value) == "wrds is not alive; did you mean 'words'?"

    def test_statuses(self, bench: Bench, archive: bytes) -> None:
        id_ = submit(bench.nimbus, archive)
        bench.nimbus.deactivate("words")
        bench.nimbus.deactivate("words")
        assert bench.nimbus.getTopologySummary(id_).status == "INACTIVE"
        bench.nimbus.activate("words")
        assert bench.nimbus.getTopologySummary(id_).status == "ACTIVE"
        bench.nimbus.killTopology("words")
        with pytest.raises(RemoteError, match="No transition for event: ACTIVATE, status: KILLED"):
            bench.nimbus.activate("words")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"num_executors": {"cuont": 2}}, "has no component 'cuont' to rebalance, only: "),
            ({"num_executors": {"count": 0}}, "Number of executors must be greater than 0: "),
            ({"num_workers": 0}, "Number of workers must be greater than 0: "),
            ({"topology_conf_overrides": '{"a": 1}'}, "kill the topology and submit it again"),
        ],
    )
    def test_a_rebalance_that_cannot_be(
        self, bench: Bench, archive: bytes, options: dict[str, object], message: str
    ) -> None:
        id_ = submit(bench.nimbus, archive)
        with pytest.raises(InvalidTopologyException) as caught:
            bench.nimbus.rebalance("words", definitions.RebalanceOptions(**options))  # type: ignore[arg-type]
        assert message in str(caught.value)
        assert bench.nimbus.getTopologySummary(id_).status == "ACTIVE"

    def test_a_heartbeat_of_a_worker_whose_topology_is_gone(self, bench: Bench) -> None:
        beat = definitions.SupervisorWorkerHeartbeat(storm_id="gone-1-1", executors=[], time_secs=1)
        with pytest.raises(NotAliveException, match="gone-1-1 is not alive"):
            bench.nimbus.sendSupervisorWorkerHeartbeat(beat)
        bench.nimbus.sendSupervisorWorkerHeartbeats(
            definitions.SupervisorWorkerHeartbeats(supervisor_id="s1", worker_heartbeats=[beat])
        )

    def test_a_heartbeat_of_a_worker_that_a_new_leader_does_not_know_yet(
        self, bench: Bench, running: str
    ) -> None:
        bench.succeed()
        beat = definitions.SupervisorWorkerHeartbeat(storm_id=running, executors=[], time_secs=1)
        bench.nimbus.sendSupervisorWorkerHeartbeat(beat)

    def test_levels_of_loggers(self, bench: Bench, running: str) -> None:
        update, remove = LogLevelAction.UPDATE, LogLevelAction.REMOVE
        debug = LogLevel(action=update, target_log_level="DEBUG", reset_log_level_timeout_secs=30)
        info = LogLevel(action=update, target_log_level="INFO")
        bench.nimbus.setLogConfig(running, LogConfig(named_logger_level={"a": debug, "b": info}))
        found = bench.nimbus.getLogConfig(running).named_logger_level
        assert found is not None
        until = BEGIN_SECS + int(bench.clocks.passed()) + 30
        assert found["a"] == LogLevel(
            action=LogLevelAction.UNCHANGED,
            target_log_level="DEBUG",
            reset_log_level_timeout_secs=30,
            reset_log_level_timeout_epoch=until,
        )
        gone = LogConfig(named_logger_level={"a": LogLevel(action=remove)})
        bench.nimbus.setLogConfig(running, gone)
        assert set(bench.nimbus.getLogConfig(running).named_logger_level or ()) == {"b"}
        with pytest.raises(RemoteError, match="the logger 'c' is to change without a level"):
            bench.nimbus.setLogConfig(
                running, LogConfig(named_logger_level={"c": LogLevel(action=update)})
            )


class TestBlobs:
    def test_by_session(self, bench: Bench, running: str, archive: bytes) -> None:
        nimbus, key = bench.nimbus, jar_key(running)
        begun = nimbus.beginBlobDownload(key)
        assert (begun.data_size, begun.version) == (len(archive), nimbus.getBlobMeta(key).version)
        pieces = list(iter(lambda: nimbus.downloadBlobChunk(begun.session), b""))
        assert b"".join(pieces) == archive

    def test_as_older_clients_do(self, bench: Bench, running: str, archive: bytes) -> None:
        id_ = bench.nimbus.beginFileDownload(jar_key(running))
        assert bench.nimbus.downloadChunk(id_) == archive
        assert bench.nimbus.downloadChunk(id_) == b""

    def test_one_that_is_not_there(self, bench: Bench) -> None:
        for call in (bench.nimbus.getBlobMeta, bench.nimbus.beginBlobDownload):
            with pytest.raises(KeyNotFoundException, match="there is no blob 'x'"):
                call("x")
