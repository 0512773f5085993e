"""Every exception that storm-py raises on purpose, as one tree.

::

    StormPyError
    +-- InvalidTopologyException        user code: the topology that was built cannot run
    +-- ConfigError                     configuration: a key or a value is not acceptable
    +-- TopologyLoadError               user code or command line: TOPOLOGY cannot be loaded
    +-- PackingError                    the user's project: it cannot be packed for the cluster
    +-- BlobError                       cluster or our bug: what is stored of a topology is broken
    +-- EmitError                       user code: an emit that can never be delivered
    +-- FailedException                 user code asks for its tuple to be failed
    |   +-- ReportedFailedException     ... and for the failure to be reported as well
    +-- InvalidTransition               user: an event that something is in no state for
    +-- AlreadyAliveException           user: the name of a topology is taken
    +-- NotAliveException               user: there is no such topology
    +-- NotALeader                      cluster: this nimbus does not lead, another one may
    +-- AuthorizationException          user or configuration: this is not allowed to them
    +-- KeyNotFoundException            user or cluster: there is no blob of this key
    +-- KeyAlreadyExistsException       user or cluster: there is a blob of this key
    +-- RpcError                        cluster: a server that cannot listen, a call that failed...
    |   +-- UnreachableError            ... before it was sent: nobody answers at the address
    |   +-- UnansweredError             ... without an answer: it may have been carried out
    |   +-- RemoteError                 ... at the other side, which says why
    |   +-- NoLeaderError               ... as no nimbus leads, or another one by now
    +-- LocalStateError                 machine: what a supervisor kept on its disk is broken
    +-- ProtocolError                   cluster or our bug: bytes that break the wire format
    +-- TopologyFailed                  the outcome: a run ended with a failure
    +-- ClusterStateError               cluster: the shared state refuses an operation
    |   +-- ConnectionLost              ... as there is no connection to it
    |   +-- NodeExists                  ... as the node is there already
    |   +-- NoNode                      ... as the node is not there
    |   +-- VersionMismatch             ... as somebody else was faster
    |   +-- InvalidRecord               ... as a node does not hold what it should
    +-- ClusterFailed                   machine: a cluster of one machine cannot start, or live
    +-- JavaNotFound                    machine: there is no Java that is new enough
    +-- ZooKeeperFailed                 machine: a ZooKeeper of our own cannot be started

The words to the right say who has to act. This module imports nothing of storm-py, holds no
behaviour beyond wording, and is the only place where exception classes are defined.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AlreadyAliveException",
    "AuthorizationException",
    "BlobError",
    "ClusterFailed",
    "ClusterStateError",
    "ConfigError",
    "ConnectionLost",
    "EmitError",
    "FailedException",
    "InvalidRecord",
    "InvalidTopologyException",
    "InvalidTransition",
    "JavaNotFound",
    "KeyAlreadyExistsException",
    "KeyNotFoundException",
    "LocalStateError",
    "NoLeaderError",
    "NoNode",
    "NodeExists",
    "NotALeader",
    "NotAliveException",
    "PackingError",
    "ProtocolError",
    "RemoteError",
    "ReportedFailedException",
    "RpcError",
    "StormPyError",
    "TopologyFailed",
    "TopologyLoadError",
    "UnansweredError",
    "UnreachableError",
    "VersionMismatch",
    "ZooKeeperFailed",
    "a_type",
    "did_you_mean",
    "nearest",
]


class StormPyError(Exception):
    """Raised when storm-py refuses or fails something; catch it to catch all of its errors."""


class InvalidTopologyException(StormPyError):
    """Raised when a topology is built or checked and its parts do not fit together (as in Storm).

    It surfaces before any process starts: from a declarer call where the mistake is visible there,
    otherwise from ``TopologyBuilder.create_topology``.
    """


class ConfigError(StormPyError):
    """Raised when a configuration key is unknown or its value is not of the documented kind."""


class TopologyLoadError(StormPyError):
    """Raised when the TOPOLOGY of a command line cannot be turned into a topology."""


class PackingError(StormPyError):
    """Raised when the project of a topology cannot be packed into an archive for the cluster."""


class BlobError(StormPyError):
    """Raised when a topology's archive, code or configuration cannot be had, or is not what it was.

    It is cut off, changed, too large, of another format, or nothing of that kind at all.
    """


class EmitError(StormPyError):
    """Raised when an emit names an undeclared stream, has the wrong width or cannot be serialised.

    Breaking the rules of direct streams, emitting after the end of input and a custom grouping that
    raises or chooses what is no task of its bolt belong here too. It is raised inside the user's
    own call, so that the traceback shows the guilty line.
    """


class FailedException(StormPyError):
    """Raised when user code, inside a basic bolt, wants the current tuple to be failed.

    Storm's name and meaning: the tuple fails and its spout may replay it; the process lives on.
    Any other exception ends the executor.
    """


class ReportedFailedException(FailedException):
    """Raised when user code wants the current tuple failed and the reason reported as an error."""


class InvalidTransition(StormPyError):
    """Raised when an event reaches what is in no state for it.

    The message says which event and which state, what to do, and what happened before.
    """


class AlreadyAliveException(StormPyError):
    """Raised when a topology is submitted under a name that another one has (as in Storm)."""


class NotAliveException(StormPyError):
    """Raised when a call is about a topology that does not run (as in Storm)."""


class NotALeader(StormPyError):
    """Raised when a nimbus is asked for what only a leader does; its message names the leader."""


class AuthorizationException(StormPyError):
    """Raised when who calls may not do that (as in Storm)."""


class KeyNotFoundException(StormPyError):
    """Raised when a call is about a blob that is not there (as in Storm)."""


class KeyAlreadyExistsException(StormPyError):
    """Raised when a blob is to be made that is there already (as in Storm)."""


class RpcError(StormPyError):
    """Raised when a call to another process fails, or a server for such calls cannot listen."""


class UnreachableError(RpcError):
    """Raised when no server can be reached at an address: the call has not been made."""


class UnansweredError(RpcError):
    """Raised when a call was made and no answer came: nobody knows whether it was carried out."""


class RemoteError(RpcError):
    """Raised when the server could not carry out a call; its message says why.

    ``kind`` is Thrift's word: UNKNOWN_METHOD, INTERNAL_ERROR, PROTOCOL_ERROR and so on.
    """

    def __init__(self, message: str, kind: str = "UNKNOWN") -> None:
        super().__init__(message)
        self.kind = kind


class NoLeaderError(RpcError):
    """Raised when no nimbus leads, or another one than the one that was called."""


class LocalStateError(StormPyError):
    """Raised when the file in which a supervisor keeps what it knows cannot be read."""


class ProtocolError(StormPyError):
    """Raised when bytes that arrive on a wire are malformed, truncated, oversize or unknown."""


class TopologyFailed(StormPyError):
    """Raised when a run ends with a failure: a component kept dying or a result was lost."""


class ClusterStateError(StormPyError):
    """Raised when what all processes of a cluster share, in ZooKeeper, refuses an operation."""


class ConnectionLost(ClusterStateError):
    """Raised when an operation found no connection, or lost it: it may or may not have been done.

    A state more than a fault: who cannot go on without tries again once there is a connection.
    """


class NodeExists(ClusterStateError):
    """Raised when a node is to be created and is there already."""


class NoNode(ClusterStateError):
    """Raised when a node is to be changed and is not there."""


class VersionMismatch(ClusterStateError):
    """Raised when a node was changed by somebody else since it was read."""


class InvalidRecord(ClusterStateError):
    """Raised when the bytes of a node are not those of the record that belongs there."""


class ClusterFailed(StormPyError):
    """Raised when a cluster of one machine cannot be started, or one of its daemons keeps dying."""


class JavaNotFound(StormPyError):
    """Raised when a program in Java is needed and no Java that can run it is found."""


class ZooKeeperFailed(StormPyError):
    """Raised when a ZooKeeper that is to be started on this machine does not come up."""


def a_type(value: object) -> str:
    """Name the kind of ``value`` for a message: ``an int``, ``the class Split`` or ``None``."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeioAEIO' else 'a'} {name}"


def nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name most like ``name`` but not equal to it, None if none is close.

    ``cutoff`` is difflib's ratio from 0 to 1; comparison ignores case.
    """
    if not isinstance(name, str):
        return None
    by_folded = {candidate.casefold(): candidate for candidate in known if candidate != name}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[close[0]] if close else None


def did_you_mean(name: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``"; did you mean 'x'?"`` for the ``nearest`` name, to end a message, or ``""``."""
    near = nearest(name, known, cutoff)
    return "" if near is None else f"; did you mean {near!r}?"
