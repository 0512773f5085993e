"""How a test's topology is made: mock sources, a component alone, the worker that runs it.

Here is what `TopologyDriver` and `complete_topology` need before anything runs; nothing in here
keeps state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from storm_py.api.component import BaseRichSpout, Bolt
from storm_py.api.spec import ComponentSpec, StormTopology, apply_limits
from storm_py.api.topology import TopologyBuilder
from storm_py.api.validation import check_kind
from storm_py.config import Config, defaults, merge, validate
from storm_py.errors import InvalidTopologyException, a_type

from .bolts import HoldingBolt, SinkBolt
from .spouts import FeederSpout, FixedTuple, FixedTupleSpout

__all__ = ["MockSources", "Resolved", "around_bolt", "around_spout", "resolved"]

#: A tuple that failed so often will fail the next time.
MAX_FAILS: Final = 1000

#: Ids of spouts to replace, or for each the tuples to emit in its place.
MockSources: TypeAlias = Iterable[str] | Mapping[str, Iterable[Sequence[object] | FixedTuple]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A topology that is ready to run, and its whole configuration."""

    topology: StormTopology
    conf: Mapping[str, Any]

    @property
    def topology_id(self) -> str:
        """The id it runs under."""
        return f"{self.conf[Config.TOPOLOGY_NAME] or 'test'}-1-0"


def resolved(
    topology: TopologyBuilder | StormTopology,
    conf: Mapping[str, object] | None,
    mock_sources: MockSources,
) -> Resolved:
    """Check and complete what a test was given."""
    if isinstance(topology, TopologyBuilder):
        topology = topology.create_topology()
    if not isinstance(topology, StormTopology):
        pair = isinstance(topology, tuple) and len(topology) == 2
        hint = "; unpack the pair: builder, conf = topology([])" if pair else ""
        raise TypeError(
            f"got {a_type(topology)} as topology; expected a TopologyBuilder or StormTopology{hint}"
        )
    validate(conf or {})
    # Nothing is fused unless the test says so: so every value is packed on its way.
    whole = merge(defaults(), {Config.STORM_PY_FUSE: False}, conf)
    components = dict(apply_limits(topology, whole).components)
    for id, tuples in _by_id(mock_sources).items():
        components[id] = _mocked(_spout(topology, id), tuples)
    return Resolved(StormTopology(components), whole)


def _by_id(mock_sources: MockSources) -> Mapping[str, Iterable[Any] | None]:
    if isinstance(mock_sources, Mapping):
        return mock_sources
    return dict.fromkeys([mock_sources] if isinstance(mock_sources, str) else mock_sources)


def _spout(topology: StormTopology, id: str) -> ComponentSpec:
    spec = topology.component(id)
    if spec.kind != "spout":
        raise InvalidTopologyException(
            f"mock source {id!r} is a bolt; only spouts can be replaced: "
            f"{', '.join(topology.spouts)}"
        )
    return spec


def _mocked(spec: ComponentSpec, tuples: Iterable[Any] | None) -> ComponentSpec:
    """The spout with another object in its place; streams and settings stay."""
    if tuples is None:
        return replace(spec, component=FeederSpout())
    if isinstance(tuples, (str, bytes)) or not isinstance(tuples, Iterable):
        raise InvalidTopologyException(
            f"mock source {spec.id!r} is {a_type(tuples)}; expected a list of tuples, each a list "
            "of values"
        )
    rows = list(tuples)
    for position, row in enumerate(rows):
        _check_row(spec, position, row)
    return replace(spec, component=FixedTupleSpout(rows, max_fails=MAX_FAILS))


def _check_row(spec: ComponentSpec, position: int, row: object) -> None:
    where = f"mock source {spec.id!r}, tuple {position}"
    if not isinstance(row, (list, tuple, FixedTuple)):
        raise InvalidTopologyException(
            f"{where}: {row!r} is {a_type(row)}; expected a list of values, or a FixedTuple"
        )
    fixed = row if isinstance(row, FixedTuple) else FixedTuple(row)
    info = spec.streams.get(fixed.stream)
    if info is None:
        raise InvalidTopologyException(
            f"{where} is for stream {fixed.stream!r}, which the spout does not declare; it "
            f"declares: {', '.join(spec.streams) or 'none'}"
        )
    if info.direct:
        raise InvalidTopologyException(
            f"{where} is for stream {fixed.stream!r}, which is direct: a mock source names no task"
        )
    if len(fixed.values) != len(info.fields):
        raise InvalidTopologyException(
            f"{where} has {len(fixed.values)} value(s), expected {len(info.fields)}: "
            f"{', '.join(info.fields)}"
        )


# ---- a component alone -------------------------------------------------------------------------


def around_bolt(
    bolt: Bolt,
    fields: str | Iterable[str] | Mapping[str, str | Iterable[str]],
) -> StormTopology:
    """Feeders, the bolt, and a sink, so that its emits are packed and checked as in a run."""
    check_kind("bolt", bolt, "for")
    sources = fields if isinstance(fields, Mapping) else {"input": fields}
    builder = TopologyBuilder()
    for id, its_fields in sources.items():
        builder.set_spout(id, FeederSpout(its_fields))
    declarer = builder.set_bolt("bolt", bolt)
    for id in sources:
        declarer.shuffle_grouping(id)
    return _with_sink(builder, "bolt", SinkBolt())


def around_spout(spout: BaseRichSpout) -> StormTopology:
    """The spout, and a bolt that leaves all acks and fails to the test."""
    check_kind("spout", spout, "for")
    builder = TopologyBuilder()
    builder.set_spout("spout", spout)
    return _with_sink(builder, "spout", HoldingBolt())


def _with_sink(builder: TopologyBuilder, id: str, sink: Bolt) -> StormTopology:
    streams = builder.create_topology().component(id).streams
    if not streams:
        return builder.create_topology()
    declarer = builder.set_bolt("sink", sink)
    for stream, info in streams.items():
        if info.direct:
            declarer.direct_grouping(id, stream)
        else:
            declarer.shuffle_grouping(id, stream)
    return builder.create_topology()
