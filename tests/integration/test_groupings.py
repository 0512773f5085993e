"""Groupings over two workers: each tuple arrives exactly where its grouping says and emit told."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from tests.integration.harness import Outcome, run_local
from tests.integration.topologies_for_tests.groupings import CONSUMERS, groupings

pytestmark = pytest.mark.variants

TOTAL = 600


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    """One run is enough for every question."""
    outcome = run_local(groupings(TOTAL), workers=2)
    outcome.check_clean()
    return outcome


def arrived(outcome: Outcome, component: str) -> dict[int, Counter[str]]:
    """Per task of a component: the ids that it received, with how often."""
    return {
        report["task"]: Counter(report["ids"])
        for report in outcome.reports("got")
        if report["component"] == component
    }


def emitted_ids(outcome: Outcome, producers: str) -> set[str]:
    """Ids by their producer: "s" of the sources, "m" of the middles, "d" direct ones."""
    found = set()
    for report in outcome.reports("told"):
        for id_ in report["told"]:
            kind = id_[0] if id_[0] in "mdu" else "s"
            if kind in producers:
                found.add(id_)
    return found


def test_emit_returns_the_tasks_that_received_the_tuple(outcome: Outcome) -> None:
    receivers: defaultdict[str, list[int]] = defaultdict(list)
    for component in CONSUMERS:
        for task, ids in arrived(outcome, component).items():
            for id_ in ids.elements():
                receivers[id_].append(task)
    for report in outcome.reports("told"):
        for id_ in report["told"]:
            if id_.startswith("m"):  # made by a middle from the tuple that it received
                receivers[id_.removeprefix("m")].append(report["task"])
    told = {
        id_: sorted(tasks)
        for report in outcome.reports("told")
        for id_, tasks in report["told"].items()
    }
    assert {id_: sorted(tasks) for id_, tasks in receivers.items()} == {
        id_: tasks for id_, tasks in told.items() if tasks
    }
    assert all(not tasks for id_, tasks in told.items() if id_.startswith("u"))


def test_shuffle_is_even(outcome: Outcome) -> None:
    counts = [ids.total() for ids in arrived(outcome, "shuffle").values()]
    assert len(counts) == CONSUMERS["shuffle"]
    assert sum(counts) == 2 * 3 * TOTAL
    # At most one apart for each of the five producers.
    assert max(counts) - min(counts) <= 5


def test_fields_sends_a_key_to_one_task(outcome: Outcome) -> None:
    tasks: defaultdict[int, set[int]] = defaultdict(set)
    for task, ids in arrived(outcome, "fields").items():
        for id_ in ids:
            tasks[int(id_.rpartition("-")[2]) % 31].add(task)
    assert len(tasks) == 31
    assert {len(found) for found in tasks.values()} == {1}
    assert len(set.union(*tasks.values())) == CONSUMERS["fields"]


def test_all_reaches_every_task_once(outcome: Outcome) -> None:
    every = Counter(emitted_ids(outcome, "sm"))
    assert len(every) == 2 * 3 * TOTAL
    found = arrived(outcome, "all")
    assert len(found) == CONSUMERS["all"]
    assert all(ids == every for ids in found.values())


def test_global_reaches_the_lowest_task_only(outcome: Outcome) -> None:
    found = arrived(outcome, "global")
    assert found[min(found)] == Counter(emitted_ids(outcome, "sm"))
    assert sum(ids.total() for ids in found.values()) == found[min(found)].total()


def test_direct_reaches_the_named_task_only(outcome: Outcome) -> None:
    found = arrived(outcome, "direct")
    assert sum(found.values(), Counter()) == Counter(emitted_ids(outcome, "d"))
    assert {ids.total() for ids in found.values()} == {TOTAL}


def test_a_bolt_may_group_its_inputs_differently(outcome: Outcome) -> None:
    found = arrived(outcome, "mix")
    assert sum(found.values(), Counter()) == Counter(emitted_ids(outcome, "sm"))
    middles = [sum(ids[i] for i in ids if i.startswith("m")) for ids in found.values()]
    assert max(middles) - min(middles) <= 2


def port_of(outcome: Outcome) -> dict[int, int]:
    """The worker of each task, by its port."""
    reports = [*outcome.reports("got"), *outcome.reports("told")]
    return {report["task"]: report["port"] for report in reports}


def test_none_is_a_shuffle(outcome: Outcome) -> None:
    counts = [ids.total() for ids in arrived(outcome, "none").values()]
    assert len(counts) == CONSUMERS["none"]
    assert sum(counts) == 2 * 3 * TOTAL
    assert max(counts) - min(counts) <= 5


def test_local_or_shuffle_stays_in_its_worker_and_is_even_there(outcome: Outcome) -> None:
    port = port_of(outcome)
    found = arrived(outcome, "local")
    assert sorted(Counter(port[task] for task in found).values()) == [2, 2]
    assert sum(ids.total() for ids in found.values()) == 2 * 3 * TOTAL
    for report in outcome.reports("told"):
        own = Counter(
            task
            for id_, tasks in report["told"].items()
            if id_[0] not in "du"
            for task in tasks
            if task in found
        )
        assert {port[task] for task in own} == {report["port"]}
        assert len(own) == 2
        assert max(own.values()) - min(own.values()) <= 1


def test_local_or_shuffle_leaves_a_worker_without_tasks(outcome: Outcome) -> None:
    port = port_of(outcome)
    ((lone, ids),) = arrived(outcome, "lone").items()
    assert ids == Counter(emitted_ids(outcome, "sm"))
    producers = {port[report["task"]] for report in outcome.reports("told")}
    assert len(producers) == 2
    assert port[lone] in producers


def test_partial_key_sends_a_key_to_two_tasks_evenly(outcome: Outcome) -> None:
    tasks: defaultdict[int, Counter[int]] = defaultdict(Counter)
    found = arrived(outcome, "partial")
    for task, ids in found.items():
        for id_ in ids:
            tasks[int(id_.rpartition("-")[2]) % 31][task] += 1
    assert sum(found.values(), Counter()) == Counter(emitted_ids(outcome, "sm"))
    assert len(tasks) == 31
    # One of the two may always be the busier one, so a key need not use both.
    assert {len(counts) for counts in tasks.values()} in ({1, 2}, {2})
    totals = [ids.total() for ids in found.values()]
    assert len(totals) == CONSUMERS["partial"]
    # By the first of the two tasks alone, the busiest would get a third more than its share.
    assert max(totals) < 1.1 * sum(totals) / len(totals)


def test_custom_asks_a_copy_in_every_emitting_task(outcome: Outcome) -> None:
    found = arrived(outcome, "custom")
    tasks = sorted(found)
    prepared = outcome.reports("prepared")
    assert len(tasks) == CONSUMERS["custom"]
    assert all(report["tasks"] == tasks for report in prepared)
    streams = {"source": "source:default", "middle": "middle:default"}
    assert all(report["stream"] == streams[report["component"]] for report in prepared)
    producers = sorted((report["task"], report["pid"]) for report in outcome.reports("told"))
    assert sorted((report["task"], report["pid"]) for report in prepared) == producers
    for task, ids in found.items():
        for id_, count in ids.items():
            key = int(id_.rpartition("-")[2]) % 31
            assert count == 1
            assert key % 5
            assert task in (tasks[key % 4], tasks[(key + 1) % 4])
    expected = [id_ for id_ in emitted_ids(outcome, "sm") if int(id_.rpartition("-")[2]) % 31 % 5]
    assert sum(ids.total() for ids in found.values()) == 2 * len(expected)
