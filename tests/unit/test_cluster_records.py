"""Records as bytes: what is written is read, what another version wrote is read or refused."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.cluster.encoding import FORMAT, Record
from storm_py.cluster.records import (
    Assignment,
    ErrorInfo,
    LogConfig,
    LogLevel,
    NimbusSummary,
    StormBase,
    SupervisorInfo,
    TopologyActionOptions,
    TopologyStatus,
    WorkerHeartbeat,
)
from storm_py.errors import InvalidRecord
from tests.cluster_records import (
    assignment,
    error_info,
    nimbus_summary,
    storm_base,
    supervisor_info,
    worker_heartbeat,
)

RECORDS = [
    storm_base(),
    dataclasses.replace(
        storm_base(),
        status=TopologyStatus.REBALANCING,
        prev_status=TopologyStatus.INACTIVE,
        topology_version="2026-11",
        topology_action_options=TopologyActionOptions(30, None, {"count": 2}),
    ),
    assignment(),
    dataclasses.replace(assignment(), executor_node_port={}, executor_start_time_secs={}),
    worker_heartbeat(),
    supervisor_info(),
    dataclasses.replace(
        supervisor_info(),
        server_port=6628,
        scheduler_meta={"rack": "1"},
        resources_map={"cpu": 400.0},
    ),
    error_info(),
    nimbus_summary(),
    LogConfig(),
    LogConfig({"": LogLevel("DEBUG", 30, 1_700_000_030, "INFO"), "kazoo": LogLevel("WARN")}),
]


def in_json(record: Record, **changes: object) -> bytes:
    fields = json.loads(record.to_bytes())
    return json.dumps({**fields, **changes}).encode()


def refusal(record: type[Record], data: bytes) -> str:
    with pytest.raises(InvalidRecord) as caught:
        record.from_bytes(data, "/a/b")
    return str(caught.value)


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    assert type(record).from_bytes(record.to_bytes(), "/a") == record


def test_the_form_of_a_record() -> None:
    """It stays like this: another version of storm-py may read it."""
    assert assignment(3).to_bytes() == (
        b'{"format":1,"version":3,"owner":"alice","master_code_dir":"/srv/words",'
        b'"code_checksum":"00ff","node_host":{"s1":"here"},'
        b'"executor_node_port":[[[1,1],["s1",6700]],[[2,5],["s1",6701]]],'
        b'"executor_start_time_secs":[[[1,1],5],[[2,5],6]],'
        b'"worker_numbers":[[["s1",6700],1],[["s1",6701],2]],"next_worker_number":3}'
    )


@pytest.mark.parametrize("record", RECORDS)
def test_what_a_newer_writer_adds_is_ignored(record: Record) -> None:
    assert type(record).from_bytes(in_json(record, news={"a": [1]}), "/a") == record


def test_what_an_older_writer_left_out_gets_its_default() -> None:
    fields = json.loads(supervisor_info().to_bytes())
    del fields["worker_heartbeats"], fields["server_port"]
    read = SupervisorInfo.from_bytes(json.dumps(fields).encode(), "/a")
    assert read == dataclasses.replace(supervisor_info(), worker_heartbeats={})


@pytest.mark.parametrize("found", [0, 2, "1", None, True, [1]])
def test_another_format(found: object) -> None:
    assert refusal(ErrorInfo, in_json(error_info(), format=found)) == (
        f"/a/b: ErrorInfo of format {found!r}; expected format {FORMAT}: another version of "
        "storm-py wrote it, install the same one on every machine"
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "/a/b: expected the JSON of StormBase; Expecting value"),
        (b"{", "/a/b: expected the JSON of StormBase; "),
        (b"\xff\xfe\x00", "/a/b: expected the JSON of StormBase; "),
        (b"[1]", "/a/b: is a list; expected the JSON object of StormBase"),
        (b"null", "/a/b: is None; expected the JSON object of StormBase"),
        (b"[" * 10**5, "/a/b: expected the JSON of StormBase; maximum recursion depth"),
        (b"{}", "/a/b: StormBase of format None; expected format 1"),
        (b'{"format":1}', "/a/b: StormBase has no field 'name'"),
    ],
)
def test_what_is_no_record(data: bytes, reason: str) -> None:
    assert refusal(StormBase, data).startswith(reason)


@pytest.mark.parametrize(
    ("record", "changes", "reason"),
    [
        (storm_base(), {"name": 7}, "StormBase.name is 7 (int); expected a str"),
        (storm_base(), {"num_workers": "2"}, ".num_workers is '2' (str); expected an int"),
        (storm_base(), {"num_workers": True}, ".num_workers is True (bool); expected an int"),
        (storm_base(), {"num_workers": 2.0}, ".num_workers is 2.0 (float); expected an int"),
        (
            storm_base(),
            {"status": "IDLE"},
            ".status is 'IDLE'; expected one of ACTIVE, INACTIVE, REBALANCING, KILLED",
        ),
        (storm_base(), {"component_executors": []}, "is [] (list); expected an object"),
        (
            storm_base(),
            {"component_executors": {"count": None}},
            "StormBase.component_executors['count'] is None (NoneType); expected an int",
        ),
        (
            storm_base(),
            {"topology_action_options": {"wait_secs": "1"}},
            "StormBase.topology_action_options.wait_secs is '1' (str); expected an int",
        ),
        (storm_base(), {"topology_action_options": 7}, "is 7 (int); expected an object"),
        (
            assignment(),
            {"executor_node_port": [[[1], ["s", 1]]]},
            "Assignment.executor_node_port[0][0] is [1]; expected 2 items",
        ),
        (assignment(), {"executor_node_port": [7]}, "executor_node_port[0] is 7 (int); expected a"),
        (assignment(), {"executor_node_port": {"a": 1}}, "(dict); expected a list"),
        (
            supervisor_info(),
            {"resources_map": {"cpu": "4"}},
            "resources_map['cpu'] is '4' (str); expected a float",
        ),
    ],
)
def test_a_field_of_another_type(record: Record, changes: dict[str, Any], reason: str) -> None:
    message = refusal(type(record), in_json(record, **changes))
    assert message.startswith("/a/b: ")
    assert reason in message


def test_a_whole_number_is_a_float_too() -> None:
    data = in_json(supervisor_info(), resources_map={"cpu": 4})
    assert SupervisorInfo.from_bytes(data, "/a").resources_map == {"cpu": 4.0}


def test_a_nimbus_is_called_by_its_address() -> None:
    assert nimbus_summary("far").nimbus_id == "far:6627"


NAMES = st.text(max_size=5)
SECS = st.integers(0, 2**40)
EXECUTORS = st.tuples(st.integers(1, 9), st.integers(1, 9))
HEARTBEATS = st.builds(WorkerHeartbeat, NAMES, SECS, st.lists(EXECUTORS).map(tuple), SECS, SECS)
ANY_RECORD: st.SearchStrategy[Record] = st.one_of(
    HEARTBEATS,
    st.builds(ErrorInfo, NAMES, SECS, NAMES, SECS),
    st.builds(NimbusSummary, NAMES, SECS, SECS, NAMES),
    st.builds(
        Assignment,
        SECS,
        NAMES,
        NAMES,
        NAMES,
        st.dictionaries(NAMES, NAMES),
        st.dictionaries(EXECUTORS, st.tuples(NAMES, SECS)),
        st.dictionaries(EXECUTORS, SECS),
    ),
    st.builds(
        SupervisorInfo,
        SECS,
        NAMES,
        NAMES,
        st.lists(SECS).map(tuple),
        st.lists(SECS).map(tuple),
        SECS,
        NAMES,
        st.none() | SECS,
        st.dictionaries(NAMES, NAMES),
        st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False)),
        st.dictionaries(SECS, HEARTBEATS),
    ),
)


@given(ANY_RECORD)
def test_law_of_the_round_trip(record: Record) -> None:
    assert type(record).from_bytes(record.to_bytes(), "/a") == record


@given(
    st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    ).map(lambda value: json.dumps({"format": 1, "version": value}).encode())
)
def test_law_of_any_bytes(data: bytes) -> None:
    with pytest.raises(InvalidRecord, match=r"^/a: "):
        Assignment.from_bytes(data, "/a")
