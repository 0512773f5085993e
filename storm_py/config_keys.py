"""The table of configuration keys: name, default, check and meaning of each.

``KEYS`` is the single source: defaults, checks and docs/configuration.md all come from it. Keys
that Storm has keep Storm's name; keys of this project begin with ``storm_py.``. Only the table is
here: ``storm_py.config`` has the constants, combines layers of values and judges them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from .imports import is_path, name_serializers

__all__ = ["KEYS", "Key"]


@dataclass(frozen=True, slots=True)
class Key:
    """One configuration key."""

    name: str
    default: object
    #: What a value must be, worded to follow "expected".
    expected: str
    #: Unit of the value, empty if it has none.
    unit: str
    #: What the key does.
    doc: str
    #: Storm's default and why this one differs; empty for keys that Storm does not have.
    storm: str
    #: Says whether a value is acceptable.
    accepts: Callable[[object], bool]


_Check: TypeAlias = tuple[str, Callable[[object], bool]]


def _boolean() -> _Check:
    return "true or false", lambda value: isinstance(value, bool)


def _integer(low: int, high: int | None = None) -> _Check:
    def accepts(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and _within(value, low, high)

    return f"an integer {_range(low, high)}", accepts


def _number(low: float, high: float | None = None) -> _Check:
    def accepts(value: object) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and _within(value, low, high)

    return f"a number {_range(low, high)}", accepts


def _or_none(check: _Check) -> _Check:
    expected, accepts = check
    return f"{expected}, or null", lambda value: value is None or accepts(value)


def _paths() -> _Check:
    def accepts(value: object) -> bool:
        return isinstance(value, list) and all(map(is_path, value))

    return "a list of names, each package.module:Class", accepts


def _consumers() -> _Check:
    keys = {"class", "argument", "parallelism.hint"}

    def is_consumer(value: object) -> bool:
        if not isinstance(value, dict) or not keys.issuperset(value):
            return False
        hint = value.get("parallelism.hint", 1)
        return is_path(value.get("class")) and type(hint) is int and hint >= 1

    def accepts(value: object) -> bool:
        return isinstance(value, list) and all(map(is_consumer, value))

    return (
        'a list of {"class": "package.module:Class", "argument": ..., "parallelism.hint": 1}, the '
        "last two optional",
        accepts,
    )


def _topology_name() -> _Check:
    # Storm's rule: names become parts of paths and of ids.
    pattern = re.compile(r"[^/.:\\]+")

    def accepts(value: object) -> bool:
        return isinstance(value, str) and bool(value.strip()) and bool(pattern.fullmatch(value))

    return "a string that is not blank and holds none of / . : \\", accepts


def _range(low: float, high: float | None) -> str:
    return f"of at least {low:g}" if high is None else f"from {low} to {high}"


def _within(value: Any, low: float, high: float | None) -> bool:
    return bool(value >= low and value < float("inf") and (high is None or value <= high))


_KIB: Final = 1024
_MIB: Final = 1024 * _KIB


def _key(name: str, default: object, check: _Check, unit: str, doc: str, storm: str = "") -> Key:
    return Key(name, default, check[0], unit, doc, storm, check[1])


_ALL_KEYS: Final = (
    _key(
        "topology.name",
        None,
        _or_none(_topology_name()),
        "",
        "Name of the topology; without one it is named after the module it is loaded from.",
        "null",
    ),
    _key(
        "topology.workers",
        1,
        _integer(1, 65535),
        "workers",
        "Number of workers that the executors are spread over; each has a stream manager.",
        "1",
    ),
    _key(
        "topology.tasks",
        None,
        _or_none(_integer(1)),
        "tasks",
        "Number of tasks of a component; null means as many as its parallelism hint. Fixed for "
        "the life of a topology.",
        "null",
    ),
    _key(
        "topology.max.task.parallelism",
        None,
        _or_none(_integer(1)),
        "tasks",
        "Cap on the tasks and executors of each component, to run a large topology on little.",
        "null",
    ),
    _key(
        "topology.debug",
        False,
        _boolean(),
        "",
        "Log every emitted tuple: component, task, stream, the tasks it goes to, and its values, "
        "cut to 500 characters. At INFO, to the log of the instance; with --inline to the "
        "terminal. For a single component, set it there.",
        "false",
    ),
    _key(
        "topology.acker.executors",
        None,
        _or_none(_integer(0)),
        "executors",
        "0 turns tracking off: delivery is at most once and message ids are acked at once. Any "
        "other value, null included, means on; what is emitted without a message id is then "
        "still not tracked.",
        "null, as many as workers; here stream managers track and no executor is started for it",
    ),
    _key(
        "topology.max.spout.pending",
        None,
        _or_none(_integer(1)),
        "tuples",
        "Limit on the tracked, unfinished tuples of each spout task; null means none. While it "
        "is reached next_tuple is not called.",
        "null",
    ),
    _key(
        "topology.message.timeout.secs",
        30,
        _integer(1),
        "seconds",
        "Time after which a tracked tuple that is not finished fails: once this time is over, "
        "and before twice of it is.",
        "30",
    ),
    _key(
        "topology.tick.tuple.freq.secs",
        None,
        _or_none(_number(0.001)),
        "seconds",
        "Time between two tick tuples for each task of a bolt; null means no ticks. Usually set "
        "for one component.",
        "null; whole seconds only",
    ),
    _key(
        "topology.auto.task.hooks",
        None,
        _or_none(_paths()),
        "",
        "Task hooks for every task: classes that can be imported where the topology runs and are "
        "made without arguments.",
        "null; Java classes",
    ),
    _key(
        "topology.metrics.consumer.register",
        None,
        _or_none(_consumers()),
        "",
        "Who hears of metrics; Config.register_metrics_consumer adds one. Each runs as a component "
        "of its own. Without any, metrics are not read.",
        "null; Java classes, and filters that do not exist here",
    ),
    _key(
        "topology.builtin.metrics.bucket.size.secs",
        60,
        _number(0.001),
        "seconds",
        "Time after which the counters, gauges and histograms of a task are read.",
        "60, for the metrics that Storm itself keeps",
    ),
    _key(
        "topology.error.throttle.interval.secs",
        10,
        _number(0.001),
        "seconds",
        "Time over which the errors of report_error are counted, for the key below.",
        "10",
    ),
    _key(
        "topology.max.error.report.per.interval",
        5,
        _integer(1),
        "errors",
        "Errors of report_error that each executor shows per interval; of the rest only the number "
        "is shown, when the interval is over. Errors that end an executor are always shown.",
        "5",
    ),
    _key(
        "storm_py.batch.rows",
        256,
        _integer(1, 65535),
        "tuples",
        "Tuples per frame at which it is sent. Idle input and the two keys below send it earlier.",
        "no such key; its topology.transfer.batch.size of 1 would cost most of the throughput here",
    ),
    _key(
        "storm_py.batch.bytes",
        64 * _KIB,
        _integer(1),
        "bytes",
        "Size at which a frame is sent, whatever the number of its tuples.",
    ),
    _key(
        "storm_py.batch.delay.ms",
        2,
        _number(1, 1000),
        "milliseconds",
        "Longest time that a tuple waits for its frame to fill while its sender is busy.",
    ),
    _key(
        "storm_py.frame.max.bytes",
        8 * _MIB,
        _integer(_KIB, 1024 * _MIB),
        "bytes",
        "Largest frame. A batch above it is split; a single tuple above it, with 16 bytes for each "
        "root if it has several, is an error at emit (less than 80 bytes of header do not count).",
    ),
    _key(
        "storm_py.key.groups",
        1024,
        _integer(1, 65536),
        "groups",
        "Number of groups that keys of a fields grouping fall into; groups are dealt out to tasks. "
        "At least the largest number of tasks of such a bolt.",
    ),
    _key(
        "storm_py.backpressure.window.secs",
        0.5,
        _number(0.01, 60),
        "seconds",
        "Work that may wait inside a consumer, as the time it needs for it at its measured rate.",
    ),
    _key(
        "storm_py.backpressure.high.bytes",
        _MIB,
        _integer(_KIB),
        "bytes",
        "Backlog of one task in a stream manager above which the senders to it are paused.",
    ),
    _key(
        "storm_py.backpressure.low.ratio",
        0.5,
        _number(0, 0.95),
        "",
        "Share of the high mark below which paused senders go on.",
    ),
    _key(
        "storm_py.spout.wait.ms",
        10,
        _number(1, 60_000),
        "milliseconds",
        "Longest wait between calls of next_tuple that emit nothing; waits start at 1 ms and grow.",
        "1 ms, the sleep of Storm's progressive wait strategy; backing off spares an idle machine",
    ),
    _key(
        "storm_py.stuck.secs",
        30,
        _number(0.1),
        "seconds",
        "Time that user code may take for one call, or for a millisecond's worth of fast ones, "
        "before a warning names task, method and rows. It comes again when the time has doubled.",
    ),
    _key(
        "storm_py.fall.back.on.pickle",
        False,
        _boolean(),
        "",
        "Pickle values of types that are neither built in nor registered, instead of refusing "
        "them at emit. Slow, and unsafe if anybody else can reach the sockets. For the whole "
        "topology; docs/values.md says more.",
        "false, for topology.fall.back.on.java.serialization",
    ),
    _key(
        "storm_py.serializers",
        [],
        (
            "a list of [class, dumps, loads], each a path as in package.module:Name, a class once",
            name_serializers,
        ),
        "",
        "Classes with a serializer of their own, as `Config.register_serialization` stores them: "
        "import paths of class, dumps and loads. For the whole topology; docs/values.md says more.",
        "topology.kryo.register",
    ),
    _key(
        "storm_py.local.max.failures",
        10,
        _or_none(_integer(1)),
        "failures",
        "How often in a row a task of a local run may raise before the run is given up; null for "
        "any number. In a row are failures with less than 15 s between them.",
    ),
    _key(
        "storm_py.drain.timeout.secs",
        30,
        _number(0, 86_400),
        "seconds",
        "Time that tuples on their way get to be processed when a topology is stopped; what is "
        "left then is dropped.",
    ),
)

#: Every key there is, by name, in the order of the documentation.
KEYS: Final[Mapping[str, Key]] = MappingProxyType({key.name: key for key in _ALL_KEYS})
