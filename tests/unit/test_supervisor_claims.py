"""What nimbus has assigned to one supervisor, by port."""

from __future__ import annotations

from dataclasses import replace

from storm_py.supervisor.assignment import LocalAssignment
from storm_py.supervisor.claims import Claims, by_port, claims_of
from tests.cluster_records import assignment

WORDS, JOKES = "words-1-1", "jokes-2-2"


def local(topology_id: str = WORDS, version: int = 1) -> LocalAssignment:
    return LocalAssignment(topology_id, version, ((1, 1),), "00ff", "alice")


def test_each_slot_of_the_supervisor_is_claimed_with_its_executors() -> None:
    found = replace(
        assignment(4),
        executor_node_port={
            (1, 1): ("s1", 6700),
            (2, 5): ("s1", 6701),
            (6, 6): ("s1", 6700),
            (7, 7): ("s2", 6700),
        },
    )
    assert claims_of(WORDS, found, "s1") == {
        6700: LocalAssignment(WORDS, 4, ((1, 1), (6, 6)), "00ff", "alice"),
        6701: LocalAssignment(WORDS, 4, ((2, 5),), "00ff", "alice"),
    }
    assert claims_of(WORDS, found, "s3") == {}


def test_ports_run_what_is_claimed_and_nothing_else() -> None:
    claims = Claims({WORDS: {6700: local()}, JOKES: {6701: local(JOKES)}})
    current = {6700: None, 6701: local(), 6702: local()}
    assert by_port(claims, current) == {6700: local(), 6701: local(JOKES)}
    assert by_port(Claims(), current) == {}


def test_a_port_that_two_topologies_claim_stays_with_the_one_that_has_it() -> None:
    claims = Claims({JOKES: {6700: local(JOKES)}, WORDS: {6700: local(version=2)}})
    assert by_port(claims, {6700: local(version=1)}) == {6700: local(version=2)}
    assert by_port(claims, {6700: local(JOKES)}) == {6700: local(JOKES)}


def test_a_port_that_two_topologies_claim_and_neither_has_goes_to_the_first_by_name() -> None:
    claims = Claims({WORDS: {6700: local()}, JOKES: {6700: local(JOKES)}})
    assert by_port(claims, {6700: None}) == {6700: local(JOKES)}
    assert by_port(claims, {}) == {6700: local(JOKES)}


def test_a_topology_whose_assignment_cannot_be_read_keeps_what_it_has() -> None:
    claims = Claims({JOKES: {6701: local(JOKES)}}, frozenset({WORDS}))
    current = {6700: local(), 6701: None, 6702: local("gone-3-3")}
    assert by_port(claims, current) == {6700: local(), 6701: local(JOKES)}


def test_nobody_takes_the_port_of_a_topology_whose_assignment_cannot_be_read() -> None:
    claims = Claims({JOKES: {6700: local(JOKES)}}, frozenset({WORDS}))
    assert by_port(claims, {6700: local()}) == {6700: local()}
