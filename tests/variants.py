"""Variants: several ways to run one topology, in all of which the same promises hold.

`pytest --variant NAME` chooses one for all topologies that `tests.integration.harness` runs; the
suites that are worth it are marked `variants`, and `make test-variants` runs those once for each.
Without the option topologies run as they are written, under the default configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from storm_py.api.grouping import Grouping, GroupingKind
from storm_py.api.spec import ComponentSpec, StormTopology
from storm_py.config import Config

_NEAR = Grouping(GroupingKind.LOCAL_OR_SHUFFLE)


@dataclass(frozen=True, slots=True)
class Variant:
    """One of them: what it sets, and whether it fuses what can be fused.

    To that end a bolt that shuffles from one component with as many executors and tasks reads it by
    local_or_shuffle, which is no less a shuffle.
    """

    name: str
    conf: Mapping[str, object] = field(default_factory=dict)
    fused: bool = False

    def applied(self, topology: StormTopology) -> StormTopology:
        """The topology as this variant runs it."""
        if not self.fused:
            return topology
        components = topology.components
        return StormTopology(
            {id: _brought_near(spec, components) for id, spec in components.items()}
        )

    @property
    def options(self) -> list[str]:
        """What sets its configuration on the command line."""
        return [
            word for key, value in self.conf.items() for word in ("-c", f"{key}={value}".lower())
        ]


def _brought_near(spec: ComponentSpec, components: Mapping[str, ComponentSpec]) -> ComponentSpec:
    sources = {source.component_id for source in spec.inputs}
    kinds = {grouping.kind for grouping in spec.inputs.values()}
    if len(sources) != 1 or kinds != {GroupingKind.SHUFFLE}:
        return spec
    source = components[sources.pop()]
    if (source.parallelism, source.num_tasks) != (spec.parallelism, spec.num_tasks):
        return spec
    return replace(spec, inputs=dict.fromkeys(spec.inputs, _NEAR))


AS_WRITTEN = Variant("default")
VARIANTS = {
    variant.name: variant
    for variant in (
        AS_WRITTEN,
        Variant("fused", {Config.STORM_PY_FUSE: True}, fused=True),
        Variant("unfused", {Config.STORM_PY_FUSE: False}),
    )
}

_chosen = AS_WRITTEN


def choose(name: str) -> None:
    """All topologies are run by this variant from now on."""
    global _chosen
    _chosen = VARIANTS[name]


def chosen() -> Variant:
    """The variant of this test run."""
    return _chosen
