"""The layout of nodes in ZooKeeper: Storm's, to the letter."""

from __future__ import annotations

from urllib.parse import unquote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storm_py.cluster import paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (paths.storm("t-1-2"), "/storms/t-1-2"),
        (paths.assignment("t-1-2"), "/assignments/t-1-2"),
        (paths.supervisor("s1"), "/supervisors/s1"),
        (paths.storm_workerbeats("t-1-2"), "/workerbeats/t-1-2"),
        (paths.workerbeat("t-1-2", "s1", 6700), "/workerbeats/t-1-2/s1-6700"),
        (paths.storm_errors("t-1-2"), "/errors/t-1-2"),
        (paths.component_errors("t-1-2", "count"), "/errors/t-1-2/count"),
        (paths.error("t-1-2", "count"), "/errors/t-1-2/count/e"),
        (paths.last_error("t-1-2", "count"), "/errors/t-1-2/count-last-error"),
        (paths.nimbus("here:6627"), "/nimbuses/here:6627"),
        (paths.LEADER_LOCK, "/leader-lock"),
        (paths.LEADER_INFO, "/leader-info"),
        (paths.credentials("t-1-2"), "/credentials/t-1-2"),
        (paths.logconfig("t-1-2"), "/logconfigs/t-1-2"),
        (paths.profilerconfigs("t-1-2"), "/profilerconfigs/t-1-2"),
        (
            paths.profilerconfig("t-1-2", "here", 6700, "JSTACK_DUMP"),
            "/profilerconfigs/t-1-2/here_6700_JSTACK_DUMP",
        ),
        (paths.blob("k"), "/blobstore/k"),
        (paths.blob_max_key_sequence_number("k"), "/blobstoremaxkeysequencenumber/k"),
    ],
)
def test_a_path(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(
    ("component_id", "encoded"),
    [
        ("a b", "a+b"),
        ("a/b", "a%2Fb"),
        ("a-b_c.d*e", "a-b_c.d*e"),
        ("a~b", "a%7Eb"),
        ("a+b%", "a%2Bb%25"),
        ("süß", "s%C3%BC%C3%9F"),
        (".", "%2E"),
        ("..", "%2E%2E"),
    ],
)
def test_components_are_encoded_as_java_does_it(component_id: str, encoded: str) -> None:
    assert paths.component_errors("t", component_id) == f"/errors/t/{encoded}"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@example("..")
def test_an_encoded_component_is_one_part_of_a_path_and_can_be_read(component_id: str) -> None:
    part = paths.component_errors("t", component_id).removeprefix("/errors/t/")
    assert "/" not in part
    assert part not in (".", "..")
    assert unquote_plus(part) == component_id


@given(st.text(min_size=1), st.integers(0, 65535))
@example("a-b", 1)
def test_a_slot_is_read_back(node: str, port: int) -> None:
    name = paths.workerbeat("t", node, port).removeprefix("/workerbeats/t/")
    assert paths.slot_of(name) == (node, port)


@pytest.mark.parametrize("name", ["", "node", "node-", "-6700", "node-x"])
def test_what_is_no_slot(name: str) -> None:
    assert paths.slot_of(name) is None
