"""`storm-py submit`: what arrives at nimbus, what is said, and what is left behind."""

from __future__ import annotations

import functools
import io
import os
import signal
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import storm_py
from storm_py.cli import main
from storm_py.errors import AlreadyAliveException, InvalidTopologyException
from storm_py.rpc.definitions import SubmitOptions, TopologyInitialStatus
from storm_py.thrift_topology import from_thrift
from tests.fake_nimbus import HOST, Cluster, summary
from tests.projects import Project

TOPOLOGY = """
def topology(args):
    return built(int(args[0]) if args else 1)
"""


@pytest.fixture
def files(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a topology in it; temporary files go where a test can see them."""
    project.write("flow.py", TOPOLOGY)
    project.write("pyproject.toml", "", components=False)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return project


@pytest.fixture
def nothing_left(tmp_path: Path, files: Project) -> Callable[[], bool]:
    """Whether a command has left no file behind, here or in the project."""
    before = sorted(files.folder.iterdir())

    def check() -> bool:
        after = sorted(path for path in files.folder.iterdir() if path.name != "__pycache__")
        return not list((tmp_path / "tmp").iterdir()) and after == before

    return check


class TestSubmitted:
    def test_what_is_printed(
        self, cluster: Cluster, files: Project, nothing_left: Callable[[], bool]
    ) -> None:
        result = cluster.run("submit", "flow.py", "words")
        assert (result.exit_code, result.stdout) == (0, "words-1-1700000000\n")
        [packed, submitted] = result.stderr.splitlines()
        assert packed.startswith(f"storm-py: packed 2 files of {files.folder}: ")
        assert submitted == "storm-py: words is submitted"
        assert nothing_left()

    def test_the_archive_arrives_before_the_topology(
        self, cluster: Cluster, files: Project
    ) -> None:
        cluster.run("submit", "flow.py", "words")
        [finished, submitted] = cluster.nimbus.calls
        assert finished == ("finishFileUpload", "/inbox/0")
        assert submitted[:3] == ("submit", "words", "/inbox/0")
        archive = zipfile.ZipFile(io.BytesIO(cluster.nimbus.uploads["/inbox/0"]))
        assert archive.namelist() == ["storm_py.json", "flow.py", "pyproject.toml"]

    def test_a_large_archive_arrives_whole(self, cluster: Cluster, files: Project) -> None:
        data = os.urandom(1_000_000)
        (files.folder / "data").write_bytes(data)
        assert cluster.run("submit", "flow.py", "words").exit_code == 0
        archive = zipfile.ZipFile(io.BytesIO(cluster.nimbus.uploads["/inbox/0"]))
        assert archive.read("data") == data

    def test_the_topology_arrives(self, cluster: Cluster, files: Project) -> None:
        cluster.run("submit", "flow.py", "words", "--", "3")
        topology, options = cluster.nimbus.calls[-1][4:]
        code = from_thrift(topology, "words")
        assert [spec.parallelism for spec in code.topology.components.values()] == [3]
        assert code.components["lines"]
        assert options == SubmitOptions(initial_status=TopologyInitialStatus.ACTIVE)

    def test_the_configuration_is_layered(self, cluster: Cluster, files: Project) -> None:
        files.write(
            "flow.py",
            "conf = {'topology.workers': 2, 'topology.tasks': 4, 'topology.name': 'other',"
            " 'mine': 'file', 'its': 'file'}\n"
            "def topology(args):\n    return built(), conf\n",
        )
        with cluster.storm_yaml.open("a") as file:
            file.write("topology.workers: 5\nits: yaml\nonly: yaml\n")
        cluster.run("submit", "flow.py", "words", "-c", "mine=[1]", "--workers", "3")
        conf = cluster.nimbus.calls[-1][3]
        chosen = ("topology.name", "topology.workers", "topology.tasks", "mine", "its", "only")
        assert [conf[key] for key in chosen] == ["words", 3, 4, [1], "file", "yaml"]
        assert conf["topology.message.timeout.secs"] == 30  # a default

    def test_inactive(self, cluster: Cluster, files: Project) -> None:
        result = cluster.run("submit", "flow.py", "words", "--inactive")
        assert result.stderr.splitlines()[-1] == "storm-py: words is submitted and inactive"
        options = cluster.nimbus.calls[-1][5]
        assert options == SubmitOptions(initial_status=TopologyInitialStatus.INACTIVE)

    def test_include(self, cluster: Cluster, files: Project, tmp_path: Path) -> None:
        (tmp_path / "extra.txt").write_text("x")
        cluster.run("submit", "--include", str(tmp_path / "extra.txt"), "flow.py", "words")
        archive = zipfile.ZipFile(io.BytesIO(cluster.nimbus.uploads["/inbox/0"]))
        assert "extra.txt" in archive.namelist()

    def test_a_topology_of_storm_py_itself_needs_no_copy(self, cluster: Cluster) -> None:
        result = cluster.run("submit", "storm_py.topologies.word_count", "words")
        assert result.exit_code == 0, result.output
        assert result.stderr.startswith("storm-py: packed 0 files: ")

    def test_an_id_that_cannot_be_had_is_no_failure(self, cluster: Cluster, files: Project) -> None:
        cluster.nimbus.failing("getTopologySummaryByName", OSError("gone"))
        result = cluster.run("submit", "flow.py", "words")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.splitlines()[-1] == (
            f"storm-py: its id is not known: {HOST}:{cluster.port} could not answer "
            "getTopologySummaryByName: getTopologySummaryByName failed: OSError: gone"
        )


class TestRefused:
    def test_a_name_that_is_taken(self, cluster: Cluster, files: Project) -> None:
        files.write("flow.py", "raise AssertionError('loaded for nothing')")
        cluster.nimbus.topologies["words"] = summary("words", "INACTIVE", 7)
        assert cluster.error(3, "submit", "flow.py", "words") == (
            "Error: the name 'words' is taken by words-7-1700000000, which is INACTIVE; end that "
            "with `storm-py kill words`, or choose another name\n"
        )
        cluster.nimbus.topologies["words"] = summary("words", "KILLED", 7)
        assert cluster.error(3, "submit", "flow.py", "words") == (
            "Error: the name 'words' is taken by words-7-1700000000, which is being killed: wait "
            "until `storm-py list` shows it no more, or choose another name\n"
        )
        assert cluster.error(3, "submit", "flow.py", "forbidden") == (
            "Error: nimbus does not allow the name 'forbidden'; choose another one\n"
        )
        assert (cluster.nimbus.calls, cluster.nimbus.uploads) == ([], {})

    def test_by_a_nimbus_of_another_version(self, cluster: Cluster, files: Project) -> None:
        cluster.nimbus.version = "7.0"
        assert cluster.error(3, "submit", "flow.py", "words") == (
            f"Error: nimbus at {HOST}:{cluster.port} runs storm-py 7.0, and this is "
            f"{storm_py.__version__}; use the same version here, there and on the nodes\n"
        )
        assert (cluster.nimbus.calls, cluster.nimbus.uploads) == ([], {})

    @pytest.mark.parametrize("name", ["a/b", "", "a.b"])
    def test_a_name_that_is_none(self, cluster: Cluster, files: Project, name: str) -> None:
        error = cluster.error(2, "submit", "flow.py", name)
        assert error.startswith(f"Error: Topology name {name!r} is not valid: ")

    @pytest.mark.parametrize(
        ("error", "code", "message"),
        [
            (InvalidTopologyException("no bolt"), 3, "no bolt"),
            (AlreadyAliveException("words is alive"), 3, "words is alive"),
        ],
    )
    def test_by_nimbus_at_the_end(
        self,
        cluster: Cluster,
        files: Project,
        error: Exception,
        code: int,
        message: str,
        nothing_left: Callable[[], bool],
    ) -> None:
        cluster.nimbus.failing("submitTopologyWithOpts", error)
        result = cluster.run("submit", "flow.py", "words")
        assert (result.exit_code, result.stdout) == (code, "")
        assert result.stderr.splitlines()[-1] == f"Error: {message}"
        assert nothing_left()

    def test_a_disk_that_is_full(
        self, cluster: Cluster, files: Project, nothing_left: Callable[[], bool]
    ) -> None:
        cluster.nimbus.failing("uploadChunk", OSError("No space left on device"))
        result = cluster.run("submit", "flow.py", "words")
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr.splitlines()[-1] == (
            f"Error: {HOST}:{cluster.port} could not answer uploadChunk: uploadChunk failed: "
            "OSError: No space left on device"
        )
        assert cluster.nimbus.calls == []
        assert nothing_left()


class TestMistakes:
    """Found before anything is sent."""

    def refused(self, cluster: Cluster, code: int, *args: str) -> str:
        error = cluster.error(code, "submit", *args)
        assert (cluster.nimbus.calls, cluster.nimbus.uploads) == ([], {})
        assert str(Path(storm_py.__file__).parent) not in error
        return error

    def test_an_import_that_fails_shows_the_users_traceback(
        self, cluster: Cluster, files: Project
    ) -> None:
        files.write("helper.py", "import nowhere_to_be_found", components=False)
        files.write("flow.py", "import helper")
        error = self.refused(cluster, 2, "flow.py", "words")
        assert "ModuleNotFoundError: No module named 'nowhere_to_be_found'" in error
        assert 'helper.py", line 1, in <module>\n    import nowhere_to_be_found' in error

    def test_a_file_that_is_not_there(self, cluster: Cluster, files: Project) -> None:
        assert self.refused(cluster, 2, "flo.py", "words") == (
            "Error: flo.py does not exist; did you mean 'flow.py'?\n"
        )

    def test_an_archive_that_is_too_large(self, cluster: Cluster, files: Project) -> None:
        (files.folder / "data").write_bytes(os.urandom(2048))
        limit = "storm_py.submit.max.bytes"
        error = self.refused(cluster, 2, "flow.py", "words", "-c", f"{limit}=1024")
        assert error.startswith(f"Error: {files.folder} comes to ")
        assert "The largest: data (2.0 KiB), flow.py" in error

    def test_a_file_that_cannot_be_read(
        self, cluster: Cluster, files: Project, nothing_left: Callable[[], bool]
    ) -> None:
        (files.folder / "gone.txt").symlink_to("/proc/self/mem")
        error = self.refused(cluster, 2, "flow.py", "words")
        assert error.startswith(f"Error: {files.folder} holds what cannot be packed:\n  ")
        (files.folder / "gone.txt").unlink()
        assert nothing_left()

    def test_objects_that_cannot_be_copied(self, cluster: Cluster, files: Project) -> None:
        files.write(
            "flow.py",
            "import threading\nclass Bad(Lines):\n    def __init__(self):\n"
            "        self.lock = threading.Lock()\n"
            "def topology(args):\n    builder = TopologyBuilder()\n"
            "    builder.set_spout('lines', Bad())\n    return builder\n",
        )
        error = self.refused(cluster, 2, "flow.py", "words")
        assert error.startswith("Error: spout 'lines': a Bad cannot be copied for its tasks")
        assert "because of its attribute 'lock'" in error

    def test_components_that_are_too_large_for_one_call(
        self, cluster: Cluster, files: Project
    ) -> None:
        files.write(
            "flow.py",
            "class Large(Lines):\n    def __init__(self):\n        self.data = bytes(1 << 21)\n"
            "def topology(args):\n    builder = TopologyBuilder()\n"
            "    builder.set_spout('lines', Large())\n    return builder\n",
        )
        error = self.refused(
            cluster, 2, "flow.py", "words", "-c", "nimbus.thrift.max_buffer_size=1048576"
        )
        assert error.startswith("Error: submitTopologyWithOpts is a call of 2")
        assert error.endswith(
            "bytes; the limit is 1048576, nimbus.thrift.max_buffer_size: raise it at both ends, or "
            "send less; large data belongs into a file, not into a component\n"
        )

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (
                ["--workers", "0"],
                "Invalid value for '--workers': '0'; expected a whole number of at least 1\n",
            ),
            (
                ["-c", "workers"],
                "Invalid value for '-c': 'workers' sets nothing; expected key=value, as in "
                "topology.workers=2\n",
            ),
            (
                ["--zzz"],
                "No such option '--zzz'; what is meant for the topology goes behind --\n",
            ),
        ],
    )
    def test_a_mistake_of_form(
        self, cluster: Cluster, files: Project, args: list[str], message: str
    ) -> None:
        error = self.refused(cluster, 2, "flow.py", "words", *args)
        assert error.endswith(f"\n\nError: {message}")

    def test_a_key_that_is_misspelt(self, cluster: Cluster, files: Project) -> None:
        error = self.refused(cluster, 2, "flow.py", "words", "-c", "topology.worker=2")
        assert error == (
            "Error: unknown configuration key 'topology.worker'; did you mean 'topology.workers'?\n"
        )

    def test_no_place_for_temporary_files(
        self, cluster: Cluster, files: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
        assert self.refused(cluster, 2, "flow.py", "words") == (
            "Error: no temporary file can be made for the archive: No such file or directory; "
            "TMPDIR names the folder for them\n"
        )

    def test_a_disk_that_is_full_here(
        self, cluster: Cluster, files: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        full = functools.partial(open, "/dev/full", "w+b")
        monkeypatch.setattr(tempfile, "TemporaryFile", full)
        assert self.refused(cluster, 2, "flow.py", "words") == (
            "Error: the archive of project cannot be written, as a temporary file: No space left "
            "on device; TMPDIR says where these are\n"
        )

    def test_an_include_that_is_not_there(self, cluster: Cluster, files: Project) -> None:
        error = self.refused(cluster, 2, "flow.py", "words", "--include", "flo.py")
        assert error == (
            f"Error: --include flo.py: there is no flo.py in {files.folder}; did you mean "
            "'flow.py'?\n"
        )


class TestInterrupted:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_before_it_is_submitted(
        self,
        cluster: Cluster,
        files: Project,
        number: signal.Signals,
        nothing_left: Callable[[], bool],
    ) -> None:
        cluster.nimbus.before["uploadChunk"] = lambda: os.kill(os.getpid(), number)
        result = cluster.run("submit", "flow.py", "words")
        assert (result.exit_code, result.stdout) == (130, "")
        assert result.stderr.splitlines()[-1] == "Error: interrupted: nothing is submitted"
        assert cluster.nimbus.calls == []
        assert nothing_left()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def test_while_it_is_submitted(self, cluster: Cluster, files: Project) -> None:
        cluster.nimbus.before["submitTopologyWithOpts"] = lambda: os.kill(
            os.getpid(), signal.SIGINT
        )
        result = cluster.run("submit", "flow.py", "words")
        assert (result.exit_code, result.stdout) == (130, "")
        assert result.stderr.splitlines()[-1] == (
            "Error: interrupted before nimbus had answered: `storm-py list` shows whether words "
            "runs"
        )


def test_every_option_is_explained() -> None:
    for command in main.commands.values():
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.help, f"{command.name} {param.name}"
