"""Topologies as Storm's interface carries them: there and back, or refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.api.grouping import Grouping, GroupingKind
from storm_py.api.spec import ComponentSpec, StormTopology, StreamInfo
from storm_py.api.tuples import Fields, GlobalStreamId
from storm_py.bundle import StormCode
from storm_py.errors import InvalidTopologyException
from storm_py.rpc import codec, definitions
from storm_py.rpc.service import struct_of
from storm_py.thrift_topology import PARTIAL_KEY_GROUPING, from_thrift, shell, to_thrift
from tests.rpc import values_of

WHERE = "topology 'words'"
THRIFT = struct_of(definitions.StormTopology)

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
fields = st.lists(names, unique=True, max_size=3).map(Fields)
keys = st.lists(names, unique=True, min_size=1, max_size=3).map(Fields)
groupings = st.sampled_from(GroupingKind).flatmap(
    lambda kind: (
        keys.map(lambda key: Grouping(kind, key))
        if kind in (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY)
        else st.just(Grouping(kind))
    )
)
configs = st.dictionaries(
    names.filter(lambda name: name != "topology.tasks"),
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers()),
    max_size=3,
)


@st.composite
def specs(draw: st.DrawFn, id_: str) -> ComponentSpec:
    """A component as a builder makes it: the number of tasks is the hint's, or configured."""
    parallelism, config = draw(st.integers(1, 9)), draw(configs)
    num_tasks = draw(st.none() | st.integers(parallelism, 20))
    if num_tasks is not None:
        config["topology.tasks"] = num_tasks
    inputs = st.dictionaries(st.builds(GlobalStreamId, names, names), groupings, max_size=4)
    kind = draw(st.sampled_from(["spout", "bolt"]))
    return ComponentSpec(
        id=id_,
        kind="spout" if kind == "spout" else "bolt",
        component=None,
        parallelism=parallelism,
        num_tasks=num_tasks or parallelism,
        streams=draw(
            st.dictionaries(names, st.builds(StreamInfo, fields, st.booleans()), max_size=3)
        ),
        inputs={} if kind == "spout" else draw(inputs),
        config=config,
    )


@st.composite
def codes(draw: st.DrawFn) -> StormCode:
    ids = draw(st.lists(names, unique=True, max_size=5))
    packed = st.binary(max_size=8).map(lambda data: b"\x80" + data) | st.builds(shell, names, names)
    return StormCode(
        StormTopology({id_: draw(specs(id_)) for id_ in ids}), {id_: draw(packed) for id_ in ids}
    )


def one(kind: str = "bolt", **changes: object) -> StormCode:
    """A topology of one component."""
    values: dict[str, object] = {
        "id": "count",
        "kind": kind,
        "component": None,
        "parallelism": 2,
        "num_tasks": 2,
        "streams": {"default": StreamInfo(Fields("word"))},
        "inputs": {},
        "config": {},
    }
    spec = ComponentSpec(**{**values, **changes})  # type: ignore[arg-type]
    return StormCode(StormTopology({"count": spec}), {"count": b"\x80packed"})


def sent(code: StormCode) -> definitions.StormTopology:
    """The topology at the other end of a connection."""
    out = bytearray()
    THRIFT.write(out, to_thrift(code), "it")
    found = THRIFT.read(codec.Source(bytes(out)), "it")
    assert isinstance(found, definitions.StormTopology)
    return found


def bolt(**fields: object) -> definitions.StormTopology:
    """A topology of the bolt `count`, some of it changed."""
    found = sent(one())
    for name, value in fields.items():
        at = found.bolts["count"] if name == "bolt_object" else found.bolts["count"].common
        setattr(at, name, value)
    return found


def reading(grouping: definitions.Grouping) -> definitions.StormTopology:
    source = definitions.GlobalStreamId(componentId="split", streamId="default")
    return bolt(inputs={source: grouping})


def refused(topology: definitions.StormTopology) -> str:
    with pytest.raises(InvalidTopologyException) as caught:
        from_thrift(topology, WHERE)
    return str(caught.value)


class TestThereAndBack:
    @given(codes())
    def test_nothing_is_lost(self, code: StormCode) -> None:
        assert from_thrift(sent(code), WHERE) == code

    @pytest.mark.parametrize("kind", GroupingKind)
    def test_each_grouping(self, kind: GroupingKind) -> None:
        keyed = kind in (GroupingKind.FIELDS, GroupingKind.PARTIAL_KEY)
        grouping = Grouping(kind, Fields("word", "day") if keyed else None)
        code = one(inputs={GlobalStreamId("split", "words"): grouping})
        [(source, found)] = (
            from_thrift(sent(code), WHERE).topology.components["count"].inputs.items()
        )
        assert (source, found) == (GlobalStreamId("split", "words"), grouping)

    def test_tasks_that_were_limited_are_what_they_became(self) -> None:
        limited = one(num_tasks=4, config={"topology.tasks": 10})
        found = from_thrift(sent(limited), WHERE).topology.components["count"]
        assert (found.parallelism, found.num_tasks) == (2, 4)
        assert found.config == {"topology.tasks": 4}

    def test_what_another_client_sends(self) -> None:
        """streamparse: shell components, hints, and tasks in the configuration."""
        common = definitions.ComponentCommon(
            inputs={
                definitions.GlobalStreamId(
                    componentId="words", streamId="default"
                ): definitions.Grouping(fields=["word"])
            },
            streams={"default": definitions.StreamInfo(output_fields=["word"], direct=False)},
            parallelism_hint=4,
            json_conf=json.dumps({"topology.tasks": 2}),
        )
        made = definitions.ComponentObject(
            shell=definitions.ShellComponent(
                execution_command="streamparse_run", script="bolts.Count"
            )
        )
        count = definitions.Bolt(bolt_object=made, common=common)
        topology = definitions.StormTopology(spouts={}, bolts={"count": count}, state_spouts={})
        found = from_thrift(topology, WHERE)
        spec = found.topology.components["count"]
        assert found.components == {"count": shell("streamparse_run", "bolts.Count")}
        assert (spec.parallelism, spec.num_tasks) == (2, 2)
        assert to_thrift(found).bolts["count"].bolt_object == made

    def test_a_component_without_its_objects(self) -> None:
        code = StormCode(one().topology, {})
        with pytest.raises(ValueError, match="bolt 'count' is not packed; packed are"):
            to_thrift(code)


class TestRefused:
    @given(values_of(THRIFT))
    def test_whatever_comes_is_a_topology_or_refused(
        self, topology: definitions.StormTopology
    ) -> None:
        try:
            code = from_thrift(topology, WHERE)
        except InvalidTopologyException:
            return
        assert set(code.components) == set(code.topology.components)
        assert set(code.components) == {*topology.spouts, *topology.bolts}

    def test_java(self) -> None:
        java = definitions.JavaObject(full_class_name="a.B", args_list=[])
        advice = "which storm_py cannot run; submit components in Python, or shell components"
        objects = definitions.ComponentObject
        assert refused(bolt(bolt_object=objects(serialized_java=b"\xac\xed\0\5sr"))) == (
            f"{WHERE}: bolt 'count' is an object in Java, {advice}"
        )
        assert refused(bolt(bolt_object=objects(java_object=java))) == (
            f"{WHERE}: bolt 'count' is to be made from a class in Java, {advice}"
        )
        assert refused(reading(definitions.Grouping(custom_object=java))) == (
            f"{WHERE}: bolt 'count' has a grouping by the class a.B in Java, {advice}"
        )
        assert refused(reading(definitions.Grouping(custom_serialized=b"\xac\xed"))) == (
            f"{WHERE}: bolt 'count' has a custom grouping in Java, {advice}"
        )
        partial = definitions.JavaObject(full_class_name=PARTIAL_KEY_GROUPING, args_list=[])
        assert PARTIAL_KEY_GROUPING in refused(reading(definitions.Grouping(custom_object=partial)))

    def test_parts_that_storm_py_does_not_have(self) -> None:
        hooked = bolt()
        hooked.worker_hooks = [b"x"]
        assert refused(hooked).startswith(f"{WHERE} has 1 worker hooks in Java, which storm_py")
        state = bolt()
        count = state.bolts["count"]
        state.state_spouts = {
            "old": definitions.StateSpoutSpec(
                state_spout_object=count.bolt_object, common=count.common
            )
        }
        assert refused(state).startswith(f"{WHERE} has state spouts (old), which storm_py")

    def test_a_spout_that_is_a_bolt_too(self) -> None:
        both = bolt()
        both.spouts = sent(one("spout")).spouts
        assert refused(both) == f"{WHERE}: 'count' is both a spout and a bolt"

    def test_a_spout_with_inputs(self) -> None:
        topology = sent(one("spout"))
        source = definitions.GlobalStreamId(componentId="a", streamId="b")
        topology.spouts["count"].common.inputs = {source: definitions.Grouping(fields=[])}
        assert refused(topology) == f"{WHERE}: spout 'count' has inputs; only bolts read"

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"parallelism_hint": 0}, "has parallelism_hint 0; expected an int of at least 1"),
            (
                {"json_conf": '{"topology.tasks": "2"}'},
                "has topology.tasks '2'; expected an int of at least 1",
            ),
            (
                {"json_conf": '{"topology.tasks": true}'},
                "has topology.tasks True; expected an int of at least 1",
            ),
        ],
    )
    def test_counts(self, fields: dict[str, object], message: str) -> None:
        assert refused(bolt(**fields)) == f"{WHERE}: bolt 'count' {message}"

    def test_configurations_that_are_none(self) -> None:
        assert refused(bolt(json_conf="{")).startswith(
            f"{WHERE}: bolt 'count': its json_conf is no JSON: "
        )
        assert refused(bolt(json_conf="[1]")) == (
            f"{WHERE}: bolt 'count': its json_conf is '[1]'; expected an object"
        )

    def test_fields_that_cannot_be(self) -> None:
        twice = definitions.StreamInfo(output_fields=["a", "a"], direct=False)
        assert "appears twice" in refused(bolt(streams={"default": twice}))
        assert "field name is empty" in refused(reading(definitions.Grouping(fields=[""])))
