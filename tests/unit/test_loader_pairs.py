"""A topology file that brings its configuration along: what may be given, and how mistakes read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_py import TopologyLoadError
from storm_py.loader import load

BUILT = """
from types import MappingProxyType
from storm_py import BaseRichSpout, Config, TopologyBuilder

class Lines(BaseRichSpout):
    def next_tuple(self):
        pass

def built():
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    return builder

conf = {"topology.workers": 2, "my.key": [1]}

"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("pairs", None)


def written(definition: str) -> str:
    """The name of a file that ends in this definition."""
    Path("pairs.py").write_text(BUILT + definition, encoding="utf-8")
    return "pairs.py"


@pytest.mark.parametrize(
    "definition",
    [
        "def topology(args): return built(), conf",
        "def topology(args): return built().create_topology(), conf",
        "def topology(args): return built(), Config(conf)",
        "def topology(args): return built(), MappingProxyType(conf)",
        "topology = built(), conf",
    ],
)
def test_a_pair(definition: str) -> None:
    loaded = load(written(definition), [])
    assert list(loaded.topology.spouts) == ["lines"]
    assert loaded.conf == {"topology.workers": 2, "my.key": [1]}
    assert (loaded.name, loaded.module) == ("pairs", "pairs")


@pytest.mark.parametrize("definition", ["topology = built()", "topology = built(), {}"])
def test_nothing_is_set_by_default(definition: str) -> None:
    assert load(written(definition), []).conf == {}


def test_what_a_component_may_not_set_is_for_the_topology_to_set() -> None:
    written_conf = "{'storm_py.fall.back.on.pickle': True, 'storm_py.serializers': []}"
    loaded = load(written(f"topology = built(), {written_conf}"), [])
    assert loaded.conf == {"storm_py.fall.back.on.pickle": True, "storm_py.serializers": []}


def test_the_configuration_is_a_copy() -> None:
    loaded = load(written("topology = built(), conf"), [])
    sys.modules["pairs"].conf["later"] = 1
    assert "later" not in loaded.conf


EXPECTED = (
    "; expected (topology, configuration): a TopologyBuilder or StormTopology, and a Config or dict"
)
MISTAKES = {
    "in the wrong order": (
        "def topology(args): return conf, built()",
        f"'topology' in pairs.py returned a tuple (a dict, a TopologyBuilder){EXPECTED}, in this "
        "order",
    ),
    "of three": (
        "def topology(args): return 'name', built(), conf",
        f"returned a tuple (a str, a TopologyBuilder, a dict){EXPECTED}",
    ),
    "of one": (
        "def topology(args): return built(),",
        f"returned a tuple (a TopologyBuilder){EXPECTED}",
    ),
    "of nothing": ("topology = ()", f"'topology' in pairs.py is a tuple (){EXPECTED}"),
    "with None": ("topology = built(), None", f"is a tuple (a TopologyBuilder, None){EXPECTED}"),
    "with pairs": (
        "topology = built(), [('topology.workers', 2)]",
        f"is a tuple (a TopologyBuilder, a list){EXPECTED}",
    ),
    "of two topologies": (
        "topology = built(), built()",
        f"is a tuple (a TopologyBuilder, a TopologyBuilder){EXPECTED}",
    ),
    "with a class": (
        "topology = built(), Config",
        f"is a tuple (a TopologyBuilder, the class Config){EXPECTED}",
    ),
    "as a list": (
        "topology = [built(), conf]",
        "'topology' in pairs.py is a list; expected a TopologyBuilder or StormTopology, or a pair "
        "of that and a configuration",
    ),
    "with a bad value": (
        "topology = built(), {'topology.workers': '2'}",
        "the configuration that 'topology' in pairs.py gives: topology.workers is '2' (str); "
        "expected an integer from 1 to 65535",
    ),
    "with a misspelt key": (
        "topology = built(), {'topology.wokers': 2}",
        "gives: unknown configuration key 'topology.wokers'; did you mean 'topology.workers'?",
    ),
    "with a key that is no str": (
        "topology = built(), {1: 2}",
        "gives: configuration key 1 is an int, not a str",
    ),
    "with a value that JSON does not know": (
        "topology = built(), {'my.key': object}",
        "gives: my.key is <class 'object'>; expected a value that JSON knows (",
    ),
}


@pytest.mark.parametrize(("definition", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_wrong_pair_is_explained(definition: str, message: str) -> None:
    with pytest.raises(TopologyLoadError) as caught:
        load(written(definition), [])
    assert message in str(caught.value)
    if message.endswith(("dict", "order")):
        assert str(caught.value).endswith(message)
