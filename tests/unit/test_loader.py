"""From TOPOLOGY on a command line to a topology: what is found, and what stands in its way.

What goes wrong once a module is found: `test_loader_errors`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from storm_py import InvalidTopologyException
from storm_py.loader import LoadedTopology, load
from tests.projects import Project, refused


class TestFound:
    def test_a_function_in_a_file(self, project: Project) -> None:
        project.write("words.py", "def topology(args): return built(int(args[0]))")
        loaded = load("words.py", ["3"])
        assert isinstance(loaded, LoadedTopology)
        assert loaded.topology.components["lines"].parallelism == 3
        assert (loaded.name, loaded.module) == ("words", "words")
        assert loaded.sys_path == str(project.folder) == sys.path[0]

    @pytest.mark.parametrize(
        "definition",
        [
            "def topology(args): return built().create_topology()",
            "topology = built()",
            "topology = built().create_topology()",
            "topology = lambda args: built()",
            "def topology(*args): return built()",
            "def topology(args, more=None): return built()",
            "class Make:\n    def __call__(self, args): return built()\ntopology = Make()",
        ],
    )
    def test_what_a_topology_may_be(self, project: Project, definition: str) -> None:
        project.write("words.py", definition)
        assert list(load("words.py", []).topology.spouts) == ["lines"]

    def test_another_name(self, project: Project) -> None:
        project.write("words.py", "def other(args): return built()")
        assert load("words.py:other", []).name == "other"
        assert load("words:other", []).name == "other"

    @pytest.mark.parametrize("form", ["jobs/words.py", "./jobs/words.py", "jobs/../jobs/words.py"])
    def test_the_files_folder_comes_first(self, project: Project, form: str) -> None:
        project.write("jobs/helper.py", "VALUE = 5", components=False)
        project.write("jobs/words.py", "import helper\ntopology = built(helper.VALUE)")
        loaded = load(form, [])
        assert loaded.topology.components["lines"].parallelism == 5
        assert loaded.sys_path == str(project.folder / "jobs") == sys.path[0]

    def test_an_absolute_path(self, project: Project) -> None:
        path = project.write("jobs/words.py", "topology = built()")
        assert load(str(path), []).sys_path == str(path.parent)

    def test_a_link_leads_to_the_folder_of_the_file(self, project: Project) -> None:
        path = project.write("jobs/words.py", "topology = built()")
        (project.folder / "link.py").symlink_to(path)
        loaded = load("link.py", [])
        assert (loaded.module, loaded.sys_path) == ("words", str(path.parent))

    def test_a_module_in_a_package(self, project: Project) -> None:
        project.write("jobs/__init__.py", "", components=False)
        project.write("jobs/helper.py", "VALUE = 5", components=False)
        project.write("jobs/words.py", "from .helper import VALUE\ntopology = built(VALUE)")
        loaded = load("jobs.words", [])
        assert loaded.topology.components["lines"].parallelism == 5
        assert (loaded.name, loaded.module) == ("words", "jobs.words")
        assert loaded.sys_path == str(project.folder) == sys.path[0]

    def test_a_module_in_a_folder_that_is_no_package(self, project: Project) -> None:
        project.write("jobs/words.py", "topology = built()")
        assert load("jobs.words", []).module == "jobs.words"

    def test_the_module_has_its_real_name(self, project: Project) -> None:
        project.write("words.py", "topology = built()\nassert __name__ == 'words'")
        loaded = load("words.py", [])
        spout = loaded.topology.components["lines"].component
        assert type(spout).__module__ == "words"
        assert type(spout) is sys.modules["words"].Lines

    def test_loading_twice_imports_once(self, project: Project) -> None:
        project.write("words.py", "RUNS = []\ndef topology(args): RUNS.append(1); return built()")
        load("words.py", [])
        load("words.py", [])
        load("words", [])
        assert sys.modules["words"].RUNS == [1, 1, 1]
        assert sys.path.count(str(project.folder)) == 1

    def test_the_arguments_are_a_copy(self, project: Project) -> None:
        project.write("words.py", "def topology(args): args.clear(); return built()")
        args = ["a"]
        load("words.py", args)
        assert args == ["a"]

    def test_systemexit_of_the_function_passes(
        self, project: Project, capsys: pytest.CaptureFixture[str]
    ) -> None:
        project.write(
            "words.py",
            """
            import argparse
            def topology(args):
                argparse.ArgumentParser(prog="words").parse_args(args)
            """,
        )
        with pytest.raises(SystemExit) as caught:
            load("words.py", ["--what"])
        assert caught.value.code == 2
        assert "unrecognized arguments: --what" in capsys.readouterr().err
        with pytest.raises(SystemExit) as caught:
            load("words.py", ["--help"])
        assert caught.value.code == 0

    def test_a_topology_that_cannot_run_is_refused_by_the_checks(self, project: Project) -> None:
        project.write("words.py", "topology = TopologyBuilder()")
        with pytest.raises(InvalidTopologyException, match="the topology is empty"):
            load("words.py", [])

    def test_a_file_named_like_one_in_the_current_folder(
        self, project: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project.write("words.py", "")
        project.write("jobs/words.py", "topology = built(7)")
        monkeypatch.setattr(sys, "path", [str(project.folder), *sys.path])
        assert load("jobs/words.py", []).topology.components["lines"].parallelism == 7


class TestSpelling:
    @pytest.mark.parametrize("spec", ["", ":", ":name", "a.py:", "a.py:b.c", "a.py:1", "a:b:c"])
    def test_no_topology_is_named(self, spec: str) -> None:
        expected = "names no topology; expected path/file.py[:name] or package.module[:name]"
        assert refused(spec) == f"{spec!r} {expected}"

    @pytest.mark.parametrize("spec", ["my-job", "a..b", ".a", "a.", "1a", "class", "__main__"])
    def test_neither_a_file_nor_a_module(self, project: Project, spec: str) -> None:
        assert refused(spec).startswith(f"{spec!r} is no .py file and no module; expected path/")


class TestFileErrors:
    def test_missing(self, project: Project) -> None:
        project.write("word_count.py", "")
        assert refused("wordcount.py") == (
            "wordcount.py does not exist; did you mean 'word_count.py'?"
        )
        assert refused("zzz.py") == "zzz.py does not exist"

    def test_missing_in_a_folder(self, project: Project) -> None:
        project.write("jobs/word_count.py", "")
        assert refused("jobs/word_count") == (
            "jobs/word_count does not exist; did you mean 'word_count.py'?"
        )
        assert refused("job/word_count.py") == (
            "job/word_count.py does not exist, nor does its folder job"
        )

    def test_a_folder(self, project: Project) -> None:
        project.write("jobs/b.py", "")
        project.write("jobs/a.py", "")
        assert refused("./jobs") == "./jobs is a folder; name a file in it; it holds: a.py, b.py"
        for number in range(20):
            project.write(f"jobs/c{number}.py", "")
        assert refused("jobs/").endswith("c15.py, ...")

    def test_an_empty_folder(self, project: Project) -> None:
        (project.folder / "jobs").mkdir()
        assert refused("./jobs") == "./jobs is a folder; name a file in it"

    @pytest.mark.parametrize("name", ["words.txt", "./words.txt", "words"])
    def test_no_python_file(self, project: Project, name: str) -> None:
        project.write(name, "")
        assert refused(name) == f"{name} is no Python file; its name has to end in .py"

    @pytest.mark.parametrize("stem", ["word-count", "2words", "import", "a.b", "word count"])
    def test_a_name_that_cannot_be_imported(self, project: Project, stem: str) -> None:
        project.write(f"{stem}.py", "topology = built()")
        assert refused(f"{stem}.py") == (
            f"{stem}.py: {stem!r} is not a name that Python can import; rename the file to "
            "letters, digits and underscores"
        )


class TestShadowing:
    @pytest.mark.parametrize("stem", ["random", "json", "sys", "zipfile"])
    def test_the_standard_library(self, project: Project, stem: str) -> None:
        project.write(f"{stem}.py", "topology = built()")
        assert refused(f"{stem}.py") == (
            f"{stem}.py would be imported as {stem!r}, which is a module of Python's standard "
            "library; rename the file"
        )

    def test_a_module_that_is_already_imported(self, project: Project) -> None:
        project.write("storm_py.py", "topology = built()")
        message = refused("storm_py.py")
        assert "would be imported as 'storm_py', which is already imported from /" in message
        assert "storm_py/__init__.py; rename the file" in message

    def test_a_running_program(self, project: Project) -> None:
        project.write("__main__.py", "topology = built()")
        assert "'__main__', which is already imported from" in refused("__main__.py")

    def test_an_installed_module(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        library = tmp_path / "library"
        library.mkdir()
        (library / "words.py").write_text("")
        monkeypatch.setattr(sys, "path", [*sys.path, str(library)])
        project.write("words.py", "topology = built()")
        assert refused("words.py") == (
            f"words.py would be imported as 'words', which is an installed module "
            f"({library / 'words.py'}); rename the file"
        )
        assert "words" not in sys.modules

    def test_an_installed_folder_without_init_is_no_rival(
        self, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "library" / "words").mkdir(parents=True)
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "library")])
        project.write("words.py", "topology = built()")
        assert load("words.py", []).module == "words"

    def test_a_package_beside_it(self, project: Project) -> None:
        project.write("words.py", "topology = built()")
        rival = project.write("words/__init__.py", "")
        assert f"which is also {rival}, and Python prefers that" in refused("words.py")
