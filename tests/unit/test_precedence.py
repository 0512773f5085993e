"""Layers of configuration: of all that set a key, the one nearest to the component wins."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from storm_py import (
    BaseRichSpout,
    ConfigError,
    OutputFieldsDeclarer,
    TopologyBuilder,
    TopologyContext,
)
from storm_py.api.spec import apply_limits
from storm_py.config import Config, configuration, defaults
from storm_py.core.plan import make_plan
from tests.builders import TOPOLOGY_ID
from tests.instance import Instance

KEY = Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS
LAYERS = ["defaults", "storm.yaml", "topology", "command line", "component", "declarer"]
"""From what is overridden by all to what overrides all."""

SUBSETS = [
    ("defaults", *above)
    for n in range(len(LAYERS))
    for above in itertools.combinations(LAYERS[1:], n)
]

PAIRS = list(itertools.combinations(LAYERS[1:], 2))


class Lines(BaseRichSpout):
    """Brings a configuration along; keeps the one that it is opened with."""

    conf: Mapping[str, object]

    def __init__(self, own: dict[str, object]) -> None:
        self.own = own

    def get_component_configuration(self) -> dict[str, object]:
        return self.own

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line")

    def open(self, conf: Mapping[str, object], context: TopologyContext, collector: object) -> None:
        self.conf = conf
        assert context.conf == conf

    def next_tuple(self) -> None:
        pass


def seen_by_a_component(layers: Mapping[str, dict[str, object]]) -> Mapping[str, object]:
    """What a spout finds in the `conf` of its `open`."""
    builder = TopologyBuilder()
    lines = Lines(layers["component"])
    builder.set_spout("lines", lines).add_configurations(layers["declarer"])
    conf = configuration(layers["topology"], layers["command line"], layers["storm.yaml"])
    topology = apply_limits(builder.create_topology(), conf)
    plan = make_plan(TOPOLOGY_ID, topology, conf, workers=1)
    Instance(plan, 1, lambda _: lines).open()
    return lines.conf


@pytest.mark.parametrize("subset", SUBSETS, ids=" ".join)
def test_the_highest_layer_that_sets_a_key_wins(subset: tuple[str, ...]) -> None:
    values = dict(zip(LAYERS, (30, 31, 32, 33, 34, 35), strict=True))
    layers: dict[str, dict[str, object]] = {name: {} for name in LAYERS}
    for name in subset:
        layers[name] = {KEY: values[name]}
    assert len(SUBSETS) == 32
    assert defaults()[KEY] == values["defaults"]
    assert seen_by_a_component(layers)[KEY] == values[subset[-1]]


@pytest.mark.parametrize(("lower", "higher"), PAIRS)
def test_keys_that_only_a_lower_layer_sets_stay(lower: str, higher: str) -> None:
    layers: dict[str, dict[str, object]] = {name: {} for name in LAYERS}
    layers[lower] = {"my.key": 1, "both": lower}
    layers[higher] = {"both": higher, KEY: 5}
    conf = seen_by_a_component(layers)
    assert (conf["my.key"], conf["both"], conf[KEY]) == (1, higher, 5)
    assert conf.keys() == {*defaults(), "my.key", "both"}


@pytest.mark.parametrize(("lower", "higher"), PAIRS)
def test_null_overrides_as_any_other_value(lower: str, higher: str) -> None:
    layers: dict[str, dict[str, object]] = {name: {} for name in LAYERS}
    layers[lower] = {Config.TOPOLOGY_MAX_SPOUT_PENDING: 5}
    layers[higher] = {Config.TOPOLOGY_MAX_SPOUT_PENDING: None}
    assert seen_by_a_component(layers)[Config.TOPOLOGY_MAX_SPOUT_PENDING] is None


@pytest.mark.parametrize("layer", ["topology", "command line"])
def test_a_topologys_conf_decides_over_tasks_as_well(layer: str) -> None:
    def tasks(conf: dict[str, object], own: dict[str, object]) -> int:
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines(own), 4)
        layers = {"topology": {}, "command line": {}, layer: conf}
        whole = configuration(layers["topology"], layers["command line"])
        return apply_limits(builder.create_topology(), whole).components["lines"].num_tasks

    assert tasks({}, {}) == 4
    assert tasks({Config.TOPOLOGY_MAX_TASK_PARALLELISM: 2}, {}) == 2
    assert tasks({Config.TOPOLOGY_TASKS: 6}, {}) == 6
    assert tasks({Config.TOPOLOGY_TASKS: 6}, {Config.TOPOLOGY_TASKS: 5}) == 5


def test_layers_are_not_changed_and_the_whole_is_checked() -> None:
    topology: dict[str, object] = {"a": 1}
    command_line: dict[str, object] = {"a": 2}
    configuration(topology, command_line)["a"] = 3
    assert (topology, command_line) == ({"a": 1}, {"a": 2})
    assert configuration(None, None) == defaults()
    with pytest.raises(ConfigError, match=r"topology\.workers is 0"):
        configuration({Config.TOPOLOGY_WORKERS: 0}, None)
