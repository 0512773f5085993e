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
from storm_py.cluster.records import ErrorInfo
from storm_py.errors import (
    AlreadyAliveException,
    InvalidTopologyException,
    KeyNotFoundException,
    NotAliveException,
    RemoteError,
)
from storm_py.heartbeat import ExecutorStatistics, dump_statistics
from storm_py.rpc import definitions, summaries
from storm_py.rpc.definitions import LogConfig, LogLevel, LogLevelAction
from storm_py.thrift_topology import from_thrift, shell, to_thrift
from tests.disk import little_room
from tests.real_nimbuses import BEGIN_SECS, Bench, make_archive, submit, upload, words


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "nimbus")


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    return make_archive(tmp_path)


@pytest.fixture
def running(bench: Bench, archive: bytes) -> str:
    """The id of a topology that is assigned, and of which there are statistics and an error."""
    bench.join()
    id_ = submit(bench.nimbus, archive, conf={"topology.workers": 2, "topology.version": "v7"})
    bench.tick()
    lines = ExecutorStatistics(5, 5, 9, 77, 0, 20, 21, 18, 2, 0)
    count = ExecutorStatistics(1, 2, 8, 78, 15, 3, 4, 14, 1, 6)
    ranges = [(5, 5), (1, 2)]
    beat = definitions.SupervisorWorkerHeartbeat(
        storm_id=id_,
        executors=[definitions.ExecutorInfo(task_start=a, task_end=b) for a, b in ranges],
        time_secs=5,
        statistics=dump_statistics([lines, count]),
    )
    bench.nimbus.sendSupervisorWorkerHeartbeats(
        definitions.SupervisorWorkerHeartbeats(supervisor_id="s1", worker_heartbeats=[beat])
    )
    for number in (1, 2):
        error = ErrorInfo(f"error {number}", BEGIN_SECS + number, "host-s1", 6700)
        bench.state.report_error(id_, "count", error)
    bench.clocks.passed.advance(50)
    return id_


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


class TestReports:
    def test_the_cluster(self, bench: Bench, running: str) -> None:
        bench.state.add_nimbus(bench.me)
        bench.state.set_leader_info(bench.me)
        found = bench.nimbus.getClusterInfo()
        [supervisor] = found.supervisors
        assert (supervisor.host, supervisor.num_workers, supervisor.num_used_workers) == (
            "host-s1",
            2,
            2,
        )
        [nimbus] = found.nimbuses
        assert (nimbus.host, nimbus.port, nimbus.isLeader) == ("here", 6627, True)
        assert (nimbus.uptime_secs, bench.nimbus.getLeader()) == (150, nimbus)
        assert [one.id for one in found.topologies] == [running]
        assert json.loads(bench.nimbus.getNimbusConf())["nimbus.thrift.port"] == 6627

    def test_nobody_leads(self, bench: Bench) -> None:
        with pytest.raises(RemoteError, match="no nimbus leads at the moment, as nimbus at here:"):
            bench.nimbus.getLeader()

    def test_a_topology_in_short(self, bench: Bench, running: str) -> None:
        [found] = bench.nimbus.getTopologySummaries()
        assert found == summaries.TopologySummary(
            id=running,
            name="words",
            num_tasks=5,
            num_executors=3,
            num_workers=2,
            uptime_secs=50,
            status="ACTIVE",
            storm_version="0.1.0",
            topology_version="v7",
            owner=found.owner,
            replication_count=1,
        )
        assert bench.nimbus.getTopologySummary(running) == found
        assert bench.nimbus.getTopologySummaryByName("words") == found

    def test_executors_and_errors(self, bench: Bench, running: str) -> None:
        found = bench.nimbus.getTopologyInfo(running)
        assert [(one.component_id, one.port, one.uptime_secs) for one in found.executors] == [
            ("count", 6700, 8),
            ("count", 6701, 0),
            ("lines", 6700, 9),
        ]
        stats = found.executors[0].stats
        assert stats is not None
        source = definitions.GlobalStreamId(componentId="lines", streamId="default")
        assert stats.specific.bolt is not None
        assert stats.specific.bolt.executed == {":all-time": {source: 15}}
        assert stats.emitted == {":all-time": {"default": 3}}
        spout = found.executors[2].stats
        assert spout is not None
        assert spout.specific.spout is not None
        assert spout.specific.spout.acked == {":all-time": {"default": 18}}
        assert found.executors[1].stats is None
        assert [one.error for one in found.errors["count"]] == ["error 2", "error 1"]
        assert bench.nimbus.getTopologyInfoByName("words") == found

    @pytest.mark.parametrize(
        ("choice", "errors"),
        [
            (definitions.NumErrorsChoice.ALL, {"count": ["error 2", "error 1"]}),
            (definitions.NumErrorsChoice.ONE, {"count": ["error 2"]}),
            (definitions.NumErrorsChoice.NONE, {}),
            (None, {"count": ["error 2", "error 1"]}),
        ],
    )
    def test_so_many_errors(
        self, bench: Bench, running: str, choice: int | None, errors: dict[str, list[str]]
    ) -> None:
        options = definitions.GetInfoOptions(num_err_choice=choice)
        for found in (
            bench.nimbus.getTopologyInfoWithOpts(running, options),
            bench.nimbus.getTopologyInfoByNameWithOpts("words", options),
        ):
            texts = {id_: [one.error for one in own] for id_, own in found.errors.items()}
            assert texts == errors

    def test_errors_of_workers_that_run_no_component(self, bench: Bench, running: str) -> None:
        error = ErrorInfo("its code cannot be run", BEGIN_SECS, "host-s1", 6700)
        bench.state.report_error(running, "__system", error)
        [found] = bench.nimbus.getTopologyInfo(running).errors["__system"]
        assert (found.error, found.host, found.port) == ("its code cannot be run", "host-s1", 6700)

    def test_the_page_of_a_topology(self, bench: Bench, running: str) -> None:
        page = bench.nimbus.getTopologyPageInfo(running, ":all-time", False)
        stats = page.topology_stats
        assert stats is not None
        assert (stats.window_to_emitted, stats.window_to_transferred) == (
            {":all-time": 23},
            {":all-time": 25},
        )
        assert (stats.window_to_acked, stats.window_to_failed) == (
            {":all-time": 18},
            {":all-time": 2},
        )
        bolts, spouts = page.id_to_bolt_agg_stats, page.id_to_spout_agg_stats
        assert bolts is not None
        assert spouts is not None
        assert (set(bolts), set(spouts)) == ({"count"}, {"lines"})
        common, specific = bolts["count"].common_stats, bolts["count"].specific_stats
        assert common is not None
        assert specific is not None
        assert (common.num_executors, common.num_tasks, common.acked) == (2, 4, 14)
        assert specific.bolt is not None
        assert specific.bolt.executed == 15
        assert bolts["count"].last_error is not None
        assert bolts["count"].last_error.error == "error 2"
        workers = page.workers
        assert workers is not None
        assert [(one.port, one.num_executors, one.uptime_secs) for one in workers] == [
            (6700, 2, 9),
            (6701, 1, 0),
        ]
        assert workers[0].component_to_num_tasks == {"lines": 1, "count": 2}
        assert json.loads(page.topology_conf or "")["topology.workers"] == 2

    def test_the_page_of_a_component(self, bench: Bench, running: str) -> None:
        page = bench.nimbus.getComponentPageInfo(running, "count", ":all-time", False)
        assert page.component_type == summaries.ComponentType.BOLT
        assert (page.num_executors, page.num_tasks, page.topology_status) == (2, 4, "ACTIVE")
        assert [one.error for one in page.errors or ()] == ["error 2", "error 1"]
        acked = [
            one.stats.common_stats.acked if one.stats and one.stats.common_stats else None
            for one in page.exec_stats or ()
        ]
        assert acked == [14, 0]
        lines = bench.nimbus.getComponentPageInfo(running, "lines", ":all-time", False)
        assert lines.component_type == summaries.ComponentType.SPOUT
        with pytest.raises(
            NotAliveException, match=r"has no component 'cuont', only: count, lines"
        ):
            bench.nimbus.getComponentPageInfo(running, "cuont", ":all-time", False)

    def test_the_page_of_a_supervisor(self, bench: Bench, running: str) -> None:
        bench.join("s2")
        for page in (
            bench.nimbus.getSupervisorPageInfo("s1", None, False),
            bench.nimbus.getSupervisorPageInfo(None, "host-s1", False),
        ):
            [found] = list(page.supervisor_summaries or ())
            assert (found.supervisor_id, found.num_used_workers) == ("s1", 2)
            assert [one.topology_id for one in page.worker_summaries or ()] == [running, running]
        empty = bench.nimbus.getSupervisorPageInfo("s2", None, False)
        ids = [one.supervisor_id for one in empty.supervisor_summaries or ()]
        assert (ids, empty.worker_summaries) == (["s2"], [])

    @pytest.mark.parametrize("id_", ["words-9-9", "a/b", ""])
    def test_a_topology_that_is_not_there(self, bench: Bench, running: str, id_: str) -> None:
        nimbus = bench.nimbus
        for call in (
            nimbus.getTopologySummary,
            nimbus.getTopologyInfo,
            nimbus.getTopologyConf,
            nimbus.getTopology,
            nimbus.getUserTopology,
            nimbus.getTopologySummaryByName,
            nimbus.getTopologyInfoByName,
        ):
            with pytest.raises(NotAliveException, match="is not alive"):
                call(id_)
