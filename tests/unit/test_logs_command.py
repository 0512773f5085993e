"""`storm-py logs`: which files of this machine are shown, and how they are followed."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.cli import log_files
from storm_py.cli.log_files import Follower, LogFolder, last_lines, log_folders
from tests.fake_nimbus import HOST, Cluster, executor

ID = "words-1-1700000000"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


class TestFiles:
    def test_folders_of_all_supervisors(self, tmp_path: Path) -> None:
        for folder in ("logs/b-1-2/6700", "supervisor-2/logs/b-1-2/6710", "supervisor-1/logs/a/1"):
            write(tmp_path / folder / "worker.log")
        write(tmp_path / "logs/nimbus.log")
        write(tmp_path / "logs/b-1-2/notes/worker.log")
        assert log_folders(tmp_path) == [
            LogFolder("a", 1, tmp_path / "supervisor-1/logs/a/1"),
            LogFolder("b-1-2", 6700, tmp_path / "logs/b-1-2/6700"),
            LogFolder("b-1-2", 6710, tmp_path / "supervisor-2/logs/b-1-2/6710"),
        ]
        assert log_folders(tmp_path / "nowhere") == []

    def test_what_belongs_together_the_oldest_first(self, tmp_path: Path) -> None:
        names = ["worker.log.2", "worker.log.10", "worker.log", "worker.log.err", "a-1.out"]
        for name in [*names, "worker.log.1"]:
            write(tmp_path / name)
        assert [path.name for path in log_files.log_files(tmp_path)] == [
            "worker.log.10",
            "worker.log.2",
            "worker.log.1",
            "worker.log",
            "worker.log.err",
            "a-1.out",
        ]

    def test_of_one_component(self, tmp_path: Path) -> None:
        long = "x" * 250
        mine = ["a%2Fb-3.log", "a%2Fb-3.log.1", "a%2Fb-12.out"]
        for name in [*mine, "a-3.log", "a%2Fb-c-3.log", "worker.log", f"{'x' * 200}-1.err"]:
            write(tmp_path / name)
        found = {path.name for path in log_files.log_files(tmp_path, "a/b")}
        assert found == set(mine)
        assert len(log_files.log_files(tmp_path, long)) == 1
        folder = LogFolder("id", 1, tmp_path)
        assert log_files.components([folder]) == ["a", "a/b", "a/b-c", "x" * 200]


@given(
    lines=st.lists(st.sampled_from([b"", b"a", b"bcd"]), max_size=6),
    rest=st.sampled_from([b"", b"x"]),
    count=st.integers(0, 8),
    chunk=st.integers(1, 8),
)
def test_the_last_lines_are_the_last_lines(
    lines: list[bytes], rest: bytes, count: int, chunk: int
) -> None:
    text = b"".join(line + b"\n" for line in lines) + rest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_files, "_CHUNK_BYTES", chunk)
        file = io.BytesIO(text)
        last_lines(file, count)
    whole = text.splitlines(keepends=True)
    assert file.read() == b"".join(whole[max(0, len(whole) - count) :])


class Following:
    """A folder whose files are followed."""

    def __init__(self, folder: Path, count: int = 10) -> None:
        self.folder = folder
        self.follower = Follower(lambda: log_files.log_files(folder), count)

    def new(self) -> list[tuple[str, str]]:
        return [(path.name, line.decode()) for path, line in self.follower.read()]

    def append(self, name: str, text: str) -> None:
        with (self.folder / name).open("a") as file:
            file.write(text)


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Callable[[int], Following]]:
    made: list[Following] = []

    def begin(count: int = 10) -> Following:
        made.append(Following(tmp_path, count))
        return made[-1]

    yield begin
    for one in made:
        one.follower.close()


class TestFollower:
    def test_what_is_added(self, tmp_path: Path, following: Callable[[int], Following]) -> None:
        write(tmp_path / "a", "1\n2\n3\n")
        view = following(2)
        assert view.new() == [("a", "2"), ("a", "3")]
        assert view.new() == []
        view.append("a", "4\nhal")
        assert view.new() == [("a", "4")]
        view.append("a", "f\n")
        assert view.new() == [("a", "half")]

    def test_a_new_file_is_read_from_its_beginning(
        self, tmp_path: Path, following: Callable[[int], Following]
    ) -> None:
        view = following(0)
        assert view.new() == []
        write(tmp_path / "a", "1\n2\n")
        assert view.new() == [("a", "1"), ("a", "2")]

    def test_rotation_loses_and_repeats_nothing(
        self, tmp_path: Path, following: Callable[[int], Following]
    ) -> None:
        write(tmp_path / "a.1", "old\n")
        write(tmp_path / "a", "1\n")
        view = following(10)
        assert view.new() == [("a", "1")]
        view.append("a", "2\n")
        (tmp_path / "a.1").rename(tmp_path / "a.2")
        (tmp_path / "a").rename(tmp_path / "a.1")
        view.append("a", "3\n")
        assert view.new() == [("a", "2"), ("a", "3")]
        view.append("a.1", "late\n")
        assert view.new() == [("a", "late")]

    def test_a_file_that_is_cut_begins_again(
        self, tmp_path: Path, following: Callable[[int], Following]
    ) -> None:
        write(tmp_path / "a", "1\n2\nha")
        view = following(10)
        assert view.new() == [("a", "1"), ("a", "2")]
        write(tmp_path / "a", "3\n")
        assert view.new() == [("a", "3")]

    def test_a_file_that_is_removed_gives_its_rest(
        self, tmp_path: Path, following: Callable[[int], Following]
    ) -> None:
        write(tmp_path / "a", "1\n")
        view = following(10)
        view.new()
        view.append("a", "2\nrest")
        (tmp_path / "a").unlink()
        assert view.new() == [("a", "2"), ("a", "rest")]
        assert view.new() == []


class TestCommand:
    def text(self, cluster: Cluster, path: str, text: str) -> str:
        return str(write(cluster.local_dir / path, text))

    def test_all_files_of_a_topology(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        one = self.text(cluster, f"supervisor-1/logs/{ID}/6700/worker.log", "one\n")
        two = self.text(cluster, f"supervisor-2/logs/{ID}/6710/count-3.out", "two")
        self.text(cluster, f"supervisor-2/logs/{ID}/6710/worker.log.err", "")
        self.text(cluster, "logs/words-2-1700000000/6700/worker.log", "other\n")
        assert cluster.done("logs", "words") == f"==> {one} <==\none\n\n==> {two} <==\ntwo\n\n"

    @pytest.mark.parametrize(
        ("args", "shown"),
        [
            (["--worker", "6701"], ["6701"]),
            (["-c", "count"], ["count-2.log"]),
            (["--component", "count"], ["count-2.log"]),
            (["-c", "count", "-c", "nimbus.seeds=[]", "--worker", "6700"], []),
            (["-n", "1"], ["count-2.log", "6700", "6701"]),
        ],
    )
    def test_some_of_them(self, cluster: Cluster, args: list[str], shown: list[str]) -> None:
        cluster.nimbus.running("words")
        self.text(cluster, f"logs/{ID}/6700/worker.log", "0\n6700\n")
        self.text(cluster, f"logs/{ID}/6701/worker.log", "6701\n")
        self.text(cluster, f"logs/{ID}/6700/count-2.log", "count-2.log\n")
        result = cluster.run("logs", "words", *args)
        if not shown:
            assert result.exit_code == 2  # the setting counts
            return
        lines = result.stdout.splitlines()
        assert sorted(x for x in lines if x and not x.startswith("==>")) == sorted(shown)

    def test_a_topology_that_is_gone_by_its_id(self, cluster: Cluster) -> None:
        path = self.text(cluster, "logs/words-3-1600000000/6700/worker.log", "old\n")
        assert cluster.done("logs", "words-3-1600000000") == f"==> {path} <==\nold\n\n"

    def test_a_topology_that_is_gone_by_its_name(self, cluster: Cluster) -> None:
        self.text(cluster, "logs/words-9-1500000000/6700/worker.log", "older\n")
        path = self.text(cluster, "logs/words-3-1600000000/6700/worker.log", "old\n")
        result = cluster.run("logs", "words")
        assert (result.exit_code, result.stdout) == (0, f"==> {path} <==\nold\n\n")
        assert result.stderr == (
            "storm-py: words does not run; these are the logs of words-3-1600000000, which did\n"
        )

    def test_without_nimbus(self, cluster: Cluster) -> None:
        path = self.text(cluster, f"logs/{ID}/6700/worker.log", "one\n")
        cluster.nimbus.failing("getTopologySummaries", ValueError("broken"))
        result = cluster.run("logs", "words")
        assert (result.exit_code, result.stdout) == (0, f"==> {path} <==\none\n\n")
        assert result.stderr == (
            f"storm-py: {HOST}:{cluster.port} could not answer getTopologySummaries: "
            "getTopologySummaries failed: ValueError: broken; only what is on this machine is "
            "known\n"
        )

    def test_workers_elsewhere_are_named(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.executors = [
            executor("a", 1, 6700),
            executor("a", 2, 6701, host="beta"),
            executor("a", 3, 6701, host="beta"),
        ]
        self.text(cluster, f"logs/{ID}/6700/worker.log", "one\n")
        result = cluster.run("logs", ID)
        assert (result.exit_code, result.stdout.splitlines()[1]) == (0, "one")
        assert result.stderr == (
            "storm-py: workers on other machines, whose logs are there, in "
            f"logs/{ID}/PORT below storm.local.dir: beta:6701\n"
        )

    def test_no_such_topology(self, cluster: Cluster) -> None:
        assert cluster.error(1, "logs", "words") == (
            "Error: no topology 'words' runs, and there are no logs of one on this machine, nor of "
            f"any other, in {cluster.local_dir}\n"
        )
        cluster.nimbus.running("lines")
        self.text(cluster, f"logs/{ID}/6700/worker.log", "one\n")
        assert cluster.error(1, "logs", "wrods") == (
            "Error: no topology 'wrods' runs, and there are no logs of one on this machine; there "
            f"are: lines, {ID}; did you mean 'words'?\n"
        )

    def test_no_logs(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        assert cluster.error(1, "logs", "words") == (
            f"Error: {ID} has no logs on this machine, in {cluster.local_dir}\n"
        )
        folder = cluster.local_dir / "logs" / ID / "6700"
        folder.mkdir(parents=True)
        assert cluster.error(1, "logs", "words") == (
            f"Error: {ID} has no log files yet in {folder}\n"
        )
        self.text(cluster, f"logs/{ID}/6700/count-3.log", "one\n")
        assert cluster.error(1, "logs", "words", "--worker", "6701") == (
            f"Error: {ID} has no logs of a worker on port 6701 here, but of 6700\n"
        )
        assert cluster.error(1, "logs", "words", "-c", "cuont") == (
            f"Error: {ID} has no logs of component 'cuont' here, but of count; did you mean "
            "'count'?\n"
        )

    def test_nothing_in_them(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        path = self.text(cluster, f"logs/{ID}/6700/count-3.out", "")
        result = cluster.run("logs", "words")
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == f"storm-py: there is nothing in {path}\n"

    def test_two_components(self, cluster: Cluster) -> None:
        assert cluster.error(2, "logs", "words", "-c", "a", "-c", "b").endswith(
            "Error: Invalid value for '-c': more than one component: a, b\n"
        )


def interrupt() -> None:
    raise KeyboardInterrupt


class TestFollowing:
    """Each pause of the command is a step of the test."""

    def steps(self, monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], object]) -> None:
        todo: Iterator[Callable[[], object]] = iter([*steps, interrupt])
        pauses = SimpleNamespace(sleep=lambda secs: next(todo)())
        monkeypatch.setattr(importlib.import_module("storm_py.cli.logs"), "time", pauses)

    def test_until_ctrl_c(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster.nimbus.running("words")
        folder = cluster.local_dir / "logs" / ID
        write(folder / "6700/worker.log", "".join(f"{n}\n" for n in range(12)))
        self.steps(monkeypatch, lambda: write(folder / "6701/count-2.out", "new\n"))
        result = cluster.run("logs", "words", "-f")
        assert (result.exit_code, result.stderr) == (130, "")
        assert result.stdout.splitlines() == [
            *(f"6700/worker.log {n}" for n in range(2, 12)),
            "6701/count-2.out new",
        ]

    def test_before_there_is_anything(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster.nimbus.running("words")
        path = cluster.local_dir / "logs" / ID / "6700/worker.log"
        self.steps(monkeypatch, lambda: write(path, "first\n"))
        result = cluster.run("logs", "words", "--follow")
        assert (result.exit_code, result.stdout) == (130, "6700/worker.log first\n")
        assert result.stderr == (
            f"storm-py: {ID} has no logs on this machine, in {cluster.local_dir}; waiting for "
            "them\n"
        )

    def test_what_is_not_here_and_will_not_come(self, cluster: Cluster) -> None:
        cluster.nimbus.running("words")
        cluster.nimbus.executors = [executor("a", 1, 6700, host="beta")]
        result = cluster.run("logs", "words", "-f")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.splitlines()[-1] == (
            f"Error: {ID} has no logs on this machine, in {cluster.local_dir}"
        )
