"""kill -9 of nimbus before and after each thing that it writes: its successor makes it whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import pytest

from storm_py.cluster.base import StateStorage
from storm_py.cluster.memory import MemoryStorage
from storm_py.cluster.storm_cluster_state import ClusterState
from storm_py.nimbus.blobstore import BlobStore
from storm_py.nimbus.handler import NimbusHandler
from storm_py.nimbus.orphans import Orphans
from storm_py.rpc.definitions import KillOptions, RebalanceOptions
from tests.real_nimbuses import Bench, make_archive, submit

WRITES: Final = frozenset({"create", "write", "delete", "hold", "put", "adopt"})


class Killed(BaseException):
    """The process is no more."""


class Life:
    """Counts what is written, and ends before or after one of it, for good."""

    def __init__(self, ends_at: int | None, after: bool) -> None:
        self.written: list[str] = []
        self._ends_at = ends_at
        self._after = after
        self._over = False

    def of(self, inner: object) -> Any:
        """The same, but for this life only."""
        return _Mortal(inner, self)

    def write(self, what: str, do: Callable[[], object]) -> object:
        if self._over:
            raise Killed
        ends = len(self.written) == self._ends_at
        self.written.append(what)
        self._over = ends
        if ends and not self._after:
            raise Killed
        result = do()
        if ends:
            raise Killed
        return result

    def read(self, do: Callable[[], object]) -> object:
        if self._over:
            raise Killed
        return do()


class _Mortal:
    def __init__(self, inner: object, life: Life) -> None:
        self._inner = inner
        self._life = life

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: object, **named: object) -> object:
            def do() -> object:
                return cast(object, found(*args, **named))

            mortal = name in WRITES or name.startswith("delete")
            return self._life.write(name, do) if mortal else self._life.read(do)

        return call


def live(bench: Bench, life: Life, archive: bytes) -> None:
    """All that a nimbus does for one topology, as long as it lives."""
    state = ClusterState(cast(StateStorage, life.of(bench.storage)))
    blobs = cast(BlobStore, life.of(bench.data.blobs))
    orphans = Orphans(blobs, bench.data.catalogue, 300.0)
    bench.data = replace(bench.data, state=state, blobs=blobs, orphans=orphans)
    bench.begin()
    nimbus = NimbusHandler(bench.data, bench)
    id_ = submit(nimbus, archive, conf={"topology.workers": 2})
    bench.tick()
    nimbus.rebalance("words", RebalanceOptions(wait_secs=0, num_executors={"count": 4}))
    bench.tick()
    assert len(assigned(bench, id_)) == 5
    nimbus.killTopologyWithOpts("words", KillOptions(wait_secs=0))
    bench.tick()
    bench.tick(1000)


def assigned(bench: Bench, topology_id: str) -> set[tuple[int, int]]:
    found = bench.state.assignment(topology_id)
    return set() if found is None else set(found.executor_node_port)


def fresh(folder: Path) -> Bench:
    bench = Bench(folder)
    bench.join()
    return bench


def nothing_is_left(bench: Bench) -> None:
    storage: MemoryStorage = bench.storage
    for parent in ("storms", "assignments", "registrations", "errors", "workerbeats", "logconfigs"):
        assert storage.children(f"/{parent}") == ()
    assert list((bench.folder / "blobs").iterdir()) == []


@pytest.fixture
def archive(tmp_path: Path) -> bytes:
    return make_archive(tmp_path)


def test_a_whole_life_leaves_nothing_behind(tmp_path: Path, archive: bytes) -> None:
    bench, life = fresh(tmp_path / "nimbus"), Life(None, after=False)
    live(bench, life, archive)
    nothing_is_left(bench)
    assert set(life.written) >= {"put", "adopt", "create", "write", "delete", "delete_topology"}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_successor_makes_it_whole(tmp_path: Path, archive: bytes, after: bool) -> None:
    whole = Life(None, after)
    live(fresh(tmp_path / "whole"), whole, archive)
    for i, what in enumerate(whole.written):
        bench = fresh(tmp_path / f"nimbus-{i}")
        with pytest.raises(Killed):
            live(bench, Life(i, after), archive)
        bench.succeed()
        bench.tick()
        bench.tick()
        found = bench.data.bases()
        for id_, base in found.items():
            assert bench.data.blobs.has_all(id_), (i, what)
            assert len(assigned(bench, id_)) == sum(base.component_executors.values()), (i, what)
            bench.nimbus.killTopologyWithOpts(base.name, KillOptions(wait_secs=0))
        bench.tick()
        bench.tick(1000)
        nothing_is_left(bench)
        assert bench.nimbus.isTopologyNameAllowed("words"), (i, what)
