"""A module that is found but fails, is none, or has no topology under the name: how that reads."""

from __future__ import annotations

import os

import pytest

from tests.projects import Project, refused


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
