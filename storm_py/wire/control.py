"""Control messages: small records on sockets of their own, so that they never queue behind data.

Two families share one encoding (a msgpack array: code, then the fields in order):

- on the *links* between an instance and its stream manager, and between stream managers: Hello,
  Credit, Pressure, Grant, FailPending. They travel inside a message header, so that session and
  sequence are checked;
- on the worker's control channel and between `storm-py local` and its workers: everything else.

Pure: bytes in, frozen records out; any bytes give a record or a `ProtocolError`. Who reacts to
which record is said in `storm_py.engine` (links) and `storm_py.runtime` (channel).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, TypeVar, get_type_hints

import msgpack

from storm_py.errors import ProtocolError

# ---- links -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    """First message of a session: who speaks, for which topology and assignment.

    `tasks` are the tasks the speaker hosts (empty for a stream manager), `incarnation` counts the
    starts of the speaker, `assignment_version` lets the receiver refuse an owner of yesterday.
    """

    peer: str
    topology_id: str
    incarnation: int
    assignment_version: int
    tasks: list[int]


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer to a Hello: `session` may send data from now on."""

    session: int


@dataclass(frozen=True, slots=True)
class Credit:
    """What a task has taken and finished since the session began (rows, bytes: cumulative).

    `seq` is the last data message that the sender's session sent before: the outputs and acks of
    what is credited are in there, and data travels on another socket. Until it has arrived the
    credit does not count, or a death in between would lose trees that nobody fails.

    `busy_us` are the microseconds since the session began in which its process had something to do,
    or could not go on because of others downstream; 0 where that is not known.
    """

    task: int
    rows: int
    bytes: int
    seq: int = 0
    busy_us: int = 0


@dataclass(frozen=True, slots=True)
class Pressure:
    """Task `task` cannot (`on`) or can again (not `on`) take more.

    `frame_rows` is the largest frame, in rows, that senders should make for it.
    """

    task: int
    on: bool
    frame_rows: int


@dataclass(frozen=True, slots=True)
class Grant:
    """The receiver may send `rows` rows to task `task`, and then has to wait for the next word.

    What it may have been granted before is void. Pressure off lifts the limit. `frame_rows` is the
    largest frame, in rows, that senders should make of what one call of user code emits beyond it.
    """

    task: int
    rows: int
    frame_rows: int


@dataclass(frozen=True, slots=True)
class FailPending:
    """Messages are lost, nobody knows which: spouts fail all that is pending."""


@dataclass(frozen=True, slots=True)
class LinkBroken:
    """A message of `session` is missing: the sender must open a new session."""

    session: int


# ---- worker channel ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Register:
    """A process of the worker is up: role (instance, stream-manager), where its sockets are."""

    role: str
    executor: int
    incarnation: int
    pid: int
    data: str
    control: str
    tcp_data: str
    tcp_control: str


@dataclass(frozen=True, slots=True)
class Connect:
    """Order to connect to a peer's sockets; replaces the link to an earlier incarnation of it."""

    peer: str
    incarnation: int
    data: str
    control: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Order to close the link to a dead peer and forget what was on its way."""

    peer: str
    incarnation: int


@dataclass(frozen=True, slots=True)
class Ready:
    """The executor's components are open and its link to the stream manager is up."""

    executor: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Activate:
    """Spouts may call next_tuple."""


@dataclass(frozen=True, slots=True)
class Deactivate:
    """Spouts must not call next_tuple until the next Activate."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Ended spouts send the END wave `wave`; with `drain` every spout ends where it is."""

    wave: int
    drain: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """All tasks of the executor have ended under END wave `wave`."""

    executor: int
    incarnation: int
    wave: int
    failed: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """Close the components and leave; the end of an orderly run."""


@dataclass(frozen=True, slots=True)
class Replan:
    """Order to go on under another version of the plan, which lies in the run folder.

    A stream manager does so as its own successor of this incarnation; for an instance that is 0.
    """

    version: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class LogLevels:
    """The levels of loggers that differ from those of the start, as JSON: {logger: level}.

    Those that the last such order named and this one does not are as at the start again.
    """

    levels: str


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """An exception of user code, or one that ended a process."""

    component: str
    task: int
    where: str
    message: str
    traceback: str
    fatal: bool


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A log record of WARNING or above, for the terminal of `storm-py local`."""

    level: int
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class WorkerUp:
    """A worker's stream manager listens: its address for the stream managers of other workers."""

    worker: int
    incarnation: int
    pid: int
    tcp_data: str
    tcp_control: str
    stream_manager_incarnation: int


@dataclass(frozen=True, slots=True)
class StreamManagerDown:
    """A worker's stream manager died; its successor is announced by the next WorkerUp."""

    worker: int
    incarnation: int
    stream_manager_incarnation: int


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """All executors of the worker are ready."""

    worker: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Restarted:
    """A process of the worker died and was started again."""

    worker: int
    role: str
    executor: int
    incarnation: int
    reason: str


@dataclass(frozen=True, slots=True)
class ExecutorStats:
    """Counters of one executor since its start, in one record per report."""

    executor: int
    incarnation: int
    executed: int
    emitted: int
    transferred: int
    acked: int
    failed: int
    queued: int
    pid: int


@dataclass(frozen=True, slots=True)
class QueueStats:
    """Rows waiting in a stream manager for each of its tasks, in parallel lists."""

    tasks: list[int]
    rows: list[int]


Control = (
    Hello
    | Welcome
    | Credit
    | Pressure
    | Grant
    | FailPending
    | LinkBroken
    | Register
    | Connect
    | Disconnect
    | Ready
    | Activate
    | Deactivate
    | Wave
    | Ended
    | Stop
    | Replan
    | LogLevels
    | ErrorReport
    | LogRecord
    | WorkerUp
    | StreamManagerDown
    | WorkerReady
    | Restarted
    | ExecutorStats
    | QueueStats
)

#: Code on the wire -> record. Codes are never reused; links and channel have a decade each.
_BY_CODE: Final[dict[int, type[Control]]] = {
    1: Hello,
    2: Welcome,
    3: Credit,
    4: Pressure,
    5: LinkBroken,
    6: Grant,
    7: FailPending,
    20: Register,
    21: Connect,
    22: Disconnect,
    23: Ready,
    24: Activate,
    25: Deactivate,
    26: Wave,
    27: Ended,
    28: Stop,
    29: ErrorReport,
    30: LogRecord,
    31: WorkerUp,
    32: WorkerReady,
    33: Restarted,
    34: ExecutorStats,
    35: QueueStats,
    36: StreamManagerDown,
    37: Replan,
    38: LogLevels,
}
_CODE: Final = {record: code for code, record in _BY_CODE.items()}
_NAMES: Final = {record: tuple(f.name for f in fields(record)) for record in _CODE}
_TYPES: Final = {
    record: tuple(list if hint == list[int] else hint for hint in get_type_hints(record).values())
    for record in _CODE
}

T = TypeVar("T")


def encode(record: Control) -> bytes:
    """A record as bytes."""
    kind = type(record)
    packed: bytes = msgpack.packb(
        [_CODE[kind], *(getattr(record, name) for name in _NAMES[kind])],
        unicode_errors="surrogatepass",
    )
    return packed


def decode(data: bytes | memoryview) -> Control:
    """The record in these bytes, its field types checked, or ProtocolError."""
    try:
        parts = msgpack.unpackb(data, unicode_errors="surrogatepass")
    except (ValueError, TypeError, RecursionError) as error:
        raise ProtocolError(f"control message does not unpack: {error}") from error
    if not isinstance(parts, list) or not parts:
        raise ProtocolError("control message is not a list")
    code, *values = parts
    if type(code) is not int:  # not shown: it may be nested too deep for that
        raise ProtocolError(f"control message begins with {type(code).__name__}, expected a code")
    kind = _BY_CODE.get(code)
    if kind is None:
        raise ProtocolError(f"control message {code} is unknown")
    types = _TYPES[kind]
    if len(values) != len(types):
        raise ProtocolError(f"{kind.__name__} has {len(values)} fields, expected {len(types)}")
    for name, value, expected in zip(_NAMES[kind], values, types, strict=True):
        _check(kind.__name__, name, value, expected)
    return kind(*values)


def _check(record: str, name: str, value: object, expected: type) -> None:
    fits = type(value) is expected
    if fits and isinstance(value, list):
        fits = all(type(item) is int for item in value)
    if not fits:
        raise ProtocolError(
            f"{record}.{name} is {type(value).__name__}, expected {expected.__name__}"
        )
