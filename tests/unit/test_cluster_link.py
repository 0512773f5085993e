"""What a worker reads of its cluster and writes there, on a storage in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from storm_py.cluster.memory import MemoryCluster
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.runtime.cluster_link import ClusterLink

ID = "words-1-1"


class Defective(ClusterState):
    """One with a mistake in it."""

    def wave(self, storm_id: str) -> int:
        raise ZeroDivisionError(storm_id)


@pytest.fixture
def woken() -> threading.Event:
    return threading.Event()


@pytest.fixture
def defective(woken: threading.Event) -> Iterator[ClusterLink]:
    storage = MemoryCluster().storage()
    storage.start()
    link = ClusterLink(Defective(storage), ID, 1, woken.set)
    yield link
    link.close(60)
    storage.close()


def test_a_link_that_failed_fails_whoever_listens(
    defective: ClusterLink, woken: threading.Event
) -> None:
    def take_all() -> None:
        while woken.wait(60):
            woken.clear()
            while defective.take() is not None:
                pass

    defective.start()
    with pytest.raises(ZeroDivisionError, match=f"^{ID}$"):
        take_all()
