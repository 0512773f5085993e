"""LeaderBlobs: blobs from the nimbus that leads, for the localizer; its `Blobs` over Thrift.

Another leader may come while a blob is read: it is asked for the same blob then, and what was
handed on already is skipped. That these are the same bytes is for the localizer's checksum to say.
Whatever else goes wrong is a BlobError: when to try again is the slot's business.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from storm_py.errors import BlobError, KeyNotFoundException, StormPyError
from storm_py.rpc.client import Patience, ThriftClient
from storm_py.rpc.interface import Nimbus

from .leader import Address

T = TypeVar("T")

#: A slot asks again after a while, so one attempt is enough; and a supervisor that is to stop does
#: not wait for a nimbus that does not answer.
PATIENCE = Patience(attempts=1, answer_secs=20.0)


class FindsLeader(Protocol):
    """Who knows the leader, as `storm_py.supervisor.leader.Leader`."""

    def address(self) -> Address:
        """Host and port; UnreachableError if there is none."""
        ...


class LeaderBlobs:
    """Implements `storm_py.supervisor.localizer.Blobs`; for any thread."""

    def __init__(self, leader: FindsLeader, patience: Patience = PATIENCE) -> None:
        self._leader = leader
        self._patience = patience

    def checksum(self, key: str) -> str:
        """sha256 of a blob; BlobError if it cannot be had."""
        [found] = self._from_leader(key, _checksum)
        return found

    def read(self, key: str) -> Iterator[bytes]:
        """The bytes of a blob; BlobError at any piece if it cannot be had."""
        done = 0

        def rest(nimbus: Nimbus, key: str) -> Iterator[bytes]:
            skip = done
            for chunk in _chunks(nimbus, key):
                yield chunk[skip:]
                skip = max(0, skip - len(chunk))

        for chunk in self._from_leader(key, rest):
            done += len(chunk)
            yield chunk

    def _from_leader(self, key: str, ask: Callable[[Nimbus, str], Iterator[T]]) -> Iterator[T]:
        """What one leader after the other answers, the first from the beginning."""
        asked: list[Address] = []
        failure: StormPyError | None = None
        while True:
            address = self._address(key, failure)
            if address in asked:
                assert failure is not None, "who was asked before has failed"
                raise BlobError(_unavailable(key, failure)) from failure
            asked.append(address)
            client = ThriftClient(*address, self._patience)
            with contextlib.closing(client):
                try:
                    yield from ask(client.nimbus, key)
                except BlobError:
                    raise
                except StormPyError as error:
                    failure = error
                else:
                    return

    def _address(self, key: str, failure: StormPyError | None) -> Address:
        try:
            return self._leader.address()
        except StormPyError as error:
            raise BlobError(_unavailable(key, failure or error)) from error


def _unavailable(key: str, error: StormPyError) -> str:
    if isinstance(error, KeyNotFoundException):
        return f"nimbus has no blob {key}: its topology is gone, or was not stored whole ({error})"
    return f"blob {key} cannot be had: {error}"


def _checksum(nimbus: Nimbus, key: str) -> Iterator[str]:
    found = nimbus.getBlobMeta(key).sha256
    if found is None:
        raise BlobError(
            f"nimbus does not say the sha256 of blob {key}: it is no storm-py, or an older one"
        )
    yield found


def _chunks(nimbus: Nimbus, key: str) -> Iterator[bytes]:
    session = nimbus.beginBlobDownload(key).session
    while chunk := nimbus.downloadBlobChunk(session):
        yield chunk
