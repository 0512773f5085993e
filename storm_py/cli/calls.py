"""Calls of nimbus as commands make them: what it refuses becomes one message and an exit code.

Who leads is found in `storm_py.client`; what is printed of an answer is the commands'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from storm_py.errors import (
    AlreadyAliveException,
    AuthorizationException,
    InvalidTopologyException,
    KeyAlreadyExistsException,
    KeyNotFoundException,
    NoLeaderError,
    NotAliveException,
    RemoteError,
    StormPyError,
    did_you_mean,
)

from .exits import ClusterRefused

if TYPE_CHECKING:  # slow to import
    from storm_py.client import NimbusClient
    from storm_py.rpc.interface import Nimbus

__all__ = ["connection", "nimbus_of", "no_such_topology", "note", "refusals"]

_REFUSALS = (
    AlreadyAliveException,
    AuthorizationException,
    InvalidTopologyException,
    KeyAlreadyExistsException,
    KeyNotFoundException,
    NoLeaderError,
    NotAliveException,
    RemoteError,
)


def note(text: str) -> None:
    """Say something on stderr, where it is in the way of no output."""
    click.echo(f"storm-py: {text}", err=True)


def connection(conf: Mapping[str, Any]) -> NimbusClient:
    """A client for the leader of a cluster, not connected yet; to be closed."""
    from storm_py.client import LEADER_SECS, NimbusClient

    return NimbusClient.of(conf, note, LEADER_SECS)


@contextmanager
def nimbus_of(conf: Mapping[str, Any], name: str | None = None) -> Iterator[Nimbus]:
    """The calls of the leader; what it refuses is raised as ClusterRefused.

    `name` is the topology that the calls are about.
    """
    with closing(connection(conf)) as client, refusals(client, name):
        yield client.nimbus


@contextmanager
def refusals(client: NimbusClient, name: str | None = None) -> Iterator[None]:
    """Raise as ClusterRefused what nimbus answers instead of a result."""
    try:
        yield
    except NotAliveException as error:
        raise ClusterRefused(str(error) if name is None else _no_such(client, name)) from error
    except _REFUSALS as error:
        raise ClusterRefused(str(error)) from error


def _no_such(client: NimbusClient, name: str) -> str:
    try:
        names = sorted(summary.name for summary in client.nimbus.getTopologySummaries())
    except StormPyError:  # what was asked for is answered all the same
        return f"no topology {name!r} runs"
    return no_such_topology(name, names)


def no_such_topology(name: str, names: Sequence[str]) -> str:
    """The sentence for a name that no topology has; `names` are those that run."""
    if not names:
        return f"no topology {name!r} runs, nor does any other; see `storm-py submit --help`"
    return f"no topology {name!r} runs, but {', '.join(names)}{did_you_mean(name, names)}"
