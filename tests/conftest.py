"""Fixtures for every test: nothing is left behind, stacks of crashes are shown, examples repeat."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Iterator

import hypothesis
import psutil
import pytest

from tests import variants
from tests.helpers import (
    MARKER_VARIABLE,
    describe_process,
    end_process,
    processes_since,
    remaining,
    threads_since,
)

pytest_plugins = ["tests.mistakes", "tests.fake_nimbus", "tests.projects", "tests.zookeepers"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """One more option, which says how topologies over processes are run."""
    parser.addoption(
        "--variant",
        choices=list(variants.VARIANTS),
        default=variants.AS_WRITTEN.name,
        help="run the topologies of integration tests in this way",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Heed it."""
    variants.choose(config.getoption("variant"))


def pytest_report_header() -> str:
    """Say it."""
    return f"variant: {variants.chosen().name}"


LEAK_TIMEOUT_SECS = 5.0
"""How long what a test stopped may take to be gone: the kernel and joined threads need a moment."""

# No deadline per example: a slow machine is not a bug, and no test asserts a duration.
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def run_marker() -> Iterator[str]:
    """Marks the environment of all processes of this run, which dump their stacks on a crash."""
    marker = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARKER_VARIABLE, marker)
        patch.setenv("PYTHONFAULTHANDLER", "1")
        yield marker


@pytest.fixture(autouse=True)
def no_leaked_process(run_marker: str) -> Iterator[None]:
    """Fail a test that leaves a process behind, and end that process for the sake of the next test.

    What a fixture of a wider scope has started is there before and is not counted.
    """
    before = set(psutil.pids())
    yield
    left = remaining(lambda: processes_since(before, run_marker), LEAK_TIMEOUT_SECS)
    descriptions = [describe_process(process) for process in left]
    for process in left:
        end_process(process)
    if left:
        pytest.fail("left behind by this test: " + "; ".join(descriptions), pytrace=False)


@pytest.fixture(autouse=True)
def no_leaked_thread() -> Iterator[None]:
    """Fail a test that leaves a running thread behind."""
    before = set(threading.enumerate())
    yield
    left = remaining(lambda: threads_since(before), LEAK_TIMEOUT_SECS)
    if left:
        pytest.fail(f"threads left behind by this test: {left}", pytrace=False)
