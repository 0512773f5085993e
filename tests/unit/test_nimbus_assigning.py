"""Assignments: written only if they say something new, and only if they are whole."""

from __future__ import annotations

from dataclasses import replace

from storm_py.cluster.records import Assignment
from storm_py.nimbus.assigning import CodeOrigin, frozen, next_assignment, placed
from storm_py.nimbus.executors import ExecutorDetails
from storm_py.nimbus.scheduler import SchedulerAssignment, WorkerSlot, schedule

LINES = ExecutorDetails(1, 1, "lines")
COUNT = (ExecutorDetails(2, 3, "count"), ExecutorDetails(4, 5, "count"))
A, B = WorkerSlot("s1", 6700), WorkerSlot("s2", 6700)
HOSTS = {"s1": "here", "s2": "there"}
ORIGIN = CodeOrigin("alice", "/srv/blobs", "00ff")
TASKS = {"lines": range(1, 2), "count": range(2, 6)}


def found(
    where: dict[ExecutorDetails, WorkerSlot], *homeless: ExecutorDetails
) -> SchedulerAssignment:
    return SchedulerAssignment("words-1-1", where, homeless, 2)


def first() -> Assignment:
    made = next_assignment(None, found({LINES: A, COUNT[0]: A, COUNT[1]: B}), HOSTS, ORIGIN, 7)
    assert made is not None
    return made


def test_the_first_one() -> None:
    assert first() == Assignment(
        version=1,
        owner="alice",
        master_code_dir="/srv/blobs",
        code_checksum="00ff",
        node_host=HOSTS,
        executor_node_port={(1, 1): ("s1", 6700), (2, 3): ("s1", 6700), (4, 5): ("s2", 6700)},
        executor_start_time_secs={(1, 1): 7, (2, 3): 7, (4, 5): 7},
        worker_numbers={("s1", 6700): 1, ("s2", 6700): 2},
        next_worker_number=3,
    )


def test_nothing_new_is_nothing_to_write() -> None:
    again = found({LINES: A, COUNT[0]: A, COUNT[1]: B})
    assert next_assignment(first(), again, HOSTS, ORIGIN, 9) is None
    other = replace(ORIGIN, master_code_dir="/elsewhere")
    assert next_assignment(first(), again, HOSTS, other, 9) is None


def test_what_moves_starts_anew_and_the_rest_does_not() -> None:
    after = next_assignment(
        first(), found({LINES: A, COUNT[0]: A, COUNT[1]: A}), {"s1": "here"}, ORIGIN, 9
    )
    assert after == replace(
        first(),
        version=2,
        node_host={"s1": "here"},
        executor_node_port={(1, 1): ("s1", 6700), (2, 3): ("s1", 6700), (4, 5): ("s1", 6700)},
        executor_start_time_secs={(1, 1): 7, (2, 3): 7, (4, 5): 9},
        worker_numbers={("s1", 6700): 1},
    )


def test_a_host_that_is_gone_is_still_known_by_name() -> None:
    whole = ExecutorDetails(2, 5, "count")
    after = next_assignment(first(), found({LINES: A, whole: B}), {"s1": "here"}, ORIGIN, 9)
    assert after is not None
    assert after.node_host == HOSTS


def test_a_schedule_that_is_not_whole_is_not_written() -> None:
    assert next_assignment(first(), found({LINES: A}, *COUNT), HOSTS, ORIGIN, 9) is None
    assert next_assignment(None, found({}), HOSTS, ORIGIN, 9) is None


def test_what_is_stored_is_where_executors_are() -> None:
    assert placed(first(), TASKS) == {LINES: A, COUNT[0]: A, COUNT[1]: B}
    assert placed(None, TASKS) == {}


def test_a_topology_that_is_frozen_stays_without_supervisors() -> None:
    where = placed(first(), TASKS)
    details = frozen("words-1-1", where, 3)
    assert schedule([details], [])["words-1-1"].executor_to_slot == where
