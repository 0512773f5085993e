"""Who may import whom: the layers of storm_py as data, checked over the source of every file.

`LAYERS` is the only place that holds the table. A layer is a module or folder directly in
`storm_py/` (linked folders included), `storm_py` itself for the names it exports, or a folder of
programs at the top. Imports count wherever they stand: in a function, and for type checking only.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Layer:
    """What a layer may import besides itself and the standard library."""

    layers: str = ""
    """Names of other layers, separated by spaces."""
    packages: str = ""
    """Import names of installed packages, separated by spaces; `*` for any."""


LAYERS = {
    # the bottom
    "errors": Layer(),
    "files": Layer(),
    "heartbeat": Layer("files errors"),
    "worker_spec": Layer("files errors"),
    "constants": Layer(),
    "processes": Layer(),
    "imports": Layer("errors"),
    "config_checks": Layer("errors imports"),
    "config_cluster_keys": Layer("config_checks"),
    "config_keys": Layer("config_checks config_cluster_keys"),
    "config": Layer("errors imports config_keys config_cluster_keys"),
    "storm_yaml": Layer("config errors", "yaml"),
    # pure
    "api": Layer("errors constants config imports"),
    "core": Layer("api errors constants"),
    "wire": Layer("api.tuples errors constants imports", "msgpack numpy"),
    "run": Layer("wire"),
    "engine": Layer("api core wire run errors constants config imports", "numpy pyarrow"),
    # drivers
    "rpc": Layer("config errors", "thriftpy2"),
    "transport": Layer("errors", "zmq"),
    "loader": Layer("api config errors"),
    "components": Layer("api errors", "cloudpickle"),
    "bundle": Layer("api errors"),
    "archive": Layer("errors"),
    "submit": Layer("api archive bundle components config engine.system loader errors", "pathspec"),
    "runtime": Layer(
        "api core wire engine transport components loader config errors constants processes "
        "cluster rpc bundle archive heartbeat worker_spec files",
        "psutil zmq",
    ),
    "local": Layer(
        "api core wire run engine transport components runtime loader config errors constants "
        "processes",
        "zmq",
    ),
    "single": Layer("api core wire run engine transport components config errors constants"),
    "inline_watch": Layer("engine"),
    "inline": Layer("api engine run single wire config inline_watch"),
    "testing": Layer(
        "api core wire run engine single local config errors constants", "cloudpickle"
    ),
    # the cluster
    "cluster": Layer("config errors constants", "kazoo"),
    "java": Layer("errors"),
    "dev_zookeeper": Layer("errors java processes"),
    "client": Layer("rpc config errors"),
    "thrift_topology": Layer("api rpc bundle errors constants"),
    "nimbus": Layer(
        "storm_py api core.fusion rpc thrift_topology cluster bundle archive files heartbeat "
        "config errors constants"
    ),
    "supervisor": Layer(
        "cluster rpc client bundle archive config errors files heartbeat worker_spec constants"
    ),
    "one_machine": Layer(
        "cluster dev_zookeeper supervisor processes files config errors", "psutil rich"
    ),
    # the top
    "metrics": Layer("api"),
    "cli": Layer(
        "storm_py api local inline run wire loader java dev_zookeeper nimbus supervisor submit "
        "client rpc thrift_topology cluster bundle archive storm_yaml heartbeat processes "
        "one_machine config errors constants",
        "click rich",
    ),
    "storm_py": Layer("api config errors constants metrics"),
    "__main__": Layer("cli"),
    # written as users write: public names only
    "spouts": Layer("storm_py"),
    "topologies": Layer("storm_py spouts"),
    "benchmarks": Layer("storm_py spouts", "*"),
    # the micro-benchmarks of the cores look inside
    "benchmarks.cores": Layer("storm_py api config core wire single", "benchmarks"),
}

PURE = {"api", "core", "wire", "run", "engine"}
"""Layers that get time, randomness and bytes as arguments, and whose drivers do all the acting."""

PURE_MODULES = {
    "storm_py.cluster.encoding",
    "storm_py.cluster.leader",
    "storm_py.cluster.paths",
    "storm_py.cluster.records",
    "storm_py.nimbus.assigning",
    "storm_py.nimbus.executors",
    "storm_py.nimbus.lifecycle",
    "storm_py.nimbus.liveness",
    "storm_py.nimbus.names",
    "storm_py.nimbus.rebalance",
    "storm_py.nimbus.scheduler",
    "storm_py.one_machine.keeper",
    "storm_py.one_machine.plan",
    "storm_py.nimbus.stored",
    "storm_py.nimbus.views",
    "storm_py.nimbus.worker_numbers",
    "storm_py.supervisor.assignment",
    "storm_py.supervisor.slot",
    "storm_py.supervisor.slot_actions",
    "storm_py.supervisor.slot_checks",
    "storm_py.supervisor.slot_parts",
    "storm_py.supervisor.slot_states",
    "storm_py.supervisor.slot_worker",
}
"""Modules that are as pure, of layers that also have their drivers."""

IMPURE_MODULES = {
    "storm_py.cluster.encoding",
    "storm_py.cluster.leader",
    "storm_py.cluster.paths",
    "storm_py.cluster.records",
    "asyncio",
    "kazoo",
    "logging",
    "multiprocessing",
    "os",
    "random",
    "signal",
    "socket",
    "subprocess",
    "threading",
    "time",
    "zmq",
}
"""What no file of a pure layer, and no pure module, may import."""


def source_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Dotted module name and path of each file that the table speaks about."""
    for top in ("storm_py", "benchmarks"):
        for folder, subfolders, names in os.walk(root / top, followlinks=True):
            subfolders[:] = sorted(name for name in subfolders if name != "__pycache__")
            for name in sorted(names):
                if name.endswith(".py"):
                    path = Path(folder, name)
                    parts = path.relative_to(root).with_suffix("").parts
                    yield ".".join(parts).removesuffix(".__init__"), path


def layer_of(module: str) -> str:
    """`storm_py.core.plan` -> `core`, `storm_py` -> `storm_py`, `benchmarks.x` -> `benchmarks`.

    A module that the table names in full is a layer of its own.
    """
    if module in LAYERS:
        return module
    top, _, rest = module.partition(".")
    return rest.partition(".")[0] if top == "storm_py" and rest else top


def imported_modules(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of each import.

    `from storm_py import errors` and `from . import errors` give `storm_py.errors`; a name that is
    no layer gives the package it comes from.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                package = module.split(".")
                del package[len(package) - node.level + is_package :]
                source = ".".join([*package, *([source] if source else [])])
            for alias in node.names:
                submodule = f"storm_py.{alias.name}"
                if source == "storm_py" and layer_of(submodule) in LAYERS:
                    yield node.lineno, submodule
                else:
                    yield node.lineno, source


def complaint(module: str, target: str) -> str | None:
    """Why `module` may not import the module `target`, if it may not."""
    layer = layer_of(module)
    rules = LAYERS[layer]
    package = target.partition(".")[0]
    if package in IMPURE_MODULES and (layer in PURE or module in PURE_MODULES):
        pure = layer if layer in PURE else module
        return f"{pure} is pure and may not import {target}"
    if package in sys.stdlib_module_names:
        return None
    if package != "storm_py":
        allowed = rules.packages.split()
        return None if package in allowed or "*" in allowed else f"{layer} may not import {target}"
    target_layer = layer_of(target)
    if target_layer == layer:
        return None
    for name in rules.layers.split():
        inside = f"storm_py.{name}."
        if target_layer == name or f"{target}.".startswith(inside):
            return None
    return f"{layer} may not import {target}; it may import: {rules.layers or 'no other layer'}"


def violations(root: Path) -> list[str]:
    """One line for each import against the table, and for each file of a layer it does not know."""
    found = []
    for module, path in source_files(root):
        place = path.relative_to(root)
        layer = layer_of(module)
        if layer not in LAYERS:
            found.append(f"{place}: add the layer {layer!r} to LAYERS in tests/test_layers.py")
            continue
        tree = ast.parse(path.read_bytes(), str(path))
        for line, target in imported_modules(tree, module, path.name == "__init__.py"):
            if reason := complaint(module, target):
                found.append(f"{place}:{line}: {reason}")
    return found


def test_imports_follow_the_layers() -> None:
    assert not violations(ROOT), "\n" + "\n".join(violations(ROOT))


def test_the_pure_modules_are_there() -> None:
    assert {module for module, _ in source_files(ROOT)} >= PURE_MODULES


def test_a_module_that_the_table_names_in_full_is_a_layer() -> None:
    assert layer_of("benchmarks.cores") == "benchmarks.cores"
    assert layer_of("benchmarks.quick") == "benchmarks"


def test_table_is_consistent() -> None:
    assert set(LAYERS) >= PURE
    for name, layer in LAYERS.items():
        for other in layer.layers.split():
            assert other.partition(".")[0] in LAYERS, f"{name} names the unknown layer {other}"


@pytest.mark.parametrize(
    ("file", "source", "reason"),
    [
        ("core/a.py", "import socket", "core is pure and may not import socket"),
        ("core/a.py", "from os.path import join", "core is pure and may not import os.path"),
        ("api/a.py", "def f():\n    import time", "api is pure and may not import time"),
        ("wire/a.py", "import zmq.asyncio", "wire is pure and may not import zmq.asyncio"),
        ("core/a.py", "from ..runtime import worker", "core may not import storm_py.runtime"),
        ("core/b/c.py", "from ...wire.codec import x", "core may not import storm_py.wire.codec"),
        ("core/__init__.py", "from .. import wire", "core may not import storm_py.wire"),
        ("core/b/__init__.py", "from ... import wire", "core may not import storm_py.wire"),
        ("core/a.py", "from storm_py import wire", "core may not import storm_py.wire"),
        ("core/a.py", "from storm_py import Tuple", "core may not import storm_py"),
        ("wire/a.py", "from storm_py.api import x", "wire may not import storm_py.api"),
        ("wire/a.py", "import storm_py.api.tuples2", "wire may not import storm_py.api.tuples2"),
        ("runtime/a.py", "import kazoo.client", "runtime may not import kazoo.client"),
        ("nimbus/a.py", "from ..runtime import worker", "nimbus may not import storm_py.runtime"),
        ("nimbus/a.py", "import storm_py.supervisor", "nimbus may not import storm_py.supervisor"),
        ("nimbus/a.py", "from storm_py.core import plan", "nimbus may not import storm_py.core"),
        (
            "nimbus/lifecycle.py",
            "import time",
            "storm_py.nimbus.lifecycle is pure and may not import time",
        ),
        ("supervisor/a.py", "from ..runtime import worker", "supervisor may not import"),
        (
            "supervisor/slot.py",
            "import time",
            "storm_py.supervisor.slot is pure and may not import time",
        ),
        ("errors.py", "from . import constants", "errors may not import storm_py.constants"),
        ("topologies/a.py", "from storm_py.api import x", "topologies may not import storm_py.api"),
        ("unheard_of/a.py", "", "add the layer 'unheard_of' to LAYERS"),
    ],
)
def test_a_bad_import_is_found(tmp_path: Path, file: str, source: str, reason: str) -> None:
    path = tmp_path / "storm_py" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    [found] = violations(tmp_path)
    assert reason in found


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/a.py", "from . import b\nfrom .b import c\nfrom ..api.tuples import d\nimport math"),
        ("core/__init__.py", "from .routing import Router"),
        ("wire/a.py", "import msgpack\nfrom storm_py.api.tuples import Tuple"),
        ("transport/a.py", "import os, zmq\nfrom storm_py.errors import StormError"),
        ("topologies/a.py", "import time\nfrom storm_py import TopologyBuilder"),
        ("nimbus/a.py", "import time\nfrom .lifecycle import TopologyLifecycle"),
        ("supervisor/a.py", "import time\nfrom .slot import SlotMachine"),
        ("__init__.py", "from .api.topology import TopologyBuilder\nfrom . import errors"),
        ("__main__.py", "from .cli import main"),
    ],
)
def test_a_good_import_is_not_found(tmp_path: Path, file: str, source: str) -> None:
    path = tmp_path / "storm_py" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert violations(tmp_path) == []


def test_linked_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "topologies").mkdir()
    (tmp_path / "topologies" / "a.py").write_text("from storm_py.api import x")
    (tmp_path / "storm_py").mkdir()
    (tmp_path / "storm_py" / "topologies").symlink_to("../topologies")
    [found] = violations(tmp_path)
    assert found.startswith("storm_py/topologies/a.py:1: topologies may not import storm_py.api")
