"""An unmodified streamparse 5 and a real nimbus: what its users can do, and what they are told.

Nimbus and supervisor are processes over a real ZooKeeper, and so is `sparse`, see
tests/streamparses.py.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from storm_py.bundle import code_key, conf_key, jar_key
from storm_py.constants import SYSTEM_COMPONENT_ID
from storm_py.dev_zookeeper import DevZooKeeper
from storm_py.errors import KeyNotFoundException, RpcError
from storm_py.rpc import definitions
from storm_py.rpc.client import ThriftClient
from storm_py.rpc.interface import Nimbus
from tests.helpers import wait_until
from tests.integration.harness import GENEROUS_SECS
from tests.real_nimbuses import free_port
from tests.streamparses import SparseProject, environment
from tests.zookeepers import HOST

NO_TOPOLOGIES = "No topologies found.\n"
#: What `sparse` is to tell nimbus of the components, see tests/streamparses.py.
COMMAND = "streamparse_run"
SHUFFLE = definitions.Grouping(shuffle=definitions.NullStruct())


class Daemons:
    """A nimbus, and supervisors if a test wants them, as processes; on ports of their own."""

    def __init__(self, folder: Path, zookeeper_port: int, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        reserved, self.port = free_port()
        stack.enter_context(reserved)
        self._settings = {
            "storm.zookeeper.servers": [HOST],
            "storm.zookeeper.port": zookeeper_port,
            "storm.zookeeper.root": f"/{uuid.uuid4().hex}",
            "storm.local.hostname": HOST,
            "nimbus.seeds": [HOST],
            "nimbus.thrift.port": self.port,
            "nimbus.monitor.freq.secs": 1,
            "nimbus.topology.blobstore.deletion.delay.ms": 0,
        }
        self._start("nimbus")
        client = ThriftClient(HOST, self.port)
        stack.callback(client.close)
        self.client: Nimbus = client.nimbus
        wait_until(self._leads, GENEROUS_SECS, "nimbus leads")

    def start_supervisor(self) -> None:
        """Have a supervisor with one slot."""
        reserved, port = free_port()
        self._stack.enter_context(reserved)
        self._start("supervisor", **{"supervisor.slots.ports": [port]})
        wait_until(
            lambda: self.client.getClusterInfo().supervisors, GENEROUS_SECS, "the supervisor"
        )

    def storm_py(self, *arguments: str) -> str:
        """What one of our own commands prints."""
        command = [sys.executable, "-m", "storm_py", *arguments, *self._flags({})]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def _flags(self, more: dict[str, object]) -> list[str]:
        settings = {**self._settings, **more}
        return [
            text for key, value in settings.items() for text in ("-c", f"{key}={json.dumps(value)}")
        ]

    def _leads(self) -> bool:
        try:
            return bool(self.client.getLeader().isLeader)
        except RpcError:  # not there yet, or not elected
            return False

    def _start(self, name: str, **more: object) -> None:
        flags = self._flags({"storm.local.dir": str(self._folder / name), **more})
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "storm_py", name, *flags],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._stack.callback(self._stop, process)

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(GENEROUS_SECS)
        finally:
            process.kill()


@pytest.fixture(scope="session")
def programs() -> Path:
    return environment()


@pytest.fixture
def daemons(zookeeper: DevZooKeeper, tmp_path: Path) -> Iterator[Daemons]:
    with ExitStack() as stack:
        yield Daemons(tmp_path, zookeeper.port, stack)


@pytest.fixture
def project(programs: Path, daemons: Daemons, tmp_path: Path) -> SparseProject:
    made = SparseProject(tmp_path / "project", programs, f"{HOST}:{daemons.port}")
    made.configure(workers=["node-1", "node-2"])
    return made


def shell(script: str) -> definitions.ComponentObject:
    made = definitions.ShellComponent(execution_command=COMMAND, script=script)
    return definitions.ComponentObject(shell=made)


def stream(component_id: str, stream_id: str = "default") -> definitions.GlobalStreamId:
    return definitions.GlobalStreamId(componentId=component_id, streamId=stream_id)


def blob(nimbus: Nimbus, key: str) -> bytes:
    """A blob, as a supervisor fetches it."""
    session = nimbus.beginBlobDownload(key).session
    return b"".join(iter(lambda: nimbus.downloadBlobChunk(session), b""))


def exists(nimbus: Nimbus, key: str) -> bool:
    try:
        nimbus.getBlobMeta(key)
    except KeyNotFoundException:
        return False
    return True


def test_submit_list_and_kill(daemons: Daemons, project: SparseProject) -> None:
    nimbus = daemons.client
    assert project.sparse("list") == NO_TOPOLOGIES

    said = project.sparse(*project.submit())
    assert f"Uploaded {len(project.jar)}/{len(project.jar)} bytes\n" in said
    assert said.endswith("Submitting words topology to nimbus...done\n")

    id_ = nimbus.getTopologySummaryByName("words").id
    [row] = project.listed().values()
    assert (row["id"], row["name"], row["status"]) == (id_, "words", "ACTIVE")
    assert (row["num_tasks"], row["num_executors"], row["num_workers"]) == ("7", "5", "0")
    [ours] = json.loads(daemons.storm_py("list", "--json"))
    assert (ours["name"], ours["status"]) == ("words", "ACTIVE")

    keys = jar_key(id_), code_key(id_), conf_key(id_)
    assert all(exists(nimbus, key) for key in keys)
    assert blob(nimbus, jar_key(id_)) == project.jar
    assert nimbus.getBlobMeta(jar_key(id_)).sha256 == hashlib.sha256(project.jar).hexdigest()

    project.sparse("kill", "-n", "words", "--wait", "0")
    wait_until(lambda: project.sparse("list") == NO_TOPOLOGIES, GENEROUS_SECS, "the removal")
    wait_until(lambda: not any(exists(nimbus, key) for key in keys), GENEROUS_SECS, "no blobs")


def test_what_it_sent_is_what_is_kept(daemons: Daemons, project: SparseProject) -> None:
    project.sparse(*project.submit("--inactive", "-w", "3", "-o", "my.own=[1, two]"))
    summary = daemons.client.getTopologySummaryByName("words")
    assert summary.status == "INACTIVE"

    kept = daemons.client.getUserTopology(summary.id)
    assert {id_: one.spout_object for id_, one in kept.spouts.items()} == {
        "lines": shell("-s json flow.Lines")
    }
    assert {id_: one.bolt_object for id_, one in kept.bolts.items()} == {
        "split": shell("-s json flow.Split"),
        "count": shell("-s json flow.Count"),
    }
    split, count = kept.bolts["split"].common, kept.bolts["count"].common
    assert [one.parallelism_hint for one in (split, count)] == [2, 2]
    assert json.loads(count.json_conf or "") == {"topology.tasks": 4}
    assert split.inputs == {stream("lines"): SHUFFLE}
    assert count.inputs == {
        stream("split"): definitions.Grouping(fields=["word"]),
        stream("split", "lengths"): definitions.Grouping(fields=[]),
    }
    assert split.streams == {
        "default": definitions.StreamInfo(output_fields=["word"], direct=False),
        "lengths": definitions.StreamInfo(output_fields=["length"], direct=False),
    }

    conf = json.loads(daemons.client.getTopologyConf(summary.id))
    sent = {
        "topology.workers": 3,
        "topology.acker.executors": 2,  # as many as there are nodes
        "topology.message.timeout.secs": 7,
        "topology.original_name": "words",
        "my.own": [1, "two"],
        "pystorm.log.level": "info",
        "storm.workers.list": ["node-1", "node-2"],
        "use_virtualenv": False,
        "sudo_user": None,
    }
    assert {key: conf[key] for key in sent} == sent
    assert (conf["storm.id"], conf["topology.name"]) == (summary.id, "words")


def test_several_in_one_list(daemons: Daemons, project: SparseProject) -> None:
    project.sparse(*project.submit())
    project.sparse(*project.submit("-N", "more-words", "--inactive"))
    statuses = {name: row["status"] for name, row in project.listed().items()}
    assert statuses == {"words": "ACTIVE", "more-words": "INACTIVE"}


def test_one_takes_the_place_of_another(daemons: Daemons, project: SparseProject) -> None:
    project.sparse(*project.submit())
    assert "Killed.\n" in project.sparse(*project.submit("--force", "--wait", "0", "--inactive"))
    [summary] = daemons.client.getTopologySummaries()
    assert (summary.name, summary.status) == ("words", "INACTIVE")


def test_what_its_user_is_told(daemons: Daemons, project: SparseProject) -> None:
    assert project.refused("kill", "-n", "words") == (
        "storm_thrift.NotAliveException: NotAliveException("
        "msg='words is not alive; there is no topology at all')"
    )
    project.sparse(*project.submit())
    [before] = daemons.client.getTopologySummaries()
    assert project.refused(*project.submit()) == (
        "storm_thrift.AlreadyAliveException: AlreadyAliveException("
        "msg=\"Topology with name 'words' already exists on the cluster: kill it first, or choose "
        'another name")'
    )
    said = project.refused("submit", "-n", "words", "-N", "other", "-R", "/its/jar")
    assert "there is no upload '/its/jar'" in said  # a jar serves one submission
    said = project.refused(*project.submit("-N", "a/b"))
    assert said.startswith("storm_thrift.InvalidTopologyException: ")
    assert "Topology name 'a/b' is not valid: it contains /" in said
    project.configure()  # it asks nimbus, which has no supervisors
    assert "topology.workers is 0 (int); expected an integer from 1 to 65535" in project.refused(
        *project.submit("-N", "more-words")
    )
    [after] = daemons.client.getTopologySummaries()
    assert after.id == before.id


def test_workers_say_that_they_cannot_run_it(daemons: Daemons, project: SparseProject) -> None:
    daemons.start_supervisor()
    project.configure()  # it asks nimbus for the nodes
    project.sparse(*project.submit())
    nimbus = daemons.client
    id_ = nimbus.getTopologySummaryByName("words").id
    assert json.loads(nimbus.getTopologyConf(id_))["storm.workers.list"] == [HOST]

    def errors() -> list[str]:
        found = nimbus.getTopologyInfo(id_).errors.get(SYSTEM_COMPONENT_ID, [])
        return [one.error for one in found]

    wait_until(lambda: len(errors()) >= 3, GENEROUS_SECS, "the third worker has said why it ends")
    [error] = set(errors())
    assert "storm_py did not pack it" in error
    assert error in daemons.storm_py("get-errors", "words")
    assert project.listed()["words"]["num_workers"] == "1"

    project.sparse("kill", "-n", "words", "--wait", "0")
    wait_until(lambda: project.sparse("list") == NO_TOPOLOGIES, GENEROUS_SECS, "the removal")
    [node] = nimbus.getClusterInfo().supervisors
    assert node.num_used_workers == 0
