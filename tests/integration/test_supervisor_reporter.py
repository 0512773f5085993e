"""The thread of a supervisor that tells nimbus of its workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from storm_py.errors import NotALeader, UnreachableError
from storm_py.rpc.definitions import SupervisorWorkerHeartbeats
from storm_py.rpc.server import ThriftServer
from storm_py.supervisor.heartbeats import NimbusReporter, SupervisorReport
from tests.helpers import wait_until
from tests.rpc import TIMEOUT_SECS, Handler

REPORT = SupervisorReport("s1", "here", (6700,), (), 1001, 60, "0.1", ())


class Leaders:
    """Knows the leader, or does not."""

    def __init__(self) -> None:
        self.found: tuple[str, int] | None = None
        self.asked = 0

    def address(self) -> tuple[str, int]:
        self.asked += 1
        if self.found is None:
            raise UnreachableError("no nimbus leads")
        return self.found

    def wait_for(self, asked: int) -> None:
        wait_until(lambda: self.asked >= asked, TIMEOUT_SECS, f"asked {asked} times")


class Errors:
    """What a thread ended by."""

    def __init__(self) -> None:
        self.found: list[BaseException] = []


@pytest.fixture
def leaders() -> Leaders:
    return Leaders()


@pytest.fixture
def errors() -> Errors:
    return Errors()


@pytest.fixture
def reporter(leaders: Leaders, errors: Errors) -> Iterator[NimbusReporter]:
    reporter = NimbusReporter(leaders, errors.found.append)
    reporter.start()
    yield reporter
    reporter.close()


class Nimbus:
    """One that takes heartbeats."""

    def __init__(self) -> None:
        self.leads = True
        self.refused = 0
        self.heartbeats: list[SupervisorWorkerHeartbeats] = []
        self.server = ThriftServer(Handler(sendSupervisorWorkerHeartbeats=self._hear))

    def _hear(self, heartbeats: SupervisorWorkerHeartbeats) -> None:
        if not self.leads:
            self.refused += 1
            raise NotALeader("another one leads")
        self.heartbeats.append(heartbeats)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.heartbeats) >= count, TIMEOUT_SECS, f"{count} heartbeats")


def test_a_nimbus_that_is_away_is_told_of_once_and_so_is_its_return(
    leaders: Leaders, reporter: NimbusReporter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "storm_py.supervisor")
    for asked in (1, 2, 3):
        reporter.report(REPORT)
        leaders.wait_for(asked)
    nimbus = Nimbus()
    with nimbus.server:
        leaders.found = nimbus.server.address
        reporter.report(REPORT)
        nimbus.wait_for(1)
        reporter.report(REPORT)
        nimbus.wait_for(2)
    assert [record.getMessage() for record in caplog.records] == [
        "nimbus gets no heartbeats of workers: no nimbus leads; workers go on",
        "nimbus gets heartbeats of workers again",
    ]
    assert {record.levelname for record in caplog.records} == {"INFO"}


def test_reports_go_to_whoever_leads(leaders: Leaders, reporter: NimbusReporter) -> None:
    one, two = Nimbus(), Nimbus()
    with one.server, two.server:
        leaders.found = one.server.address
        reporter.report(REPORT)
        one.wait_for(1)
        one.leads = False
        leaders.found = two.server.address
        reporter.report(REPORT)
        wait_until(lambda: one.refused, TIMEOUT_SECS, "it is refused")
        # Which is of no use later: the next report goes to the other one.
        reporter.report(REPORT)
        two.wait_for(1)
    assert (len(one.heartbeats), one.refused, leaders.asked) == (1, 1, 2)


def test_zookeeper_is_asked_for_the_leader_only_if_that_does_not_answer(
    leaders: Leaders, reporter: NimbusReporter
) -> None:
    nimbus = Nimbus()
    with nimbus.server:
        leaders.found = nimbus.server.address
        for count in (1, 2, 3):
            reporter.report(REPORT)
            nimbus.wait_for(count)
    assert leaders.asked == 1


def test_an_error_of_ours_is_not_taken_for_one_of_nimbus(
    leaders: Leaders, errors: Errors, reporter: NimbusReporter
) -> None:
    leaders.found = ("127.0.0.1", 1, 2)  # type: ignore[assignment]
    reporter.report(REPORT)
    wait_until(lambda: errors.found, TIMEOUT_SECS)
    assert [type(error) for error in errors.found] == [TypeError]
