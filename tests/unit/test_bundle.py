"""The blobs of a topology: as bytes and back, read without running anything, or refused."""

from __future__ import annotations

import hashlib
import json
import pickle
import platform
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import (
    BaseRichBolt,
    BaseRichSpout,
    ConfigError,
    CustomStreamGrouping,
    OutputFieldsDeclarer,
    StormTopology,
    TopologyBuilder,
    Tuple,
)
from storm_py.archive import Manifest, open_archive
from storm_py.bundle import (
    StormCode,
    code_key,
    conf_key,
    dump_code,
    dump_conf,
    jar_key,
    load_code,
    load_conf,
    load_structure,
    without_objects,
)
from storm_py.components import pack, unpack
from storm_py.config import configuration, defaults
from storm_py.errors import BlobError
from storm_py.loader import load
from storm_py.submit.prepared import prepare
from tests.projects import Project
from tests.strategies import damaged

NAME = "words-1-1-stormcode.ser"


class Lines(BaseRichSpout):
    def __init__(self, path: str = "here") -> None:
        self.path = path

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line", "number")
        declarer.declare_stream("side")
        declarer.declare_stream("picked", "line", direct=True)

    def next_tuple(self) -> None:
        pass


class Sink(BaseRichBolt):
    def execute(self, tup: Tuple) -> None:
        pass


class First(CustomStreamGrouping):
    def choose_tasks(self, task_id: int, values: list[object]) -> Sequence[int]:
        return []


class Explosive:
    """Reading it back would show."""

    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("raise AssertionError('this was unpickled')",)


def every_grouping() -> StormTopology:
    builder = TopologyBuilder()
    lines = builder.set_spout("lines", Lines(), 2).set_num_tasks(4)
    lines.add_configuration("topology.debug", True)
    builder.set_spout("other", Lines("there"))
    sink = builder.set_bolt("sink", Sink(), 3).shuffle_grouping("lines").all_grouping("other")
    sink.global_grouping("lines", "side").direct_grouping("lines", "picked")
    sink.add_configurations({"topology.tick.tuple.freq.secs": 0.5, "mine": {"a": [1, None]}})
    keyed = builder.set_bolt("keyed", Sink()).fields_grouping("lines", ["number", "line"])
    keyed.partial_key_grouping("other", "line").none_grouping("other", "side")
    mine = builder.set_bolt("mine", Sink()).custom_grouping("lines", First())
    mine.local_or_shuffle_grouping("other")
    return builder.create_topology()


TOPOLOGY = every_grouping()
CODE = dump_code(TOPOLOGY, pack(TOPOLOGY))


def refused(data: bytes) -> str:
    with pytest.raises(BlobError) as caught:
        load_code(data, NAME)
    return str(caught.value)


def resealed(changes: dict[str, object]) -> bytes:
    """The stormcode with another structure of its first component, under a right checksum."""
    from storm_py.bundle import _sealed

    head, _, rest = CODE.partition(b"\n")
    plain = json.loads(rest[: int(head.split()[3])])
    plain["components"][0].update(changes)
    return _sealed("stormcode", plain)


def test_names_are_storms() -> None:
    assert [key("words-1-17") for key in (jar_key, code_key, conf_key)] == [
        "words-1-17-stormjar.jar",
        "words-1-17-stormcode.ser",
        "words-1-17-stormconf.ser",
    ]


class TestCode:
    def test_every_grouping_stream_and_configuration(self) -> None:
        packed = pack(TOPOLOGY)
        read = load_code(CODE, NAME)
        assert read == StormCode(without_objects(TOPOLOGY), packed)
        assert list(read.topology.components) == ["lines", "other", "sink", "keyed", "mine"]
        assert load_structure(CODE, NAME) == read.topology
        assert all(spec.component is None for spec in read.topology.components.values())
        assert all(edge.grouping.custom is None for edge in read.topology.edges)
        kinds = {str(edge.grouping.kind) for edge in read.topology.edges}
        assert len(kinds) == 9

    def test_the_objects_come_back_where_they_are_unpacked(self) -> None:
        read = load_code(CODE, NAME)
        objects = unpack(read.topology.components["other"], read.components["other"])
        assert isinstance(objects.component, Lines)
        assert objects.component.path == "there"
        lines = unpack(read.topology.components["lines"], read.components["lines"])
        assert [type(grouping) for grouping in lines.groupings.values()] == [First]

    def test_nothing_is_unpickled(self) -> None:
        packed = {**pack(TOPOLOGY), "lines": pickle.dumps(Explosive())}
        data = dump_code(TOPOLOGY, packed)
        assert load_structure(data, NAME) == without_objects(TOPOLOGY)
        assert load_code(data, NAME).components == packed

    def test_the_same_topology_gives_the_same_bytes(self) -> None:
        assert dump_code(TOPOLOGY, dict(reversed(pack(TOPOLOGY).items()))) == CODE

    def test_the_structure_needs_nothing_of_what_follows(self) -> None:
        head, _, rest = CODE.partition(b"\n")
        alone = head + b"\n" + rest[: int(head.split()[3])]
        assert load_structure(alone, NAME) == without_objects(TOPOLOGY)
        assert refused(alone).startswith(f"{NAME} is cut off in component 'lines': 0 of its ")

    def test_components_that_do_not_belong_to_it(self) -> None:
        with pytest.raises(ValueError, match=r"packed are \['lines'\], not \['keyed', "):
            dump_code(TOPOLOGY, {"lines": b""})

    def test_it_begins_with_a_line_for_people(self) -> None:
        assert CODE.startswith(b"storm_py stormcode 1 ")


class TestBrokenCode:
    def test_something_else(self) -> None:
        assert refused(b"PK\3\4") == (
            rf"{NAME} is no stormcode of storm_py: it begins with b'PK\x03\x04'"
        )
        assert refused(b"") == f"{NAME} is no stormcode of storm_py: it begins with b''"
        assert refused(dump_conf({})).startswith(
            f"{NAME} is no stormcode of storm_py: it begins with b'storm_py stormconf 1 "
        )

    def test_another_format(self) -> None:
        assert refused(CODE.replace(b"stormcode 1", b"stormcode 2", 1)) == (
            f"{NAME} has format 2, and this storm_py reads 1; use the same version of storm_py "
            "where topologies are submitted and on the nodes"
        )

    def test_cut_off(self) -> None:
        assert refused(CODE[:-1]).startswith(f"{NAME} is cut off in component 'mine': ")
        assert refused(CODE[:300]).startswith(f"{NAME} is cut off: ")

    def test_something_behind_it(self) -> None:
        assert refused(CODE + b"xy") == f"{NAME} is damaged: 2 bytes too many at its end"

    def test_a_changed_byte(self) -> None:
        assert refused(CODE[:-1] + bytes([CODE[-1] ^ 1])) == (
            f"{NAME} is damaged: component 'mine' has another checksum"
        )
        assert refused(CODE.replace(b'"lines"', b'"limes"', 1)) == (
            f"{NAME} is damaged: its JSON has another checksum"
        )

    @given(st.data())
    def test_no_damage_goes_unnoticed(self, data: st.DataObject) -> None:
        bad = data.draw(damaged(CODE))
        if bad != CODE:
            assert NAME in refused(bad)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"kind": "pipe"}, "component 'lines' is a 'pipe' of "),
            ({"bytes": -1}, "component 'lines' is a 'spout' of -1 bytes"),
            ({"bytes": "1"}, "component 'lines' is a 'spout' of '1' bytes"),
            ({"streams": [["a", [""], False]]}, "a field name is empty"),
            ({"inputs": [["a", "b", "ODD", None]]}, "'ODD' is not a valid GroupingKind"),
            ({"inputs": 7}, "'int' object is not iterable"),
            ({"colour": "red"}, "_spec() got an unexpected keyword argument 'colour'"),
        ],
    )
    def test_a_structure_that_another_version_wrote(
        self, changes: dict[str, object], message: str
    ) -> None:
        assert refused(resealed(changes)).startswith(
            f"{NAME} is no structure of format 1: {message}"
        )


class TestConf:
    @given(
        st.dictionaries(
            st.text(max_size=5),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=5,
            ),
        )
    )
    def test_round_trip(self, conf: dict[str, object]) -> None:
        assert load_conf(dump_conf(conf), NAME) == conf

    def test_a_tuple_becomes_a_list(self) -> None:
        assert load_conf(dump_conf({"a": (1, 2)}), NAME) == {"a": [1, 2]}

    @pytest.mark.parametrize(
        ("value", "what"),
        [
            ({1, 2}, "a set"),
            (b"x", "a bytes"),
            ([{"a": object}], "the class object"),
            ({1: 2}, "an int as a key"),
            ([float("nan")], "nan"),
            (float("-inf"), "-inf"),
        ],
    )
    def test_what_cannot_be_sent(self, value: object, what: str) -> None:
        with pytest.raises(ConfigError) as caught:
            dump_conf({"ok": 1, "mine": value})
        assert str(caught.value) == (
            f"mine is {value!r}, which cannot be sent to the cluster: it holds {what}; expected "
            "what JSON can hold"
        )

    def test_a_components_configuration_names_the_component(self) -> None:
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines()).add_configuration("mine", {1: 2})
        made = builder.create_topology()
        with pytest.raises(ConfigError) as caught:
            dump_code(made, pack(made))
        assert str(caught.value).startswith("spout 'lines': mine is {1: 2}, which cannot be sent")

    def test_a_broken_one(self) -> None:
        data = dump_conf({"a": 1})
        for bad, message in [
            (data + b"x", "words is damaged: 1 bytes too many at its end"),
            (data[:-2], "words is cut off: "),
            (data.replace(b'"a"', b'"b"'), "words is damaged: its JSON has another checksum"),
            (CODE, "words is no stormconf of storm_py: it begins with b'storm_py stormcode 1 "),
        ]:
            with pytest.raises(BlobError) as caught:
                load_conf(bad, "words")
            assert str(caught.value).startswith(message)


class TestCodeOfTheUser:
    SOURCE = """
        from helper import PREFIX

        class Words(Lines):
            def __init__(self):
                self.prefix = PREFIX

        def topology(args):
            builder = built()
            builder.set_spout("words", Words())
            return builder
    """

    def test_classes_are_imported_from_the_archive_and_never_pickled(
        self, project: Project, tmp_path: Path
    ) -> None:
        project.write("pyproject.toml", "", components=False)
        project.write("src/helper.py", "PREFIX = 'secret of the module'", components=False)
        project.write("src/flow.py", self.SOURCE)
        loaded = load("src/flow.py", [])
        ready = prepare(loaded, loaded.topology, configuration(loaded.conf, None), [], "0.1.0")
        assert load_conf(ready.conf, NAME) == defaults()
        archive = tmp_path / "a.zip"
        with archive.open("w+b") as file:
            packed = ready.pack(file)
        manifest = open_archive(archive, ready.max_bytes).manifest
        assert packed.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
        python = platform.python_version()
        assert manifest == Manifest("0.1.0", python, "flow", "src", "project")
        code = ready.code
        assert b"next_tuple" not in code

        node = tmp_path / "node"
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(node)
        for name in ("flow", "helper"):
            del sys.modules[name]
        sys.path[0] = str(node / manifest.sys_path)
        read = load_code(code, NAME)
        objects = unpack(read.topology.components["words"], read.components["words"])
        assert sys.modules["flow"].__file__ == str(node / "src" / "flow.py")
        assert type(objects.component) is sys.modules["flow"].Words
        assert vars(objects.component) == {"prefix": "secret of the module"}
