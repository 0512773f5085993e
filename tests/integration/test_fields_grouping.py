"""Fields grouping across processes: an equal key reaches the same task, whoever sends it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.integration.harness import Outcome, run_local
from tests.integration.topologies_for_tests.keys import EQUAL_KEYS, keys

pytestmark = pytest.mark.variants

SPOUTS = 4
ROUNDS = 20


def owners(outcome: Outcome, component: str) -> dict[int, set[int]]:
    """Which tasks of a component received each class of keys."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for report in outcome.reports("received"):
        if report["component"] == component:
            for index in report["counts"]:
                found[int(index)].add(report["task"])
    return dict(found)


def all_owners(outcome: Outcome) -> dict[str, dict[int, set[int]]]:
    return {component: owners(outcome, component) for component in ("one", "two")}


def check_one_owner_each(outcome: Outcome) -> None:
    """Every class of keys has one task, nothing is lost, and emit told the truth."""
    outcome.check_clean()
    for component in ("one", "two"):
        assert {
            index: len(tasks) for index, tasks in owners(outcome, component).items()
        } == dict.fromkeys(range(len(EQUAL_KEYS)), 1)
        received: defaultdict[int, int] = defaultdict(int)
        for report in outcome.reports("received"):
            if report["component"] == component:
                for index, count in report["counts"].items():
                    received[int(index)] += count
        assert received == {i: SPOUTS * ROUNDS * len(same) for i, same in enumerate(EQUAL_KEYS)}
    owner = all_owners(outcome)
    for report in outcome.reports("emitted"):
        for index, told in report["told"]:
            assert set(told) == owner["one"][index] | owner["two"][index]
            assert len(told) == 2


def test_two_workers_with_seeds_of_their_own_agree() -> None:
    outcome = run_local(keys(ROUNDS), workers=2)
    hashes = {(report["port"], report["hash"]) for report in outcome.reports("emitted")}
    assert len({value for _, value in hashes}) == 2, "the workers have one and the same hash seed"
    assert {report["port"] for report in outcome.reports("received")} == {6700, 6701}
    check_one_owner_each(outcome)


def test_runs_with_different_seeds_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    hashes = set()
    for seed, workers in (("0", 1), ("1", 2), ("4242", 1)):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        outcome = run_local(keys(ROUNDS), workers)
        check_one_owner_each(outcome)
        hashes |= {report["hash"] for report in outcome.reports("emitted")}
        found.append(all_owners(outcome))
    assert len(hashes) == 3
    assert found[0] == found[1] == found[2]
    # Not all in one place: the keys are spread over the tasks.
    assert len(set.union(*found[0]["one"].values())) == 5
