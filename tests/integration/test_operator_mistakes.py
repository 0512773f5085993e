"""What operators get wrong on a cluster of real processes: what is said, and what is left: nothing.

The rows, and what they mean, are in `tests.operators_page`, of which `docs/mistakes.md` is made.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
import pytest

import storm_py
from benchmarks.daemons import GENEROUS_SECS, HOST, SETTINGS, Cluster, wait_for
from storm_py.rpc.server import ThriftServer
from tests.cluster import state_of
from tests.disk import little_room
from tests.fake_nimbus import FakeNimbus
from tests.integration.clusters import free_ports
from tests.operators import Mistake
from tests.operators_page import MISTAKES, markdown

RUNNING = ("words", "dying", "moving")
WORKERS = len(RUNNING)
ROWS = {mistake.id: mistake for mistake in MISTAKES}

BIG_BYTES = 3_000_000
"""More than a submission may have in one row, and more than one chunk."""

PROJECT = {
    "pyproject.toml": "",
    "parts.py": """\
from storm_py import BaseBasicBolt, BaseRichSpout, TopologyBuilder

class Lines(BaseRichSpout):
    def declare_output_fields(self, declarer):
        declarer.declare("line")

    def next_tuple(self):
        pass

class Count(BaseBasicBolt):
    def execute(self, tup, collector):
        pass

def built(spout, source):
    builder = TopologyBuilder()
    builder.set_spout("lines", spout)
    builder.set_bolt("count", Count(), 2).shuffle_grouping(source)
    return builder
""",
    "flow.py": """\
from parts import Lines, built

def topology(args):
    return built(Lines(), "lines")
""",
    "importing.py": "import no_such_library\n",
    "raising.py": "def topology(args):\n    return {}['lines']\n",
    "subscribing.py": """\
from parts import Lines, built

def topology(args):
    return built(Lines(), "line")
""",
    "holding.py": """\
import threading
from parts import Lines, built

def topology(args):
    spout = Lines()
    spout.lock = threading.Lock()
    return built(spout, "lines")
""",
    "killing.py": """\
import os
import signal
from flow import topology as build
from storm_py.client import NimbusClient

call, chunks = NimbusClient.call, []

def topology(args):
    def dying(client, name, *arguments, **named):
        chunks.extend([name] * (name == "uploadChunk"))
        if len(chunks) == 2:
            os.kill(os.getpid(), int(args[0]))
        return call(client, name, *arguments, **named)

    NimbusClient.call = dying
    return build(args)
""",
    "damaging.py": """\
from flow import topology
from storm_py.submit.prepared import Prepared

pack = Prepared.pack

def damaged(prepared, file):
    packed = pack(prepared, file)
    file.truncate(100)
    return packed

Prepared.pack = damaged
""",
    "older.py": """\
import sys
from flow import topology

sys.modules["storm_py.cli.submit"].__version__ = "0.0.9"
""",
    "bad.yaml": "nimbus.seeds: [localhost]\nsupervisor.slots.ports: 6700\n",
    "twice.yaml": "nimbus.thrift.port: 6627\nnimbus.thrift.port: 6628\n",
    "broken.yaml": "nimbus.seeds: [localhost\n",
}


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str


class Site:
    """A cluster, and the machine of somebody who makes mistakes with it."""

    def __init__(self, cluster: Cluster, folder: Path, free: int, taken: int) -> None:
        self.cluster = cluster
        self.project = folder / "project"
        self.temporary = folder / "tmp"
        for path in (self.project, self.temporary, folder / "home"):
            path.mkdir()
        (folder / "big").write_bytes(os.urandom(BIG_BYTES))
        for name, text in PROJECT.items():
            (self.project / name).write_text(text)
        self._environ = {
            **os.environ,
            "HOME": str(folder / "home"),
            "TMPDIR": str(self.temporary),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._environ.pop("STORM_CONF_DIR", None)
        self.names = {
            "file": cluster.config,
            "folder": folder,
            "node": cluster.local_dirs[0],
            "free": free,
            "taken": taken,
        }

    def line(self, command: str) -> list[str]:
        """A command of the table as a line for the system; it has the storm.yaml of the cluster."""
        name, *arguments = shlex.split(command.format_map(self.names))
        if name != "dev-zookeeper" and "--config" not in arguments:
            arguments = ["--config", str(self.cluster.config), *arguments]
        return [sys.executable, "-m", "storm_py", name, *arguments]

    def run(self, command: str, **environ: str) -> Done:
        """Give a command and wait for its end."""
        done = subprocess.run(
            self.line(command),
            cwd=self.project,
            env={**self._environ, **environ},
            capture_output=True,
            text=True,
            timeout=GENEROUS_SECS,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def stored(self) -> list[str]:
        """All that a submission could leave behind: here, with nimbus, in ZooKeeper."""
        nimbus = self.cluster.folder / "nimbus-node" / "nimbus"
        places = (self.project, self.temporary, nimbus)
        files = [str(path) for place in places for path in place.rglob("*")]
        with state_of(self.cluster) as state:
            return sorted([*files, *state.storms()])

    def is_up(self, name: str) -> bool:
        """Whether all executors of a topology are known to run."""
        seen = json.loads(self.cluster.run("monitor", name, "--once", "--json"))
        return bool(0 < seen["executors"] == seen["executors_up"])

    def status(self, name: str) -> str | None:
        """The status of a topology; None if there is none of this name."""
        for line in self.cluster.run("list").splitlines():
            if line.split()[:1] == [name]:
                return line.split()[1]
        return None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, run_marker: str) -> Iterator[Site]:
    """A cluster on which "words" runs, "dying" is being killed, and "moving" is rebalanced."""
    folder = tmp_path_factory.mktemp("site")
    settings = {
        **SETTINGS,
        "nimbus.cleanup.inbox.freq.secs": 1,
        "nimbus.inbox.jar.expiration.secs": 3,
    }
    # Run folders of its workers are in nobody's way: they stay from test to test.
    with (
        tempfile.TemporaryDirectory(prefix="storm-py-") as run_folder,
        free_ports(1) as [free],
        socket.create_server((HOST, 0)) as taken,
        Cluster(folder, supervisors=1, slots=4, settings=settings) as cluster,
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", run_folder)
            cluster.start()
        found = Site(cluster, folder, free, taken.getsockname()[1])
        for name in RUNNING:
            done = found.run(f"submit flow.py {name}")
            assert done.code == 0, done.stderr
        for name in RUNNING:
            wait_for(partial(found.is_up, name), f"all of {name} runs")
        cluster.run("kill", "dying", "-w", "900")
        cluster.run("rebalance", "moving", "-w", "900")
        yield found


def told(mistake: Mistake, done: Done) -> None:
    """Assert that a command has said what it should, and nothing of storm-py's insides."""
    assert done.code == mistake.code, done.stderr
    assert mistake.is_said(done.stderr), done.stderr
    assert ("Traceback" in done.stderr) is mistake.traceback
    assert str(Path(storm_py.__file__).parent) not in done.stderr


@pytest.fixture
def nothing_left(site: Site) -> Iterator[None]:
    """Fail a test that leaves anything of a submission behind."""
    before = site.stored()
    yield
    assert site.stored() == before


pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.parametrize(
    "mistake", [each for each in MISTAKES if each.command], ids=lambda each: each.id
)
def test_a_command(site: Site, mistake: Mistake) -> None:
    told(mistake, site.run(mistake.command))


# ---- what takes more than a command --------------------------------------------------------------


def test_a_submit_that_is_ended_while_it_uploads(site: Site) -> None:
    before = site.stored()
    for name, number in (("submit is killed", 9), ("submit is interrupted", 15)):
        told(ROWS[name], site.run(f"submit killing.py new --include {{folder}}/big -- {number}"))
    left = set(site.stored()) - set(before)
    assert {Path(path).parent.name for path in left} <= {"inbox"}
    wait_for(lambda: site.stored() == before, "nimbus throws away what was uploaded")


def test_the_disk_of_nimbus_is_full(site: Site) -> None:
    [nimbus] = [each for each in psutil.Process().children() if "nimbus" in each.cmdline()]
    before = nimbus.rlimit(psutil.RLIMIT_FSIZE)
    nimbus.rlimit(psutil.RLIMIT_FSIZE, (BIG_BYTES // 2, before[1]))
    try:
        done = site.run("submit flow.py new --include {folder}/big")
    finally:
        nimbus.rlimit(psutil.RLIMIT_FSIZE, before)
    told(ROWS["disk of nimbus is full"], done)


def test_the_disk_of_the_client_is_full(site: Site) -> None:
    with little_room():
        done = site.run("submit flow.py new --include {folder}/big")
    told(ROWS["disk of the client is full"], done)


def test_a_broken_archive(site: Site) -> None:
    told(ROWS["broken archive"], site.run("submit damaging.py new"))


def test_another_version_of_nimbus(site: Site) -> None:
    nimbus = FakeNimbus(version="0.0.9")
    with ThriftServer(nimbus, HOST) as server:
        nimbus.leader = server.address
        done = site.run(f"submit flow.py new -c nimbus.thrift.port={server.address[1]}")
    told(ROWS["versions of submit and nimbus"], done)
    assert nimbus.uploads == {}


def test_another_version_on_a_node(site: Site) -> None:
    mistake = ROWS["versions of submit and node"]
    before = site.stored()
    assert site.run("submit older.py new").code == 0
    try:
        wait_for(lambda: mistake.is_said(site.run("get-errors new").stdout), "it is reported")
    finally:
        assert site.run("kill new -w 0").code == 0
        wait_for(lambda: site.stored() == before, "it is gone")
    wait_for(lambda: len(site.cluster.workers()) == WORKERS, "its workers are gone")


def test_more_executors_than_tasks(site: Site) -> None:
    told(ROWS["more executors than tasks"], site.run("rebalance words -w 0 -e count=4"))
    wait_for(lambda: site.status("words") == "ACTIVE", "it is rebalanced")


def test_nimbus_has_lost_zookeeper(site: Site, tmp_path: Path) -> None:
    with Cluster(tmp_path, supervisors=0) as cluster:
        cluster.start()
        cluster.zookeeper.stop()
        done = site.run(f"submit flow.py new --config {cluster.config}")
    told(ROWS["nimbus has lost ZooKeeper"], done)
    assert list(tmp_path.rglob("stormjar-*")) == []


# ---- the table -----------------------------------------------------------------------------------


def test_the_page_is_this_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "mistakes.md"
    assert page.read_text("utf-8") == markdown(), (
        "python -m tests.operators_page > docs/mistakes.md"
    )


def test_every_row_is_made_true() -> None:
    assert len(ROWS) == len(MISTAKES) >= 25
    source = Path(__file__).read_text("utf-8")
    alone = [mistake.id for mistake in MISTAKES if not mistake.command]
    assert [id_ for id_ in alone if f'"{id_}"' not in source] == []
