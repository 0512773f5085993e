"""What nimbus tells of the cluster, its supervisors and topologies, through Storm's bytes."""

from __future__ import annotations

import json

import pytest

from storm_py.cluster.records import ErrorInfo
from storm_py.errors import (
    NotAliveException,
    RemoteError,
)
from storm_py.rpc import definitions, summaries
from tests.real_nimbuses import BEGIN_SECS, Bench


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
