"""How many clients a nimbus serves, by the files that it may open."""

from __future__ import annotations

import resource
from dataclasses import dataclass

import pytest

from storm_py.config import configuration
from storm_py.nimbus import main
from storm_py.rpc.limits import Limits


@dataclass
class Files:
    """The limits of a process."""

    soft: int
    hard: int

    def get(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        return self.soft, self.hard

    def set(self, which: int, limits: tuple[int, int]) -> None:
        assert which == resource.RLIMIT_NOFILE
        self.soft, self.hard = limits


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Files:
    files = Files(1024, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", files.get)
    monkeypatch.setattr(resource, "setrlimit", files.set)
    return files


@pytest.mark.parametrize("hard", [resource.RLIM_INFINITY, 4096])
def test_it_may_open_as_many_as_it_needs(files: Files, hard: int) -> None:
    files.hard = hard
    assert main._limits(configuration(None, {})).connections == Limits().connections
    assert (files.soft, files.hard) == (1472, hard)


def test_enough_is_left_as_it_is(files: Files) -> None:
    files.soft = 5000
    assert main._limits(configuration(None, {})) == Limits.of(configuration(None, {}))
    assert files.soft == 5000


@pytest.mark.parametrize(("hard", "served"), [(1024, 576), (1471, 1023), (256, 64)])
def test_with_fewer_it_serves_fewer(
    files: Files, hard: int, served: int, caplog: pytest.LogCaptureFixture
) -> None:
    files.soft = files.hard = hard
    assert main._limits(configuration(None, {})).connections == served
    assert caplog.messages == [f"at most {hard} files may be open: {served} connections are served"]
