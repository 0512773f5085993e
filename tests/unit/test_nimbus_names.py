"""Names of topologies as Storm allows them, and the ids that are made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py.bundle import code_key
from storm_py.errors import InvalidTopologyException
from storm_py.nimbus.blobstore import BlobStore
from storm_py.nimbus.names import (
    FORBIDDEN,
    MAX_BYTES,
    is_topology_name_allowed,
    make_topology_id,
    topology_name,
    validate_topology_name,
)

ADVICE = "; choose one that is not blank and has none of / . : \\ in it, like 'word-count'"


@pytest.mark.parametrize("name", ["word-count", "a b", "Zähler 2", "a-1-2", "_", "naïve~!@#$%"])
def test_a_name_is_allowed(name: str) -> None:
    validate_topology_name(name)
    assert is_topology_name_allowed(name, taken=[])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is blank"),
        (" \t", "it is blank"),
        ("a.b", "it contains ."),
        ("a/b:c", "it contains / and :"),
        ("a\\b", "it contains \\"),
        ("a\nb", r"it contains '\n', which cannot be printed"),
        ("a\0", r"it contains '\x00', which cannot be printed"),
        ("\ud800", r"it contains '\ud800', which cannot be printed"),
    ],
)
def test_a_name_is_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopologyException) as caught:
        validate_topology_name(name)
    assert str(caught.value) == f"Topology name {name!r} is not valid: {reason}{ADVICE}"
    assert not is_topology_name_allowed(name, taken=[])


@pytest.mark.parametrize("letter", ["x", "ä", "字"])
def test_a_name_may_be_as_long_as_what_is_made_of_it_can_be_a_file(
    letter: str, tmp_path: Path
) -> None:
    longest = letter * (MAX_BYTES // len(letter.encode()))
    validate_topology_name(longest)
    id_ = make_topology_id(longest, 10**9, 10**11)
    BlobStore(tmp_path).put(code_key(id_), b"")
    with pytest.raises(InvalidTopologyException, match=r"it has 20[1-3] bytes; choose one of at"):
        validate_topology_name(longest + letter)


def test_a_name_that_is_taken_is_not_allowed() -> None:
    assert not is_topology_name_allowed("word-count", taken={"word-count"})


@given(st.text(st.sampled_from([*FORBIDDEN, "a", "-", " "]), max_size=6))
def test_it_is_storms_pattern_but_for_blank_ones(name: str) -> None:
    allowed = bool(name.strip()) and not set(name) & set("/.:\\")
    assert is_topology_name_allowed(name, taken=[]) == allowed


def test_an_id_is_name_number_and_seconds() -> None:
    assert make_topology_id("word-count", 3, 1700000000.9) == "word-count-3-1700000000"


@given(st.text(min_size=1), st.integers(1), st.integers(0))
def test_an_id_tells_the_name(name: str, number: int, now_secs: int) -> None:
    assert topology_name(make_topology_id(name, number, now_secs)) == name


@pytest.mark.parametrize("text", ["", "words", "words-1", "-1-2", "words-1-x", "words--2", "a-x-2"])
def test_what_is_no_id_has_no_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected <name>-<number>-<seconds>$"):
        topology_name(text)
