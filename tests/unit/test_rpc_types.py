"""What is derived from the IDL and the configuration: types, calls, exceptions, limits."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from storm_py import errors
from storm_py.config import defaults
from storm_py.rpc import codec, definitions, summaries
from storm_py.rpc.client import Patience
from storm_py.rpc.interface import Nimbus
from storm_py.rpc.limits import Limits
from storm_py.rpc.service import EXCEPTIONS, IDL, NIMBUS, struct_of
from tests.rpc import STRUCTS


def annotation(kind: codec.Kind) -> str:
    """How a type of the IDL is annotated."""
    match kind:
        case codec.Bool():
            return "bool"
        case codec.Integer():
            return "int"
        case codec.Double():
            return "float"
        case codec.Text():
            return "str"
        case codec.Binary():
            return "bytes"
        case codec.Sequence():
            return f"{'set' if kind.code == codec.SET else 'list'}[{annotation(kind.element)}]"
        case codec.Map():
            return f"dict[{annotation(kind.key)}, {annotation(kind.value)}]"
    return kind.name


def declared(module: Any) -> dict[str, list[tuple[str, str, bool]]]:
    """Name, type and whether it may be left out, of each field of each class in a stub."""
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        node.name: [
            (line.target.id, ast.unparse(line.annotation), line.value is not None)
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        ]
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name != "Struct"
    }


STUBS = {**declared(definitions), **declared(summaries)}


def test_every_struct_and_enum_is_declared_in_one_stub() -> None:
    enums = {cls.__name__ for cls in IDL.__thrift_meta__["enums"]}
    assert not set(declared(definitions)) & set(declared(summaries))
    assert set(STUBS) == set(STRUCTS) | enums


@pytest.mark.parametrize("module", [definitions, summaries])
def test_a_stub_declares_what_its_module_has(module: Any) -> None:
    assert set(module.__all__) - {"Struct"} == set(declared(module))
    for name in declared(module):
        assert getattr(module, name) is getattr(IDL, name)


@pytest.mark.parametrize("name", STRUCTS)
def test_a_struct_is_declared_as_in_the_idl(name: str) -> None:
    expected = [
        (
            field.name,
            annotation(field.kind) + ("" if field.required else " | None"),
            not field.required,
        )
        for field in struct_of(STRUCTS[name]).fields.values()
    ]
    assert STUBS[name] == expected


@pytest.mark.parametrize("cls", IDL.__thrift_meta__["enums"], ids=lambda cls: cls.__name__)
def test_an_enum_is_declared_as_in_the_idl(cls: Any) -> None:
    expected = [(name, "ClassVar[int]", False) for name in cls._NAMES_TO_VALUES]
    assert STUBS[cls.__name__] == expected


def test_the_interface_has_the_calls_of_the_idl_in_its_order() -> None:
    assert [name for name in vars(Nimbus) if not name.startswith("_")] == list(NIMBUS)


@pytest.mark.parametrize("name", NIMBUS)
def test_a_call_is_declared_as_in_the_idl(name: str) -> None:
    method = NIMBUS[name]
    signature = inspect.signature(getattr(Nimbus, name))
    found = {p.name: p.annotation for p in signature.parameters.values() if p.name != "self"}
    assert found == {
        field.name: annotation(field.kind) + ("" if field.required else " | None")
        for field in method.arguments.fields.values()
    }
    result = annotation(method.result.fields[0].kind) if method.returns else "None"
    assert signature.return_annotation == result


def test_every_exception_has_a_class_of_its_name() -> None:
    assert {cls.__name__ for cls in IDL.__thrift_meta__["exceptions"]} == {
        cls.__name__ for cls in EXCEPTIONS
    }
    for cls, thrift in EXCEPTIONS.items():
        assert cls.__name__ == thrift.__name__
        assert issubclass(cls, errors.StormPyError)
        assert list(vars(thrift)["thrift_spec"]) == [1]


def test_limits_come_from_the_configuration() -> None:
    assert Limits.of(defaults()) == Limits()
    assert Patience.of(defaults()) == Patience()
    conf = {
        "nimbus.thrift.threads": 2,
        "nimbus.queue.size": 3,
        "nimbus.thrift.max_buffer_size": 70_000,
        "storm.thrift.socket.timeout.ms": 1500,
    }
    assert Limits.of(conf) == Limits(threads=2, queue=3, frame_bytes=70_000, idle_secs=1.5)
    assert Patience.of(conf) == Patience(answer_secs=1.5, frame_bytes=70_000)


def test_arguments_are_bound_as_python_does() -> None:
    method = NIMBUS["killTopologyWithOpts"]
    options = definitions.KillOptions()
    for bound in (
        method.bind(("wc", options), {}),
        method.bind(("wc",), {"options": options}),
        method.bind((), {"options": options, "name": "wc"}),
    ):
        assert method.unbind(bound) == ["wc", options]


@pytest.mark.parametrize(
    ("given", "named", "reason"),
    [
        (("a", "b", "c"), {}, "takes 2 arguments, 3 were given"),
        (("a",), {"wait": 1}, "has no argument 'wait': ('name', 'options')"),
        (("a",), {"name": "b"}, "got its argument 'name' twice"),
    ],
)
def test_arguments_that_do_not_fit(
    given: tuple[object, ...], named: dict[str, object], reason: str
) -> None:
    with pytest.raises(TypeError) as caught:
        NIMBUS["killTopologyWithOpts"].bind(given, named)
    assert reason in str(caught.value)
