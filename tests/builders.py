"""What the tests of the engine are made of: small topologies, fake surroundings, readable messages.

Builders name only what matters to a test and hide the rest. `Rows`, `End`, `Data` and `Said` say in
words what a message says in bytes, so that a test compares whole lists of actions. `FakePort` and
`FakeClock` stand for a driver; time passes only when a test says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from storm_py.api.grouping import CustomStreamGrouping, Grouping, GroupingKind
from storm_py.api.spec import ComponentSpec, StormTopology, StreamInfo
from storm_py.api.tuples import Fields, GlobalStreamId
from storm_py.config import Config, defaults, merge
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.core.plan import PhysicalPlan, make_plan
from storm_py.core.pressure import Limits
from storm_py.engine.links import read_control
from storm_py.engine.port import Watch
from storm_py.engine.settings import Settings
from storm_py.wire import control, frames, values

TOPOLOGY_ID = "words-1"
NO_LIMITS = Limits(window_secs=1000.0, high_bytes=1 << 40, low_ratio=0.5, frame_rows=256)

# ---- topologies --------------------------------------------------------------------------------

SHUFFLE = Grouping(GroupingKind.SHUFFLE)
ALL = Grouping(GroupingKind.ALL)
GLOBAL = Grouping(GroupingKind.GLOBAL)
DIRECT = Grouping(GroupingKind.DIRECT)
NONE = Grouping(GroupingKind.NONE)
LOCAL = Grouping(GroupingKind.LOCAL_OR_SHUFFLE)
CUSTOM = Grouping(GroupingKind.CUSTOM)


def by(*fields: str) -> Grouping:
    """Fields grouping."""
    return Grouping(GroupingKind.FIELDS, Fields(*fields))


def by_two(*fields: str) -> Grouping:
    """Partial key grouping."""
    return Grouping(GroupingKind.PARTIAL_KEY, Fields(*fields))


class Scatter(CustomStreamGrouping):
    """A custom grouping with a memory: one or more tasks, some of them twice, nobody at times."""

    def __init__(self, tasks: Sequence[int]) -> None:
        self.tasks = list(tasks)
        self.calls = 0

    def choose_tasks(self, task_id: int, values: list[Any]) -> Sequence[int]:
        """Those that the number of calls, the task and the width of the row lead to."""
        self.calls += 1
        first = task_id + len(values)
        count = (3, 2, 0, 1)[self.calls % 4]
        return [self.tasks[(first + 2 * n) % len(self.tasks)] for n in range(count)]


def scatters(plan: PhysicalPlan, component: str) -> dict[tuple[str, str], CustomStreamGrouping]:
    """A new `Scatter` for each custom grouping of the streams of a component."""
    return {
        (stream, target.component_id): Scatter(target.tasks)
        for stream, targets in plan.targets(component).items()
        for target in targets
        if target.kind is GroupingKind.CUSTOM
    }


def spout(id: str, streams: str = "value", tasks: int = 1, executors: int = 0) -> ComponentSpec:
    """A spout with the streams of `parse_streams`."""
    return _component("spout", id, {}, streams, tasks, executors)


def bolt(
    id: str,
    inputs: Mapping[str, Grouping] | str,
    streams: str = "",
    tasks: int = 1,
    executors: int = 0,
) -> ComponentSpec:
    """A bolt; `inputs` are by "component" or "component:stream", a plain str means shuffled."""
    if isinstance(inputs, str):
        inputs = dict.fromkeys(inputs.split(), SHUFFLE)
    return _component("bolt", id, inputs, streams, tasks, executors)


def _component(
    kind: Literal["spout", "bolt"],
    id: str,
    inputs: Mapping[str, Grouping],
    streams: str,
    tasks: int,
    executors: int,
) -> ComponentSpec:
    sources = {}
    for source, grouping in inputs.items():
        component, _, stream = source.partition(":")
        sources[GlobalStreamId(component, stream or DEFAULT_STREAM_ID)] = grouping
    return ComponentSpec(
        id, kind, None, executors or tasks, tasks, parse_streams(streams), sources, {}
    )


def parse_streams(text: str) -> dict[str, StreamInfo]:
    """`"a b; side: c; picked!: d"`: the default stream of a and b, side of c, a direct one of d."""
    streams = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        head, colon, names = part.rpartition(":")
        name = head.strip() if colon else DEFAULT_STREAM_ID
        streams[name.rstrip("!")] = StreamInfo(Fields(names.split()), name.endswith("!"))
    return streams


def conf(**overrides: object) -> dict[str, Any]:
    """A whole configuration; `batch_rows=3` sets `storm_py.batch.rows`, `topology_x` topology.x.

    Nothing is fused, unless by `fuse=True`.
    """
    own: dict[str, object] = {Config.STORM_PY_FUSE: False}
    for name, value in overrides.items():
        dotted = name.replace("_", ".")
        own[dotted if name.startswith("topology_") else f"storm_py.{dotted}"] = value
    assert own.keys() <= defaults().keys()
    return merge(defaults(), own)


def plan_of(*specs: ComponentSpec, workers: int = 1, **overrides: object) -> PhysicalPlan:
    """The physical plan of these components; `overrides` as in `conf`."""
    topology = StormTopology({spec.id: spec for spec in specs})
    return make_plan(TOPOLOGY_ID, topology, conf(**overrides), workers)


def settings_of(plan: PhysicalPlan) -> Settings:
    """An instance's settings under the plan's configuration."""
    return Settings.of(plan.conf, worker_port=6700)


def key_groups(plan: PhysicalPlan) -> int:
    """The number of key groups of a plan."""
    groups: object = plan.conf[Config.STORM_PY_KEY_GROUPS]
    assert isinstance(groups, int)
    return groups


# ---- surroundings ------------------------------------------------------------------------------


class Numbers:
    """Random bits that can be foreseen: `first`, the next, ...; so sessions are first + 1, ...

    Root and edge ids, which are not of 63 bits, come from a seed instead.
    """

    def __init__(self, first: int = 100) -> None:
        self._next = first - 1
        self._ids = random.Random(first)

    def getrandbits(self, k: int, /) -> int:
        """The next number."""
        if k != 63:
            return self._ids.getrandbits(k)
        self._next += 1
        return self._next


class FakeClock:
    """A clock that the test moves; `step` is what each look at it takes."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 0.0
        self.step = step
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        self.now += self.step
        return self.now


class FakePort:
    """A driver of an instance core: keeps what is sent and reported."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.sent: list[tuple[bool, bytes]] = []
        self.reports: list[control.ErrorReport] = []
        self.logged: list[str] = []
        self.ended_executors: list[tuple[int, int, bool]] = []
        #: called at each send, as a driver does that serves control while it waits
        self.while_sending: Callable[[], object] = lambda: None

    def stamp(self) -> int:
        """A constant."""
        return 7

    def send(self, data: bool, message: bytes) -> None:
        """Keep the message."""
        self.sent.append((data, message))
        self.while_sending()

    def report(self, error: control.ErrorReport) -> None:
        """Keep the report."""
        self.reports.append(error)

    def log(self, text: str) -> None:
        """Keep the line."""
        self.logged.append(text)

    def ended(self, executor: int, wave: int, failed: bool) -> None:
        """Keep the news."""
        self.ended_executors.append((executor, wave, failed))

    @property
    def ends(self) -> list[tuple[int, bool]]:
        """The news without the executor, where there is one only."""
        return [(wave, failed) for _, wave, failed in self.ended_executors]

    def take(self) -> list[Data | Said]:
        """What was sent since the last call, in words."""
        sent, self.sent = self.sent, []
        return [in_words(data, message) for data, message in sent]


class FakeWatch(Watch):
    """Keeps what the core says it does: method and task, and for execute where its rows are."""

    def __init__(self) -> None:
        self.wakes = 0
        self.seen: list[tuple[object, ...]] = []

    def wake(self) -> None:
        """Count it."""
        self.wakes += 1

    def entered(
        self, what: str, task: int, source: int = 0, stream: str = "", first: int = 0, last: int = 0
    ) -> None:
        """Keep it."""
        rows = (source, stream, first, last) if source else ()
        self.seen.append((what, task, *rows))


# ---- messages in words -------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """A DATA frame: rows by stream index, in order."""

    src: int
    dest: int
    runs: list[tuple[int, list[list[object]]]]


@dataclass(frozen=True)
class End:
    """A MARKER frame of an END wave."""

    src: int
    dest: int
    wave: int


@dataclass(frozen=True)
class Data:
    """A data message."""

    session: int
    seq: int
    frames: list[Rows | End]


@dataclass(frozen=True)
class Said:
    """A control message."""

    session: int
    record: control.Control


@dataclass(frozen=True)
class Sent:
    """A message to a peer."""

    peer: str
    message: Data | Said


def rows(src: int, dest: int, *row_values: Sequence[object], stream: int = 0) -> Rows:
    """A DATA frame with one run."""
    return Rows(src, dest, [(stream, [list(row) for row in row_values])])


def in_words(data: bool, message: bytes) -> Data | Said:
    """A message, decoded."""
    if not data:
        return Said(*read_control(message))
    session, seq = frames.read_message_header(message)
    return Data(session, seq, [_frame_in_words(message, f) for f in frames.frames(message)])


def all_in_words(sends: Iterable[tuple[bool, str, bytes]]) -> list[Sent]:
    """The actions of a stream manager, decoded."""
    return [Sent(peer, in_words(data, message)) for data, peer, message in sends]


def _frame_in_words(message: bytes, frame: frames.Frame) -> Rows | End:
    if frame.kind == frames.FrameKind.MARKER:
        kind, wave = frames.decode_marker(message, frame)
        assert kind is frames.MarkerKind.END
        return End(frame.src, frame.dest, wave)
    runs, packed = frames.decode_data(message, frame)
    remaining = iter(values.PLAIN.unpack_rows(packed))
    return Rows(frame.src, frame.dest, [(s, [next(remaining) for _ in range(n)]) for s, n in runs])


def data_message(session: int, seq: int, *content: Rows | End) -> bytes:
    """A data message of these frames."""
    return frames.message_header(session, seq) + b"".join(map(frame_bytes, content))


def control_message(session: int, record: control.Control) -> bytes:
    """A control message."""
    return frames.message_header(session, 0) + control.encode(record)


def frame_bytes(content: Rows | End) -> bytes:
    """One frame."""
    if isinstance(content, End):
        kind = frames.MarkerKind.END
        return frames.encode_marker(1, content.src, content.dest, 7, kind, content.wave)
    pack = values.PLAIN.packer()
    packed = [pack(row) for _, run in content.runs for row in run]
    runs = [(stream, len(run)) for stream, run in content.runs]
    return b"".join(frames.encode_data(1, content.src, content.dest, 7, runs, packed))


def hello(peer: str, incarnation: int = 1, version: int = 1, **other: Any) -> control.Hello:
    """A Hello; the tasks it names decide nothing."""
    return control.Hello(
        peer, other.get("topology_id", TOPOLOGY_ID), incarnation, version, other.get("tasks", [])
    )


def frame_size(*content: Rows | End) -> int:
    """Bytes of these frames, as credits count them."""
    return sum(len(frame_bytes(each)) for each in content)


@dataclass
class Recorder:
    """A sequence of what happened, shared by the components of a test."""

    log: list[tuple[object, ...]] = field(default_factory=list)

    def add(self, *what: object) -> None:
        """Something happened."""
        self.log.append(what)

    def take(self) -> Sequence[tuple[object, ...]]:
        """What happened since the last call."""
        taken, self.log = self.log, []
        return taken
