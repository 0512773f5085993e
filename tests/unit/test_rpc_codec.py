"""Values as bytes: round trips, the same bytes as thriftpy2's, and any bytes at all."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thriftpy2.protocol import TBinaryProtocol, TCyBinaryProtocol
from thriftpy2.transport import TCyMemoryBuffer, TMemoryBuffer

from storm_py.errors import ProtocolError
from storm_py.rpc import codec
from storm_py.rpc.definitions import (
    ComponentObject,
    GlobalStreamId,
    Grouping,
    KillOptions,
    NullStruct,
    RebalanceOptions,
    SubmitOptions,
)
from storm_py.rpc.service import struct_of
from storm_py.rpc.summaries import SupervisorSummary, TopologySummary
from tests.rpc import STRUCTS, values_of

THOROUGH = settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


PLAIN: tuple[Any, Any] = (TBinaryProtocol, TMemoryBuffer)
COMPILED: tuple[Any, Any] = (TCyBinaryProtocol, TCyMemoryBuffer)
"""thriftpy2's own protocols, which storm-py does not use."""


def encoded(value: Any) -> bytes:
    out = bytearray()
    cls: Any = type(value)
    struct_of(cls).write(out, value, "it")
    return bytes(out)


def decoded(cls: Any, data: bytes) -> object:
    source = codec.Source(data)
    value = struct_of(cls).read(source, "it")
    assert source.left == 0
    return value


@pytest.mark.parametrize("name", STRUCTS)
@THOROUGH
@given(data=st.data())
def test_every_struct_comes_back_as_it_was_and_thriftpy2_writes_and_reads_the_same(
    name: str, data: st.DataObject
) -> None:
    value = data.draw(values_of(struct_of(STRUCTS[name])))
    written = encoded(value)
    assert decoded(STRUCTS[name], written) == value
    for protocol, buffer in (PLAIN, COMPILED):
        out = buffer()
        protocol(out).write_struct(value)
        assert out.getvalue() == written
        found = STRUCTS[name]()
        protocol(buffer(written)).read_struct(found)
        assert encoded(found) == written  # it makes lists of sets, so bytes are compared


@pytest.mark.parametrize("name", ["StormTopology", "ComponentPageInfo", "TopologyInfo"])
@settings(max_examples=200)
@given(data=st.data())
def test_any_bytes_are_a_value_or_a_protocol_error(name: str, data: st.DataObject) -> None:
    junk = data.draw(st.binary(max_size=200))
    try:
        struct_of(STRUCTS[name]).read(codec.Source(junk), "it")
    except ProtocolError:
        pass


@THOROUGH
@given(st.data())
def test_a_value_with_a_byte_changed_is_a_value_or_a_protocol_error(data: st.DataObject) -> None:
    good = encoded(data.draw(values_of(struct_of(STRUCTS["StormTopology"]))))
    at = data.draw(st.integers(0, len(good) - 1))
    changed = good[:at] + bytes([data.draw(st.integers(0, 255))]) + good[at + 1 :]
    try:
        struct_of(STRUCTS["StormTopology"]).read(codec.Source(changed), "it")
    except ProtocolError:
        pass


@THOROUGH
@given(st.data())
def test_a_value_that_is_cut_off_is_refused(data: st.DataObject) -> None:
    good = encoded(data.draw(values_of(struct_of(STRUCTS["StormTopology"]))))
    cut = data.draw(st.integers(0, len(good) - 1))
    with pytest.raises(ProtocolError):
        decoded(STRUCTS["StormTopology"], good[:cut])


def test_a_struct_by_hand() -> None:
    data = bytes.fromhex(
        "08 0001 0000001e"  # i32, field 1: 30
        "0d 0003 0b 08 00000001"  # map, field 3: string to i32, one entry
        "00000005" + b"count".hex() + "00000004"
        "0b 0006 00000002" + b"me".hex() + "00"
    )
    value = RebalanceOptions(wait_secs=30, num_executors={"count": 4}, principal="me")
    assert encoded(value) == data
    assert decoded(RebalanceOptions, data) == value


def test_unknown_fields_and_fields_of_other_types_are_skipped() -> None:
    data = bytes.fromhex(
        "0a 0063 0000000000000000"  # i64, field 99
        "0f 0062 0c 00000001 02 0001 01 00"  # list of one struct, field 98
        "0d 0061 08 0e 00000001 00000007 03 00000001 2a"  # map of i32 to sets, field 97
        "0b 0001 00000001 78"  # field 1 as a string
        "00"
    )
    assert decoded(KillOptions, data) == KillOptions()


@pytest.mark.parametrize("integer", ["03 0001 1e", "06 0001 001e", "0a 0001 000000000000001e"])
def test_an_integer_of_another_size_is_taken(integer: str) -> None:
    assert decoded(KillOptions, bytes.fromhex(f"{integer} 00")) == KillOptions(wait_secs=30)


def test_an_integer_that_is_too_large_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"KillOptions.wait_secs is 2147483648, too large for"):
        decoded(KillOptions, bytes.fromhex("0a 0001 0000000080000000 00"))


def test_a_default_stands_for_what_is_not_sent() -> None:
    summary = SupervisorSummary(
        host="h", uptime_secs=1, num_workers=2, num_used_workers=1, supervisor_id="s"
    )
    assert summary.version == "VERSION_NOT_PROVIDED"
    summary.version = None
    found = decoded(SupervisorSummary, encoded(summary))
    assert isinstance(found, SupervisorSummary)
    assert found.version == "VERSION_NOT_PROVIDED"


def test_streams_are_keys_by_what_they_say() -> None:
    inputs = {GlobalStreamId(componentId="a", streamId="s"): Grouping(shuffle=NullStruct())}
    assert GlobalStreamId(componentId="a", streamId="s") in inputs


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "1 bytes announced where 0 are left"),
        ("08 0001 0000", "4 bytes announced where 2 are left"),
        ("0b 0005 7fffffff 61 00", "2147483647 bytes announced where 2 are left"),
        ("0b 0005 ffffffff 00", "-1 bytes announced where 1 are left"),
        ("0d 0003 0b 08 7fffffff 00", "2147483647 elements announced where 1 bytes are left"),
        ("0d 0003 0b 08 ffffffff 00", "-1 elements announced where 1 bytes are left"),
        ("0f 0009 63 7fffffff 00", "2147483647 elements announced where 1 bytes are left"),
        ("0f 0009 63 00000001 00", "a value of the type 99, which Thrift does not have"),
        ("01 0009 00", "a value of the type 1, which Thrift does not have"),
        ("0b 0005 00000001 ff 00", "RebalanceOptions.topology_conf_overrides is no UTF-8"),
        (
            "0d 0003 08 08 00000001 00000000 00000000 00",
            "RebalanceOptions.num_executors has entries of types (8, 8); expected map<string, i32>",
        ),
    ],
)
def test_bytes_that_are_refused(data: str, reason: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decoded(RebalanceOptions, bytes.fromhex(data))
    assert reason in str(caught.value)


def test_structs_within_structs_without_end_are_refused() -> None:
    """Each takes 3 bytes; compiled readers overflow their stack."""
    with pytest.raises(ProtocolError, match="more than 64 structs and containers"):
        decoded(KillOptions, b"\x0c\x00\x63" * 100_000)


def test_an_empty_container_may_be_of_any_type() -> None:
    data = bytes.fromhex("0d 0003 00 00 00000000 00")
    assert decoded(RebalanceOptions, data) == RebalanceOptions(num_executors={})


@pytest.mark.parametrize(
    ("cls", "data", "reason"),
    [
        (GlobalStreamId, "0b 0001 00000000 00", "GlobalStreamId.streamId (field 2) is required"),
        (SubmitOptions, "08 0001 00000007 00", "expected TopologyInitialStatus: ACTIVE 1, INACTIV"),
        (Grouping, "00", "Grouping needs one of fields, shuffle, all"),
        (Grouping, "0c 0002 00 0c 0003 00 00", "it has ['shuffle', 'all']"),
        (ComponentObject, "00", "ComponentObject needs one of serialized_java, shell, java_object"),
    ],
)
def test_structs_that_are_refused(cls: Any, data: str, reason: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decoded(cls, bytes.fromhex(data))
    assert reason in str(caught.value)


def summary(**changes: Any) -> TopologySummary:
    value = TopologySummary(
        id="t-1-1",
        name="t",
        num_tasks=1,
        num_executors=1,
        num_workers=1,
        uptime_secs=1,
        status="ACTIVE",
    )
    for name, content in changes.items():
        setattr(value, name, content)
    return value


@pytest.mark.parametrize(
    ("value", "error", "reason"),
    [
        (summary(name=None), ValueError, "TopologySummary.name (field 2) is required and not set"),
        (summary(name=b"t"), TypeError, "TopologySummary.name is b't', a bytes; expected string"),
        (
            summary(name="\ud800"),
            ValueError,
            "TopologySummary.name is '\\ud800', no text: surrogates not",
        ),
        (summary(num_tasks=2**31), ValueError, "is 2147483648, too large for i32"),
        (summary(num_tasks=True), TypeError, "is True, a bool; expected i32"),
        (summary(num_tasks=1.0), TypeError, "is 1.0, a float; expected i32"),
        (summary(assigned_cpu="1"), TypeError, "is '1', a str; expected double"),
        (
            summary(requested_generic_resources=[]),
            TypeError,
            "is [], a list; expected map<string, double>",
        ),
        (SubmitOptions(initial_status=0), ValueError, "expected TopologyInitialStatus: ACTIVE 1"),
        (Grouping(), ValueError, "Grouping needs one of"),
        (STRUCTS["Grouping"](fields="word"), TypeError, "is 'word', a str; expected list<string>"),
        (STRUCTS["Grouping"](custom_serialized="x"), TypeError, "is 'x', a str; expected binary"),
        (STRUCTS["ComponentObject"](shell=KillOptions()), TypeError, "expected ShellComponent"),
        (STRUCTS["KillOptions"](wait_secs="30"), TypeError, "KillOptions.wait_secs is '30', a str"),
    ],
)
def test_values_that_cannot_be_sent(value: object, error: type[Exception], reason: str) -> None:
    with pytest.raises(error) as caught:
        encoded(value)
    assert reason in str(caught.value)


def test_an_int_is_a_double() -> None:
    data = encoded(summary(assigned_cpu=2))
    assert struct.pack(">bhd", 4, 526, 2.0) in data
