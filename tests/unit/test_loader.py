"""From TOPOLOGY on a command line to a topology: what is found, and how every failure reads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from storm_py import InvalidTopologyException, TopologyLoadError
from storm_py.loader import LoadedTopology, load

COMPONENTS = """
from storm_py import BaseRichSpout, StormTopology, TopologyBuilder

class Lines(BaseRichSpout):
    def next_tuple(self):
        pass

def built(parallelism=1):
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), parallelism)
    return builder
"""


class Project:
    """A folder of the user's files, which is also the current folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, source: str, components: bool = True) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((COMPONENTS if components else "") + dedent(source), encoding="utf-8")
        return path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    folder = (tmp_path / "project").resolve()
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(sys.modules)
    yield Project(folder)
    for name in set(sys.modules) - set(before):
        del sys.modules[name]


def refused(spec: str, *args: str) -> str:
    """Return the text of the error that loading ``spec`` gives."""
    with pytest.raises(TopologyLoadError) as caught:
        load(spec, list(args))
    return str(caught.value)


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


class TestImportErrors:
    def test_the_users_own_frames_are_shown_and_no_others(self, project: Project) -> None:
        project.write("helper.py", "import json\ndef read(): return json.loads('{')", False)
        project.write("words.py", "import helper\nhelper.read()", components=False)
        message = refused("words.py")
        lines = message.splitlines()
        assert lines[0] == "importing words.py failed"
        assert lines[1] == "Traceback (most recent call last):"
        shown = [line.split(",")[0].strip() for line in lines if line.startswith("  File ")]
        folder = project.folder
        assert shown == [f'File "{folder}/words.py"', f'File "{folder}/helper.py"']
        assert lines[-1].startswith("json.decoder.JSONDecodeError: Expecting property name")

    def test_causes_are_trimmed_too(self, project: Project) -> None:
        project.write(
            "words.py",
            """
            import json
            try:
                json.loads("{")
            except ValueError as error:
                raise RuntimeError("no settings") from error
            """,
            components=False,
        )
        message = refused("words.py")
        assert "json/decoder.py" not in message
        assert "JSONDecodeError" in message
        assert "The above exception was the direct cause" in message
        assert message.endswith("RuntimeError: no settings")

    def test_a_missing_dependency(self, project: Project) -> None:
        project.write("words.py", "import no_such_library", components=False)
        for spec in ("words.py", "words"):
            message = refused(spec)
            assert message.startswith(f"importing {spec} failed\n")
            assert 'words.py", line 1, in <module>' in message
            assert message.endswith("ModuleNotFoundError: No module named 'no_such_library'")

    def test_a_topology_that_is_refused_while_it_is_imported(self, project: Project) -> None:
        project.write("words.py", "topology = built(0)")
        message = refused("words.py")
        assert message.startswith(f"{project.folder}{os.sep}words.py, line ")
        assert message.endswith(
            ": spout 'lines' has parallelism_hint 0; "
            "the number of executors is an int of at least 1"
        )

    def test_a_relative_import_in_a_file(self, project: Project) -> None:
        project.write("words.py", "from . import helper", components=False)
        assert refused("words.py").startswith(
            "importing words.py failed; for relative imports name it as package.module\n"
        )

    def test_a_syntax_error(self, project: Project) -> None:
        path = project.write("words.py", "x = 1\ndef topology(args) return 1\n", components=False)
        message = refused("words.py")
        assert message.startswith(f"words.py is not valid Python: {path}, line 2\n")
        assert "def topology(args) return 1" in message
        assert "SyntaxError: expected ':'" in message
        assert "Traceback" not in message

    def test_a_syntax_error_in_another_file(self, project: Project) -> None:
        helper = project.write("helper.py", "(", components=False)
        project.write("words.py", "import helper", components=False)
        message = refused("words.py")
        assert message.startswith(f"words.py is not valid Python: {helper}, line 1\n")
        assert 'words.py", line 1, in <module>' in message

    @pytest.mark.parametrize("spec", ["words.py", "words", "jobs.words"])
    def test_exit_while_importing(self, project: Project, spec: str) -> None:
        project.write("words.py", "import sys\nsys.exit(3)", components=False)
        project.write("jobs/__init__.py", "raise SystemExit(3)", components=False)
        message = refused(spec)
        assert message.startswith(f"{spec} exits while it is imported; move what it does at the ")
        assert message.endswith("SystemExit: 3")

    def test_a_package_that_fails(self, project: Project) -> None:
        project.write("jobs/__init__.py", "{}['x']", components=False)
        project.write("jobs/words.py", "topology = built()")
        message = refused("jobs.words")
        assert message.startswith("importing jobs.words failed\n")
        assert message.endswith("KeyError: 'x'")


class TestModuleErrors:
    def test_not_found(self, project: Project) -> None:
        project.write("word_count.py", "")
        assert refused("wordcount") == (
            "no module 'wordcount' here or among what is installed; did you mean 'word_count'?"
        )
        assert refused("zzz.zzz.zzz") == (
            "no module 'zzz.zzz.zzz' here or among what is installed; "
            "expected path/file.py[:name] or package.module[:name]"
        )

    @pytest.mark.parametrize("init", [True, False])
    def test_not_found_in_a_package(self, project: Project, init: bool) -> None:
        if init:
            project.write("jobs/__init__.py", "", components=False)
        project.write("jobs/word_count.py", "")
        assert refused("jobs.wordcount").endswith("; did you mean 'word_count'?")

    def test_a_module_is_no_package(self, project: Project) -> None:
        project.write("words.py", "def other(args): return built()")
        assert refused("words.other").endswith(
            "; 'words' is no package, for a name in it: words:other"
        )

    def test_a_folder(self, project: Project) -> None:
        project.write("jobs/words.py", "topology = built()")
        assert refused("jobs") == "'jobs' is a folder, not a module; name a module in it"


class TestNames:
    def test_missing_with_a_near_miss(self, project: Project) -> None:
        path = project.write("words.py", "def topolgy(args): return built()")
        assert refused("words.py") == (
            f"words ({path}) has no 'topology'; did you mean 'topolgy'?; "
            "define topology(args), or name what to use after a colon"
        )

    def test_missing_among_others(self, project: Project) -> None:
        project.write("words.py", "def make(args): pass\njob = built()\n_x = built()\ny = 1")
        assert "has no 'topology'; it defines: built, make, job; define" in refused("words.py")

    def test_missing_in_an_empty_file(self, project: Project) -> None:
        project.write("words.py", "", components=False)
        assert "has no 'topology'; define topology(args)," in refused("words.py")

    @pytest.mark.parametrize(
        ("definition", "expected"),
        [
            ("topology = 5", "'topology' in words.py is an int; expected a TopologyBuilder or"),
            ("topology = None", "'topology' in words.py is None; expected a TopologyBuilder"),
            ("topology = [built()]", "is a list; expected"),
            ("topology = Lines()", "is a Lines; expected"),
            ("topology = TopologyBuilder", "is the class TopologyBuilder; expected"),
            ("def topology(args): pass", "returned None; expected a TopologyBuilder or Storm"),
            ("def topology(args): built()", "; did it forget to return the builder?"),
            ("def topology(args): return 'x'", "'topology' in words.py returned a str; expected"),
            ("def topology(args): return Lines", "returned the class Lines; expected"),
            ("def topology(args): yield built()", "returned a generator; expected"),
            ("async def topology(args): return built()", "returned a coroutine; expected"),
            ("def topology(): pass", "has the parameters (); it is called with one, the list of"),
            ("def topology(a, b): pass", "has the parameters (a, b); it is called with one"),
            ("def topology(*, args): pass", "has the parameters (*, args); it is called with"),
        ],
    )
    def test_wrong_kinds(self, project: Project, definition: str, expected: str) -> None:
        project.write("words.py", definition)
        assert expected in refused("words.py")

    def test_a_function_that_fails(self, project: Project) -> None:
        project.write("words.py", "def topology(args):\n    return built(int(args[0]))")
        message = refused("words.py", "many")
        assert message.startswith("'topology' in words.py failed\nTraceback (most recent call last")
        assert message.count("  File ") == 1
        assert "in topology" in message
        assert message.endswith("ValueError: invalid literal for int() with base 10: 'many'")

    def test_a_function_whose_topology_is_refused(self, project: Project) -> None:
        project.write("words.py", "def topology(args): return built(0)")
        message = refused("words.py")
        assert message.startswith(f"{project.folder}{os.sep}words.py, line ")
        assert ": spout 'lines' has parallelism_hint 0; " in message
