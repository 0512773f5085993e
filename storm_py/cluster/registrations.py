"""Registrations: how the workers of a topology find each other, and know that its input has ended.

A part of `ClusterState`, whose words on errors hold here. Storm has no such nodes: its workers are
told by nimbus where others are.
"""

from __future__ import annotations

from storm_py.errors import NodeExists, NoNode, VersionMismatch

from . import paths
from .base import Cancel, Node, Watcher
from .records import TopologyWave, WorkerRegistration
from .stored import Stored


class Registrations(Stored):
    """The registrations of all topologies' workers."""

    def setup_registrations(self, storm_id: str) -> None:
        """Have a place for the registrations of a topology's workers."""
        self._ensure(paths.storm_registrations(storm_id))

    def teardown_registrations(self, storm_id: str) -> None:
        """Remove them all."""
        self._storage.delete(paths.storm_registrations(storm_id))

    def registration_storms(self) -> tuple[str, ...]:
        """The ids of topologies that have such a place."""
        return self._storage.children(paths.REGISTRATIONS)

    def claim_worker(self, storm_id: str, worker: int) -> int:
        """This process is that worker from now on; its incarnation, above all earlier ones.

        NoNode if there is no place for it: the topology is gone.
        """
        path = paths.registration(storm_id, worker)
        while True:
            node = self._storage.read(path)
            found = None if node is None else WorkerRegistration.from_bytes(node.data, path)
            incarnation = 1 if found is None else found.incarnation + 1
            manager = 0 if found is None else found.stream_manager_incarnation
            ours = WorkerRegistration(worker, incarnation, manager).to_bytes()
            try:
                if node is not None:
                    self._storage.write(path, ours, node.version)
                elif self._storage.read(paths.storm_registrations(storm_id)) is None:
                    raise NoNode(f"{path} cannot be: there is no topology {storm_id}")
                else:
                    self._storage.create(path, ours)
            except (NodeExists, VersionMismatch):
                continue
            return incarnation

    def register(self, storm_id: str, registration: WorkerRegistration) -> bool:
        """Write a registration, unless it is of an older incarnation; whether it was written.

        NoNode if this worker was never claimed, or its topology is gone.
        """
        path = paths.registration(storm_id, registration.worker)
        while True:
            node = self._storage.read(path)
            if node is None:
                raise NoNode(f"{path} does not exist: there is no topology {storm_id}")
            found = WorkerRegistration.from_bytes(node.data, path)
            if found.incarnation > registration.incarnation:
                return False
            try:
                self._storage.write(path, registration.to_bytes(), node.version)
            except VersionMismatch:
                continue
            return True

    def registered_workers(self, storm_id: str) -> tuple[int, ...]:
        """The numbers of all workers that have registered."""
        names = self._storage.children(paths.storm_registrations(storm_id))
        return tuple(sorted(int(name) for name in names if name.isdecimal()))

    def registration(self, storm_id: str, worker: int) -> WorkerRegistration | None:
        """The registration of a worker."""
        return self._get(WorkerRegistration, paths.registration(storm_id, worker))

    def remove_registration(self, storm_id: str, worker: int) -> None:
        """That worker is no more, and none of its number will be."""
        self._storage.delete(paths.registration(storm_id, worker))

    def watch_registration(self, storm_id: str, worker: int, watcher: Watcher) -> Cancel:
        """Tell of changes of the registration of a worker."""
        return self._storage.watch(paths.registration(storm_id, worker), watcher)

    def wave(self, storm_id: str) -> int:
        """The number of the END wave of a topology, which begins with 1."""
        node = self._storage.read(paths.storm_registrations(storm_id))
        return 1 if node is None else self._wave_of(node, storm_id)

    def renew_wave(self, storm_id: str) -> int:
        """Raise that number by one; NoNode if the topology is gone."""
        path = paths.storm_registrations(storm_id)
        while True:
            node = self._storage.read(path)
            if node is None:
                raise NoNode(f"{path} does not exist: there is no topology {storm_id}")
            wave = self._wave_of(node, storm_id) + 1
            try:
                self._storage.write(path, TopologyWave(wave).to_bytes(), node.version)
            except VersionMismatch:
                continue
            return wave

    def watch_wave(self, storm_id: str, watcher: Watcher) -> Cancel:
        """Tell of changes of that number."""
        return self._storage.watch(paths.storm_registrations(storm_id), watcher)

    def _wave_of(self, node: Node, storm_id: str) -> int:
        path = paths.storm_registrations(storm_id)
        return TopologyWave.from_bytes(node.data, path).wave if node.data else 1
