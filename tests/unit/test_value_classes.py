"""Enum members and dataclass instances: by the import path of their class, or not at all."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from types import ModuleType
from typing import Any

import pytest

from storm_py.errors import ProtocolError
from storm_py.wire.values import PLAIN, UnserialisableValue
from tests.travel import ext, packed, same, travelled
from tests.value_types import (
    Bits,
    Colour,
    Level,
    Money,
    Numbers,
    Order,
    Plain,
    Problem,
    Rights,
    Seeded,
    Shade,
    Slotted,
    Unfit,
)

HERE = "tests.value_types"
ENUM, DATACLASS = 12, 13


class TestEnums:
    @pytest.mark.parametrize("deep", [False, True])
    @pytest.mark.parametrize(
        "member",
        [
            *(*Colour, *Shade, *Level, *Plain, Order.Line.ONLY, Bits.LOW, Bits.TOP),
            *(Rights(0), Rights.READ, Rights.READ | Rights.WRITE),
        ],
    )
    def test_arrive_as_the_same_member(self, member: enum.Enum, deep: bool) -> None:
        if not deep:
            assert travelled(member) is member
        else:  # the large number sends the row the slow way
            wrapped = [2**70, {member: (member,)}]
            assert same(travelled(wrapped), wrapped)

    def test_an_alias_is_the_member_it_stands_for(self) -> None:
        assert travelled(Colour.CRIMSON) is Colour.RED

    def test_a_member_is_named_on_the_wire(self) -> None:
        assert packed([Plain.PAIR]) == ext(ENUM, f"{HERE}:Plain", "PAIR")

    @pytest.mark.parametrize(
        ("parts", "problem"),
        [
            ([f"{HERE}:Plain", "TWO"], f"the Enum {HERE}:Plain has no member 'TWO' here"),
            ([f"{HERE}:Plain", 1], f"the Enum {HERE}:Plain has no member 1 here"),
            ([f"{HERE}:Plain", [1]], f"the Enum {HERE}:Plain has no member [1] here"),
            ([f"{HERE}:Plain", "__class__"], "has no member '__class__' here"),
            ([f"{HERE}:Rights", 1024], f"the Enum {HERE}:Rights has no member 1024 here"),
            ([f"{HERE}:Money", "RED"], f"{HERE}:Money cannot be read: that is not an Enum"),
            ([f"{HERE}:Order.cls", "RED"], f"the module {HERE} has no Order.cls"),
            ([f"{HERE}:no_bytes", "RED"], f"{HERE}:no_bytes cannot be read: that is not an Enum"),
            ([f"{HERE}:enum.Enum", "X"], f"{HERE}:enum.Enum cannot be read: that is not an Enum"),
            (["tests.nowhere:A", "X"], "the module tests.nowhere cannot be imported (ModuleNotFou"),
            (["__main__:A", "X"], "A is defined in __main__, which is another program in every"),
            (["os.system('ls')", "X"], "is no import path; expected package.module:Name"),
            (["", "X"], "'' is no import path"),
            ([5, "X"], "the class of a value is named by int, not by a str"),
            ([f"{HERE}:Plain"], "extension value of type 12 is malformed"),
        ],
    )
    def test_what_is_no_member_here(self, parts: list[object], problem: str) -> None:
        with pytest.raises(ProtocolError) as caught:
            PLAIN.unpack_rows(ext(ENUM, *parts))
        assert problem in str(caught.value)

    @pytest.mark.parametrize("source", ["1 / 0", "import sys; sys.exit(3)", "def f(:"])
    def test_a_module_that_cannot_be_imported(
        self, source: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "broken_shop.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ProtocolError, match="the module broken_shop cannot be imported"):
            PLAIN.unpack_rows(ext(ENUM, "broken_shop:Colour", "RED"))


class TestDataclasses:
    @pytest.mark.parametrize("deep", [False, True])
    @pytest.mark.parametrize(
        "value",
        [
            Money(5, Colour.RED),
            Money(2**70, (2**80, {3})),
            Slotted("a"),
            Order(Order(1, [Slotted("b")]), [{"k": Money(1)}]),
            Seeded(4),
        ],
    )
    def test_arrive_as_equal_instances(self, value: object, deep: bool) -> None:
        row = [2**70, {"k": (value,)}] if deep else value
        assert same(travelled(row), row)

    def test_nothing_of_the_class_runs_at_the_receiver(self) -> None:
        value = Money(5)
        made = Money.made
        assert travelled(value) == value
        assert Money.made == made

    def test_a_frozen_instance_is_a_key_of_a_dict_and_in_a_set(self) -> None:
        value = [{Money(1): {Slotted("a"), Slotted("b")}}, frozenset([Money(2)])]
        assert same(travelled(value), value)

    def test_a_cached_property_is_left_behind(self) -> None:
        value = Money(250)
        assert value.euros == 2.5
        result = travelled(value)
        assert isinstance(result, Money)
        assert "euros" not in vars(result)
        assert result.euros == 2.5

    def test_fields_may_be_of_any_order_on_the_wire(self) -> None:
        row = ext(DATACLASS, f"{HERE}:Money", {"colour": None, "cents": 3})
        assert same(PLAIN.unpack_rows(row), [Money(3)])

    @pytest.mark.parametrize(
        ("parts", "problem"),
        [
            ([f"{HERE}:Money", {"cents": 1}], "other fields than it has here: cents, colour"),
            ([f"{HERE}:Money", {"cents": 1, "colour": 2, "x": 3}], "came with other fields"),
            ([f"{HERE}:Money", {1: 1, "colour": 2}], "came with other fields than it has here"),
            ([f"{HERE}:Money", [1, 2]], f"an instance of {HERE}:Money came with other fields"),
            ([f"{HERE}:Cash", {"cents": 1}], f"{HERE}:Cash cannot be read: that is not a datacl"),
            ([f"{HERE}:Plain", {}], f"{HERE}:Plain cannot be read: that is not a dataclass"),
            ([f"{HERE}:Numbers", {"name": ""}], "it is a dataclass and a list at once"),
            ([f"{HERE}:Money"], "extension value of type 13 is malformed"),
        ],
    )
    def test_what_is_no_instance_here(self, parts: list[object], problem: str) -> None:
        with pytest.raises(ProtocolError) as caught:
            PLAIN.unpack_rows(ext(DATACLASS, *parts))
        assert problem in str(caught.value)

    def test_a_key_that_cannot_be_hashed(self) -> None:
        key = ext(DATACLASS, f"{HERE}:Money", {"cents": [], "colour": 1})[1:]
        with pytest.raises(ProtocolError, match="rows do not unpack: unhashable type: 'list'"):
            PLAIN.unpack_rows(b"\x91\x81" + key + b"\xc0")

    def test_nested_without_end(self) -> None:
        value: object = None
        for _ in range(60):
            value = Order(value)
            assert same(travelled(value), value)
        for _ in range(10):
            value = Order(value)
        with pytest.raises(UnserialisableValue, match="is nested deeper than 64 levels"):
            packed([value])

    def test_lists_between_instances_do_not_exhaust_the_stack(self) -> None:
        value: object = 1
        for _ in range(60):
            for _ in range(500):
                value = [value]
            value = Order(value)
        with pytest.raises(UnserialisableValue, match="is nested deeper than 64 levels"):
            packed([value])

    def test_a_list_of_itself_beside_itself_in_tuples(self) -> None:
        loop: list[object] = []
        loop += [loop, loop]
        value: object = loop
        for _ in range(8):
            value = (value,)
        with pytest.raises(UnserialisableValue, match="is nested deeper than 64 levels"):
            packed([value])

    def test_an_instance_that_holds_itself(self) -> None:
        value = Order(1)
        value.first = [value]
        with pytest.raises(
            UnserialisableValue, match=r"value\[0\]\.first\[0\]\.first.* or holds it"
        ):
            packed([value])


def local_enum() -> object:
    class Local(enum.Enum):
        ONE = 1

    return Local.ONE


def local_int_enum() -> object:
    class Local(enum.IntEnum):
        ONE = 1

    return Local.ONE


def local_dataclass() -> object:
    @dataclass
    class Local:
        x: int

    return Local(1)


def extended() -> object:
    value = Unfit()
    value.keep()
    return value


def incomplete() -> object:
    value = Order(1)
    del value.rest
    return value


def of_main() -> object:
    return make_dataclass("Order", ["x"], namespace={"__module__": "__main__"})(1)


def hidden() -> object:
    return make_dataclass("Money", ["x"], namespace={"__module__": HERE})(1)


REFUSED: list[tuple[Callable[[], object], str]] = [
    (
        local_enum,
        ".local_enum.<locals>.Local is defined inside a function, where no other process can "
        "import it; define it at the top level of a module",
    ),
    (local_int_enum, ".local_int_enum.<locals>.Local is defined inside a function"),
    (local_dataclass, ".local_dataclass.<locals>.Local is defined inside a function"),
    (
        of_main,
        "Order is defined in __main__, which is another program in every process; define it in a "
        "module that can be imported",
    ),
    (hidden, f"{HERE}.Money is another object than the one with this name"),
    (
        extended,
        "its attribute 'extra' is no field and would be lost; declare it as a field, with "
        "init=False if need be",
    ),
    (incomplete, "its field 'rest' has no value"),
    (lambda: Numbers("a"), "it is a dataclass and a list at once"),
    (lambda: Problem("a"), "an instance cannot be made from its fields (object.__new__(Problem)"),
]


class TestRefusals:
    @pytest.mark.parametrize("beside", [1, 2**70])
    @pytest.mark.parametrize(("make", "reason"), REFUSED)
    def test_say_where_what_and_why(
        self, make: Callable[[], object], reason: str, beside: int
    ) -> None:
        value = make()
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        with pytest.raises(UnserialisableValue) as caught:
            packed([beside, {"deep": [value]}])
        text = str(caught.value)
        assert text.startswith(f"value[1]['deep'][0] of type {kind} cannot be serialised: ")
        assert reason in text

    def test_a_field_is_part_of_the_place(self) -> None:
        with pytest.raises(UnserialisableValue) as caught:
            packed([Order([1, Money(1, {"a": object()})])])
        assert str(caught.value) == (
            "value[0].first[1].colour['a'] of type object cannot be serialised"
        )

    def test_a_key_that_cannot_be_shown(self) -> None:
        class Silent:
            def __hash__(self) -> int:
                return 1

            def __repr__(self) -> str:
                raise ZeroDivisionError

        with pytest.raises(UnserialisableValue, match=r"value\[0\].* of type .*Silent cannot be"):
            packed([{Silent(): 1}])
        with pytest.raises(UnserialisableValue, match=r"value\[0\]\[int\] of type object cannot"):
            packed([{10**5000: object()}])

    def test_a_class_that_is_replaced_by_another_of_its_name(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        module = ModuleType("a_shop")
        monkeypatch.setitem(sys.modules, "a_shop", module)
        old = make_dataclass("Thing", ["x"], namespace={"__module__": "a_shop"})
        new = make_dataclass("Thing", ["x"], namespace={"__module__": "a_shop"})
        module.Thing = new  # type: ignore[attr-defined]
        assert travelled(new(1)) == new(1)
        with pytest.raises(UnserialisableValue, match=r"a_shop\.Thing is another object"):
            packed([old(1)])
