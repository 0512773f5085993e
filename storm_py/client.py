"""NimbusClient: calls the nimbus that leads, wherever that is.

Several nimbuses may run, and one of them leads. Each host of nimbus.seeds is asked in turn, on
nimbus.thrift.port, until one says which; calls go to that one. While none leads, as during an
election, it asks again for some time. Nothing is asked twice behind a caller's back but that: a
call that fails may have been carried out, and what to do then is the caller's to know.

What a call is and how it travels is in `storm_py.rpc`. Daemons that have ZooKeeper find the leader
there, in `storm_py.cluster`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Self, TypeAlias, cast

from .config import Config
from .errors import (
    NoLeaderError,
    RemoteError,
    RpcError,
    StormPyError,
    UnansweredError,
    UnreachableError,
)
from .rpc.client import Patience, ThriftClient
from .rpc.connection import place
from .rpc.interface import Nimbus

__all__ = ["LEADER_SECS", "Address", "NimbusClient"]

#: Host and port.
Address: TypeAlias = tuple[str, int]

#: Time that an election may take before a client gives up, by default. It covers a nimbus that
#: starts; after one that died, ZooKeeper waits for its session first.
LEADER_SECS: Final = 10.0
_PAUSE_SECS: Final = 0.25
#: Longest wait for the answer to the question who leads: one that hangs must not keep a client
#: from the next.
_WHO_LEADS_SECS: Final = 10.0


class _Undecided(Exception):
    """A nimbus is there, and nobody leads, or nobody that can be reached; asking again may help."""


class NimbusClient:
    """Calls the leader; `seeds` are the addresses to ask, in this order.

    `on_wait` is told once, in words, if there is none yet; `leader_secs` is how long is waited.
    For one thread at a time.
    """

    def __init__(
        self,
        seeds: Sequence[Address],
        patience: Patience | None = None,
        *,
        leader_secs: float = LEADER_SECS,
        on_wait: Callable[[str], object] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seeds = tuple(seeds)
        self._patience = patience or Patience()
        answer_secs = min(self._patience.answer_secs, _WHO_LEADS_SECS)
        self._asking = replace(self._patience, answer_secs=answer_secs)
        self._leader_secs = leader_secs
        self._on_wait = on_wait
        self._clock = clock
        self._sleep = sleep
        self._client: ThriftClient | None = None
        self._leader: Address | None = None

    @classmethod
    def of(
        cls,
        conf: Mapping[str, Any],
        on_wait: Callable[[str], object],
        leader_secs: float = LEADER_SECS,
    ) -> Self:
        """A client for the cluster of a validated configuration with all defaults."""
        port = conf[Config.NIMBUS_THRIFT_PORT]
        seeds = [(host, port) for host in dict.fromkeys(conf[Config.NIMBUS_SEEDS])]
        return cls(seeds, Patience.of(conf), leader_secs=leader_secs, on_wait=on_wait)

    @property
    def nimbus(self) -> Nimbus:
        """The calls of the leader, as methods."""
        return cast(Nimbus, _Calls(self))

    @property
    def leader(self) -> Address | None:
        """Whom it calls; None before the first call."""
        return self._leader

    def connect(self) -> Self:
        """Find the leader and connect to it, if that has not been done.

        Raises UnreachableError if no nimbus can be reached, with why for each, NoLeaderError if
        none leads, and what a call raises besides.
        """
        self._connected()
        return self

    def call(self, name: str, *arguments: object, **named: object) -> object:
        """Make one call and give its result; raises what `connect` and `ThriftClient.call` raise.

        A NoLeaderError also says that another one leads by now, and why this one did not answer.
        """
        client = self._connected()
        try:
            return client.call(name, *arguments, **named)
        except RemoteError as error:
            before, now = self._leader, self._leader_by(client)
            if before is None or now is None or now == before:
                raise
            self.close()
            raise NoLeaderError(
                f"{error}; it was the leader, and {place(*now)} is by now: look what has become "
                "of it, and try again"
            ) from error

    def check(self, name: str, *arguments: object) -> None:
        """Raise what `call` would raise of these arguments alone, and send nothing."""
        self._connected().check(name, *arguments)

    def close(self) -> None:
        """Close the connection; the next call looks for the leader again."""
        client, self._client, self._leader = self._client, None, None
        if client is not None:
            client.close()

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> ThriftClient:
        if self._client is None:
            self._client, self._leader = self._find()
        return self._client

    def _find(self) -> tuple[ThriftClient, Address]:
        deadline = self._clock() + self._leader_secs
        told = False
        while True:
            undecided, failures = False, []
            for seed in self._seeds:
                try:
                    return self._ask(seed)
                except _Undecided as error:
                    undecided = True
                    failures.append(str(error))
                except RpcError as error:
                    failures.append(str(error))
            if not undecided:
                raise UnreachableError(_unreachable(failures))
            if self._clock() >= deadline:
                raise NoLeaderError(_no_leader(failures, self._leader_secs))
            if not told:
                told = True
                self._on_wait("no nimbus leads yet; waiting for one")
            self._sleep(_PAUSE_SECS)

    def _ask(self, seed: Address) -> tuple[ThriftClient, Address]:
        """Ask one nimbus who leads, and connect to that."""
        with contextlib.closing(ThriftClient(*seed, self._asking)) as asked:
            try:
                summary = asked.nimbus.getLeader()
            except RemoteError as error:
                raise _Undecided(str(error)) from error
            except UnansweredError as error:
                raise _Undecided(_silent(seed, error, self._asking.answer_secs)) from error
        leader = (summary.host, summary.port)
        client = ThriftClient(*leader, self._patience)
        try:
            return client.connect(), leader
        except UnreachableError as error:
            raise _Undecided(_stale(seed, leader, error)) from error

    def _leader_by(self, client: ThriftClient) -> Address | None:
        """Who leads, as the one at the end of this connection knows; None if it does not."""
        try:
            summary = client.nimbus.getLeader()
        except StormPyError:  # the error of the call itself is what counts
            return None
        return summary.host, summary.port


class _Calls:
    """The calls of a client as methods; `NimbusClient.nimbus` gives it a type."""

    def __init__(self, client: NimbusClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., object]:
        return partial(self._client.call, name)


def _unreachable(failures: Sequence[str]) -> str:
    return "\n".join(
        [
            "no nimbus can be reached; asked was each host of nimbus.seeds:",
            *(f"  {failure}" for failure in failures),
            "Start a cluster on this machine with `storm-py cluster`, or name that of another one "
            "by nimbus.seeds and nimbus.thrift.port, in storm.yaml or with -c",
        ]
    )


def _no_leader(failures: Sequence[str], secs: float) -> str:
    return "\n".join(
        [
            f"no nimbus leads, not after {secs:g} s of waiting either:",
            *(f"  {failure}" for failure in failures),
            "After the death of a leader it takes storm.zookeeper.session.timeout until another "
            "one leads; if this lasts, see whether ZooKeeper runs, and what nimbus logs",
        ]
    )


def _silent(seed: Address, error: UnansweredError, secs: float) -> str:
    if isinstance(error.__cause__, TimeoutError):
        return (
            f"{place(*seed)} is there, but did not say within {secs:g} s who leads: it may wait "
            "for ZooKeeper"
        )
    return f"{place(*seed)} hung up when it was asked who leads"


def _stale(seed: Address, leader: Address, error: UnreachableError) -> str:
    hint = ""
    if leader[0] in ("localhost", "127.0.0.1") and seed[0] not in ("localhost", "127.0.0.1"):
        hint = "; that names this machine: set storm.local.hostname where that nimbus runs"
    return f"{place(*seed)} says that {place(*leader)} leads, but {error}{hint}"
