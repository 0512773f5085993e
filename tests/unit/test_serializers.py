"""Registered serializers and the pickle fallback: from the configuration to the bytes of a row."""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import Config, ConfigError, EmitError, InvalidTopologyException, TopologyBuilder
from storm_py.config import defaults, validate
from storm_py.engine.settings import Settings, codec_of
from storm_py.errors import ProtocolError
from storm_py.wire.values import Codec, UnserialisableValue
from tests import value_types
from tests.builders import Recorder, bolt, by, plan_of, spout
from tests.instance import ScriptedSpout
from tests.producer import Producer
from tests.travel import packed, same, travelled, unpacked
from tests.value_types import Cash, Coin, Name, Seeded, Unfit, shout, whisper

HERE = "tests.value_types"
CASH = [f"{HERE}:Cash", f"{HERE}:Cash.to_bytes", f"{HERE}:Cash.from_bytes"]
KEY = Config.STORM_PY_SERIALIZERS
PICKLE = Config.STORM_PY_FALL_BACK_ON_PICKLE


def codec(*registrations: list[str], pickling: bool = False) -> Codec:
    """The codec of a topology with this configuration, which travels as JSON."""
    conf = {**defaults(), KEY: list(registrations), PICKLE: pickling}
    return Settings.of(json.loads(json.dumps(conf)), worker_port=0).codec


class TestRegistration:
    def test_is_kept_by_name(self) -> None:
        conf = Config()
        conf.register_serialization(Cash, Cash.to_bytes, Cash.from_bytes)
        assert conf == {KEY: [CASH]}
        validate(conf)

    def test_the_last_one_of_a_class_counts(self) -> None:
        conf = Config()
        conf.register_serialization(Cash, pickle.dumps, pickle.loads)
        conf.register_serialization(Name, shout, whisper)
        conf.register_serialization(Cash, Cash.to_bytes, Cash.from_bytes)
        assert conf[KEY] == [[f"{HERE}:Name", f"{HERE}:shout", f"{HERE}:whisper"], CASH]

    def test_leaves_the_defaults_alone(self) -> None:
        conf = Config(defaults())
        conf.register_serialization(Cash, Cash.to_bytes, Cash.from_bytes)
        assert defaults()[KEY] == []

    @pytest.mark.parametrize(
        ("args", "problem"),
        [
            ((Cash, lambda cash: b"", whisper), "a lambda of tests.unit.test_serializers has no "),
            ((Cash, functools.partial(shout), whisper), "has no module and name of its own"),
            ((shout, shout, whisper), f"{HERE}:shout is a function; expected a class"),
            ((Cash, Cash, value_types), f"<module '{HERE}'"),
            ((str, shout, whisper), "str travels as it is; register a class of your own"),
            ((Cash(1), shout, whisper), "has no module and name of its own"),
        ],
    )
    def test_what_cannot_be_found_again_is_refused(self, args: Any, problem: str) -> None:
        with pytest.raises(ConfigError) as caught:
            Config().register_serialization(*args)
        assert str(caught.value).startswith("register_serialization: ")
        assert problem in str(caught.value)

    def test_a_local_class_is_refused(self) -> None:
        class Local:
            pass

        with pytest.raises(ConfigError, match=r"Local is defined inside a function, where no oth"):
            Config().register_serialization(Local, pickle.dumps, pickle.loads)

    @pytest.mark.parametrize(
        "value",
        [
            *("x", {}, [CASH[0]], [CASH[:2]], [[*CASH, "a:b"]], [CASH, CASH], [[1, 2, 3]]),
            *([[*CASH[:2], "no_module"]], [[*CASH[:2], "a:<lambda>"]], [tuple(CASH)], None),
        ],
    )
    def test_a_list_of_another_form_is_refused(self, value: object) -> None:
        with pytest.raises(
            ConfigError, match=r"storm_py\.serializers is .*; expected a list of \["
        ):
            validate({KEY: value})

    @pytest.mark.parametrize(
        ("paths", "problem"),
        [
            (["nowhere:A", *CASH[1:]], "the module nowhere cannot be imported (ModuleNotFoundErr"),
            ([CASH[0], f"{HERE}:Cash.dump", CASH[2]], f"the module {HERE} has no Cash.dump"),
            (
                [*CASH[:2], f"{HERE}:NOT_CALLABLE"],
                f"{HERE}:NOT_CALLABLE is an int; expected a func",
            ),
            (["builtins:dict", *CASH[1:]], "dict travels as it is"),
        ],
    )
    def test_what_is_not_there_ends_a_run_before_it_begins(
        self, paths: list[str], problem: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            codec_of({**defaults(), KEY: [paths]})
        assert str(caught.value).startswith("storm_py.serializers: ")
        assert problem in str(caught.value)

    @pytest.mark.parametrize(("key", "value"), [(KEY, [CASH]), (PICKLE, True)])
    def test_is_for_a_topology_not_for_a_component(self, key: str, value: object) -> None:
        declarer = TopologyBuilder().set_spout("source", ScriptedSpout(Recorder()))
        with pytest.raises(InvalidTopologyException) as caught:
            declarer.add_configuration(key, value)
        assert str(caught.value) == (
            f"spout 'source': {key} cannot be set for one component, since all that exchange "
            "tuples have to agree on it; set it for the topology"
        )


class TestRegisteredValues:
    @given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([1, 2**70]))
    def test_round_trip(self, cents: int, beside: int) -> None:
        value = [beside, {Cash(cents): (Cash(cents),)}]
        assert same(travelled(value, codec(CASH)), value)

    def test_exactly_the_class_that_was_registered(self) -> None:
        with pytest.raises(UnserialisableValue, match=r"of type tests.value_types.Coin cannot be"):
            packed([Coin(1)], codec(CASH))

    def test_a_subclass_of_what_is_built_in(self) -> None:
        names = codec([f"{HERE}:Name", f"{HERE}:shout", f"{HERE}:whisper"])
        result = travelled([Name("ann"), "Bob", 2**70], names)
        assert same(result, [Name("ann"), "Bob", 2**70])

    def test_an_extension_of_ours_may_be_replaced(self) -> None:
        seeded = codec([f"{HERE}:Seeded", "pickle:dumps", "pickle:loads"])
        assert travelled(Seeded(2), seeded) == Seeded(2)
        assert b"__reduce__" not in packed([Seeded(2)], seeded)
        assert packed([Seeded(2)], seeded) != packed([Seeded(2)])

    @pytest.mark.parametrize("beside", [1, 2**70])
    @pytest.mark.parametrize(
        ("dumps", "problem"),
        [
            ("no_bytes", f"its serializer {HERE}.no_bytes returned str, expected bytes"),
            ("refuse", f"its serializer {HERE}.refuse raised LookupError: never heard of it"),
        ],
    )
    def test_a_dumps_that_fails(self, dumps: str, problem: str, beside: int) -> None:
        with pytest.raises(UnserialisableValue) as caught:
            packed([beside, [Cash(1)]], codec([CASH[0], f"{HERE}:{dumps}", CASH[2]]))
        assert str(caught.value) == (
            f"value[1][0] of type {HERE}.Cash cannot be serialised: {problem}"
        )

    def test_a_loads_that_fails(self) -> None:
        row = packed([Cash(1)], codec(CASH))
        with pytest.raises(ProtocolError) as caught:
            unpacked(row, codec=codec([*CASH[:2], f"{HERE}:refuse"]))
        assert str(caught.value) == (
            f"a value of the class {HERE}.Cash cannot be read: {HERE}.refuse raised LookupError: "
            "never heard of it"
        )

    @pytest.mark.parametrize("data", [b"", b"\0", b"\1\0", b"\xff\xff" + bytes(8)])
    def test_a_class_that_nobody_registered(self, data: bytes) -> None:
        row = b"\x91" + msgpack.packb(msgpack.ExtType(16, data))
        with pytest.raises(ProtocolError, match=r"but storm_py\.serializers holds 1"):
            unpacked(row, codec=codec(CASH))


class TestPickle:
    @pytest.mark.parametrize(
        "value",
        [
            *(Fraction(1, 3), range(5), Cash(3), len, value_types.shout),
            *([2**70, {"a": (Fraction(1, 3),)}], {Fraction(2, 3): 1}),
        ],
    )
    def test_what_is_neither_built_in_nor_registered(self, value: object) -> None:
        assert same(travelled(value, codec(pickling=True)), value)

    def test_what_is_built_in_is_not_pickled(self) -> None:
        row = ["a", 1, (2,), value_types.Money(1), value_types.Plain.ONE]
        assert packed(row, codec(pickling=True)) == packed(row)

    @pytest.mark.parametrize("beside", [1, 2**70])
    def test_an_instance_that_holds_more_than_its_fields(self, beside: int) -> None:
        value = Unfit()
        value.keep()
        result: Any = travelled([beside, value], codec(pickling=True))
        assert vars(result[1]) == {"value": 0, "extra": 1}

    def test_is_refused_when_it_is_off(self) -> None:
        row = packed([Fraction(1, 3)], codec(pickling=True))
        with pytest.raises(ProtocolError) as caught:
            unpacked(row)
        assert str(caught.value) == (
            "a pickled value came, but storm_py.fall.back.on.pickle is false"
        )

    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            (lambda: iter([object]).__class__, "cannot be serialised"),
            (lambda: lambda: 1, "cannot be serialised: pickling it raised "),
            (lambda: open(__file__, "rb"), "pickling it raised TypeError: cannot pickle"),  # noqa: SIM115
            (
                lambda: type("Local", (), {"__qualname__": "f.<locals>.Local"})(),
                "inside a function",
            ),
            (lambda: type("Main", (), {"__module__": "__main__"})(), "is defined in __main__"),
        ],
    )
    def test_what_cannot_be_pickled(self, make: Callable[[], object], problem: str) -> None:
        value = make()
        with pytest.raises(UnserialisableValue) as caught:
            packed([[value]], codec(pickling=True))
        assert str(caught.value).startswith("value[0][0] of type ")
        assert problem in str(caught.value)
        if hasattr(value, "close"):
            value.close()

    @given(st.binary(max_size=30))
    def test_any_bytes(self, data: bytes) -> None:
        row = b"\x91" + msgpack.packb(msgpack.ExtType(17, b"\x80\x05" + data))
        with pytest.raises(ProtocolError, match=r"pickle\.fall|fall\.back\.on\.pickle is false"):
            unpacked(row)

    def test_damaged(self) -> None:
        row = b"\x91" + msgpack.packb(msgpack.ExtType(17, b"\x80\x05cnowhere\nA\n."))
        with pytest.raises(
            ProtocolError, match="extension value of type 17 is malformed: No module"
        ):
            unpacked(row, codec=codec(pickling=True))


class TestEmit:
    """Through the emit functions of a task, keyed by the value."""

    def producer(self, codec: Codec) -> Producer:
        plan = plan_of(spout("source", "who n"), bolt("count", {"source": by("who")}, tasks=8))
        return Producer(plan, rows=1000, codec=codec)

    def test_equal_dumps_are_one_key(self) -> None:
        producer = self.producer(codec(CASH))
        owners = set()
        for cents in range(40):
            cold = producer.on("default", [Cash(cents), 1])
            assert producer.on("default", [Cash(cents), 2]) == cold
            assert self.producer(codec(CASH)).on("default", [Cash(cents), 3]) == cold
            owners.add(cold)
        assert len(owners) == 8

    def test_a_key_equal_to_a_builtin_goes_where_that_goes(self) -> None:
        names = codec([f"{HERE}:Name", f"{HERE}:shout", f"{HERE}:whisper"])
        for name in map(str, range(20)):
            plain = self.producer(names).on("default", [name, 1])
            assert self.producer(names).on("default", [Name(name), 1]) == plain

    def test_an_error_names_everything(self) -> None:
        producer = self.producer(codec([CASH[0], f"{HERE}:refuse", CASH[2]]))
        with pytest.raises(EmitError) as caught:
            producer.on("default", ["ann", {"deep": [Cash(1)]}])
        assert str(caught.value) == (
            "component 'source', stream 'default': field 'n': value[1]['deep'][0] of type "
            f"{HERE}.Cash cannot be serialised: its serializer {HERE}.refuse raised LookupError: "
            "never heard of it"
        )
        assert producer.received() == {}
