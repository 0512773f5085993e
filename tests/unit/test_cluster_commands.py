"""list, kill, activate, deactivate, rebalance: what nimbus is asked, and what is printed."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from storm_py.errors import (
    AuthorizationException,
    InvalidTopologyException,
    NotAliveException,
)
from tests.fake_nimbus import HOST, Cluster, executor


class TestList:
    def test_nothing(self, cluster: Cluster) -> None:
        assert cluster.done("list") == "No topologies running.\n"
        assert cluster.done("list", "--json") == "[]\n"

    def test_a_table_by_name(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words", "a")
        assert cluster.done("list").splitlines() == [
            "Topology_name  Status  Num_tasks  Num_workers  Uptime_secs  Topology_Id         Owner",
            "-------------  ------  ---------  -----------  -----------  ------------------  -----",
            "a              ACTIVE          8            2           60  a-1-1700000000      ann",
            "words          ACTIVE          8            2           60  words-1-1700000000  ann",
        ]

    def test_one_that_lacks_slots(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words", "a")
        lack = "words-1-1700000000 wants 2 slots and has 0: start another supervisor"
        cluster.nimbus.topologies["words"].sched_status = lack
        result = cluster.run("list")
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, 4)
        assert result.stderr == f"storm-py: {lack}\n"

    def test_json(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        assert json.loads(cluster.done("list", "--json")) == [
            {
                "name": "words",
                "id": "words-1-1700000000",
                "status": "ACTIVE",
                "tasks": 8,
                "executors": 5,
                "workers": 2,
                "uptime_secs": 60,
                "owner": "ann",
            }
        ]


class TestChanges:
    @pytest.mark.parametrize(
        ("args", "call", "printed"),
        [
            (
                ["kill", "words"],
                ("kill", "words", None),
                "words is killed; its workers stop after its topology.message.timeout.secs",
            ),
            (
                ["kill", "-w", "0", "words"],
                ("kill", "words", 0),
                "words is killed; its workers stop now",
            ),
            (
                ["kill", "words", "--wait-time-secs", "7"],
                ("kill", "words", 7),
                "words is killed; its workers stop after 7 s",
            ),
            (["activate", "words"], ("activate", "words"), "words is activated"),
            (["deactivate", "words"], ("deactivate", "words"), "words is deactivated"),
            (
                ["rebalance", "words"],
                ("rebalance", "words", None, None, None),
                "words is rebalanced after its topology.message.timeout.secs",
            ),
            (
                ["rebalance", "words", "-w", "1", "-n", "2", "-e", "count=4", "-e", "a=b=1"],
                ("rebalance", "words", 1, 2, {"count": 4, "a=b": 1}),
                "words is rebalanced after 1 s",
            ),
        ],
    )
    def test_what_is_asked_and_said(
        self, cluster: Cluster, args: list[str], call: tuple[object, ...], printed: str
    ) -> None:
        cluster.nimbus.running("words")
        assert cluster.done(*args) == f"{printed}\n"
        assert cluster.nimbus.calls == [call]

    def test_more_executors_than_tasks(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.executors = [executor("count", task, 6700) for task in (2, 3)]
        result = cluster.run("rebalance", "words", "-e", "count=4", "-e", "new=9", "-w", "0")
        assert (result.exit_code, result.stdout) == (0, "words is rebalanced now\n")
        assert result.stderr == (
            "storm-py: 'count' has 2 tasks and gets an executor for each, not 4; the number of "
            "tasks is chosen when a topology is submitted\n"
        )
        assert cluster.nimbus.calls == [("rebalance", "words", 0, None, {"count": 4, "new": 9})]

    @pytest.mark.parametrize("command", ["kill", "activate", "deactivate", "rebalance"])
    def test_no_such_topology(self, cluster: Cluster, command: str) -> None:
        cluster.nimbus.running("words", "lines")
        assert cluster.error(3, command, "wrods") == (
            "Error: no topology 'wrods' runs, but lines, words; did you mean 'words'?\n"
        )
        assert cluster.error(3, command, "x") == ("Error: no topology 'x' runs, but lines, words\n")

    def test_no_topology_at_all(self, cluster: Cluster) -> None:
        assert cluster.error(3, "kill", "words") == (
            "Error: no topology 'words' runs, nor does any other; see `storm-py submit --help`\n"
        )

    def test_no_such_topology_and_nobody_to_ask_for_the_others(self, cluster: Cluster) -> None:
        cluster.nimbus.failing("getTopologySummaries", ValueError("broken"))
        assert cluster.error(3, "kill", "words") == "Error: no topology 'words' runs\n"


class TestRefusals:
    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (InvalidTopologyException("no component 'cuont'"), "no component 'cuont'"),
            (AuthorizationException("not yours"), "not yours"),
        ],
    )
    def test_what_nimbus_says_is_passed_on(
        self, cluster: Cluster, error: Exception, message: str
    ) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.failing("rebalance", error)
        assert cluster.error(3, "rebalance", "words", "-e", "cuont=2") == f"Error: {message}\n"

    def test_what_goes_wrong_there_is_passed_on(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.failing("killTopologyWithOpts", NotAliveException("words is not alive"))
        cluster.nimbus.failing("killTopologyWithOpts", OSError("disk full"))
        assert cluster.error(3, "kill", "words") == (
            f"Error: {HOST}:{cluster.port} could not answer killTopologyWithOpts: "
            "killTopologyWithOpts failed: OSError: disk full\n"
        )

    def test_nobody_there(self, cluster: Cluster) -> None:
        with socket.create_server((HOST, 0)) as listener:
            port = listener.getsockname()[1]
        assert cluster.error(1, "list", "-c", f"nimbus.thrift.port={port}") == (
            "Error: no nimbus can be reached; asked was each host of nimbus.seeds:\n"
            f"  nothing listens at {HOST}:{port} (3 attempts); start the server there, or name the "
            "host and port where it runs\n"
            "Start a cluster on this machine with `storm-py cluster`, or name that of another one "
            "by nimbus.seeds and nimbus.thrift.port, in storm.yaml or with -c\n"
        )

    def test_nobody_leads(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("storm_py.client.LEADER_SECS", 0.1)
        cluster.nimbus.failing("getLeader", ValueError("no leader"))
        assert cluster.error(3, "list") == (
            "storm-py: no nimbus leads yet; waiting for one\n"
            "Error: no nimbus leads, not after 0.1 s of waiting either:\n"
            f"  {HOST}:{cluster.port} could not answer getLeader: getLeader failed: ValueError: no "
            "leader\n"
            "After the death of a leader it takes storm.zookeeper.session.timeout until another "
            "one leads; if this lasts, see whether ZooKeeper runs, and what nimbus logs\n"
        )

    def test_the_leader_changes(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.failing("killTopologyWithOpts", ValueError("not a leader"))

        def elect() -> None:
            """Answer the question before the call, and another leader after it."""
            cluster.nimbus.before["getLeader"] = lambda: setattr(
                cluster.nimbus, "leader", ("beta", 6627)
            )

        cluster.nimbus.before["getLeader"] = elect
        assert cluster.error(3, "kill", "words") == (
            f"Error: {HOST}:{cluster.port} could not answer killTopologyWithOpts: "
            "killTopologyWithOpts failed: ValueError: not a leader; it was the leader, and "
            "beta:6627 is by now: look what has become of it, and try again\n"
        )


USAGE = "Usage: storm-py {0} [OPTIONS] NAME\nTry 'storm-py {0} --help' for help.\n\nError: "


class TestUsage:
    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (
                ["kill", "words", "-w", "soon"],
                "Invalid value for '-w' / '--wait-time-secs': 'soon'; expected a whole number of "
                "at least 0\n",
            ),
            (
                ["kill", "words", "-w", "-1"],
                "Invalid value for '-w' / '--wait-time-secs': '-1'; expected a whole number of "
                "at least 0\n",
            ),
            (["kill"], "Missing argument 'NAME'.\n"),
            (["kill", ""], "Invalid value for 'NAME': '' is no name of a topology\n"),
            (
                ["kill", "a\udcffb"],
                "Invalid value for 'NAME': 'a\\udcffb' is no name of a topology\n",
            ),
            (
                ["rebalance", "words", "-n", "0"],
                "Invalid value for '-n' / '--num-workers': '0'; expected a whole number of at "
                "least 1\n",
            ),
            *(
                (
                    ["rebalance", "words", "-e", text],
                    f"Invalid value for '-e' / '--executor': {text!r}; expected COMPONENT=N with a "
                    "whole number of at least 1, as in count=4\n",
                )
                for text in ("count", "count=", "=3", "count=0", "count=x", "count=4294967296")
            ),
            (
                ["rebalance", "words", "-e", "count=2", "-e", "count=3"],
                "Invalid value for '-e' / '--executor': 'count' is there twice\n",
            ),
            (
                ["activate", "words", "-c", "nimbus.thrift.port"],
                "Invalid value for '-c': 'nimbus.thrift.port' sets nothing; expected key=value, as "
                "in topology.workers=2\n",
            ),
        ],
    )
    def test_a_mistake_of_form(self, cluster: Cluster, args: list[str], message: str) -> None:
        cluster.nimbus.running("words")
        assert cluster.error(2, *args) == USAGE.format(args[0]) + message
        assert cluster.nimbus.calls == []

    def test_other_configuration_is_no_matter_of_rebalance(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        assert cluster.error(2, "rebalance", "words", "-c", "topology.workers=3") == (
            "Error: -c topology.workers: rebalance changes workers (-n) and executors (-e) only; "
            "for another configuration, kill the topology and submit it again\n"
        )
        assert cluster.nimbus.calls == []


class TestStormYaml:
    def test_a_wrong_value(self, cluster: Cluster) -> None:
        cluster.storm_yaml.write_text("nimbus.seeds: alpha\n")
        assert cluster.error(2, "list") == (
            f"Error: {cluster.storm_yaml}, line 1: nimbus.seeds is 'alpha' (str); expected a list "
            "of host names, without ports; put it into a list: ['alpha']\n"
        )

    def test_a_wrong_value_on_the_command_line(self, cluster: Cluster) -> None:
        assert cluster.error(2, "list", "-c", "nimbus.thrift.port=high") == (
            "Error: nimbus.thrift.port is 'high' (str); expected an integer from 1 to 65535\n"
        )

    def test_a_misspelt_key_is_warned_of(self, cluster: Cluster) -> None:
        with cluster.storm_yaml.open("a") as file:
            file.write("nimbus.seed: [alpha]\n")
        result = cluster.run("list")
        assert (result.exit_code, result.stdout) == (0, "No topologies running.\n")
        assert result.stderr == (
            f"Warning: {cluster.storm_yaml}, line 5: no key is called 'nimbus.seed'; did you mean "
            "'nimbus.seeds'?\n"
        )

    def test_another_file(self, cluster: Cluster, tmp_path: Path) -> None:
        (tmp_path / "other.yaml").write_text(cluster.storm_yaml.read_text())
        cluster.storm_yaml.write_text("no: [yaml\n")
        assert cluster.done("list", "--config", str(tmp_path / "other.yaml"))
        assert cluster.error(2, "list", "--config", str(tmp_path / "none.yaml")) == (
            f"Error: --config {tmp_path}/none.yaml: {tmp_path}/none.yaml is not there\n"
        )
