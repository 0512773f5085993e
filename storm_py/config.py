"""Every configuration key: its default, its check, its meaning, and how layers are combined.

``KEYS`` is the single source: defaults, checks and docs/configuration.md all come from it. Keys
that Storm has keep Storm's name and constant (``Config.TOPOLOGY_WORKERS``); keys of this project
begin with ``storm_py.``. This module reads no file, no environment and no command line: callers
bring the layers, lowest first, to ``merge`` and check the result with ``validate``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from .errors import ConfigError, a_type, did_you_mean
from .imports import NotImportable, name_serializers, path_of, resolve_serializer

__all__ = [
    "KEYS",
    "Config",
    "Key",
    "configuration",
    "defaults",
    "markdown",
    "merge",
    "parse_assignment",
    "validate",
]

_T = TypeVar("_T")

_OWN_PREFIX: Final = "storm_py."
_STORM_PREFIX: Final = "topology."
#: Storm has many topology.* keys that mean nothing here yet and must pass when a configuration is
#: carried over. None of them is closer than 0.82 to a key below; a typo in one of those is.
_TYPO_CUTOFF: Final = 0.85


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


def _strings() -> _Check:
    def accepts(value: object) -> bool:
        return isinstance(value, list) and all(isinstance(each, str) and each for each in value)

    return "a list of names, each package.module:Class", accepts


def _consumers() -> _Check:
    keys = {"class", "argument", "parallelism.hint"}

    def is_consumer(value: object) -> bool:
        if not isinstance(value, dict) or not keys.issuperset(value):
            return False
        name, hint = value.get("class"), value.get("parallelism.hint", 1)
        return isinstance(name, str) and bool(name) and type(hint) is int and hint >= 1

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
        _or_none(_strings()),
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


class Config(dict[str, Any]):
    """A configuration under construction: a dict with Storm's constants and setters.

    ``Config()`` is empty: it holds what the user sets, not the defaults. Setters store without a
    check; ``validate`` judges the whole.
    """

    TOPOLOGY_NAME: Final = "topology.name"
    TOPOLOGY_WORKERS: Final = "topology.workers"
    TOPOLOGY_TASKS: Final = "topology.tasks"
    TOPOLOGY_MAX_TASK_PARALLELISM: Final = "topology.max.task.parallelism"
    TOPOLOGY_DEBUG: Final = "topology.debug"
    TOPOLOGY_ACKER_EXECUTORS: Final = "topology.acker.executors"
    TOPOLOGY_MAX_SPOUT_PENDING: Final = "topology.max.spout.pending"
    TOPOLOGY_MESSAGE_TIMEOUT_SECS: Final = "topology.message.timeout.secs"
    TOPOLOGY_TICK_TUPLE_FREQ_SECS: Final = "topology.tick.tuple.freq.secs"
    TOPOLOGY_AUTO_TASK_HOOKS: Final = "topology.auto.task.hooks"
    TOPOLOGY_METRICS_CONSUMER_REGISTER: Final = "topology.metrics.consumer.register"
    TOPOLOGY_BUILTIN_METRICS_BUCKET_SIZE_SECS: Final = "topology.builtin.metrics.bucket.size.secs"
    TOPOLOGY_ERROR_THROTTLE_INTERVAL_SECS: Final = "topology.error.throttle.interval.secs"
    TOPOLOGY_MAX_ERROR_REPORT_PER_INTERVAL: Final = "topology.max.error.report.per.interval"
    STORM_PY_BATCH_ROWS: Final = "storm_py.batch.rows"
    STORM_PY_BATCH_BYTES: Final = "storm_py.batch.bytes"
    STORM_PY_BATCH_DELAY_MS: Final = "storm_py.batch.delay.ms"
    STORM_PY_FRAME_MAX_BYTES: Final = "storm_py.frame.max.bytes"
    STORM_PY_KEY_GROUPS: Final = "storm_py.key.groups"
    STORM_PY_BACKPRESSURE_WINDOW_SECS: Final = "storm_py.backpressure.window.secs"
    STORM_PY_BACKPRESSURE_HIGH_BYTES: Final = "storm_py.backpressure.high.bytes"
    STORM_PY_BACKPRESSURE_LOW_RATIO: Final = "storm_py.backpressure.low.ratio"
    STORM_PY_SPOUT_WAIT_MS: Final = "storm_py.spout.wait.ms"
    STORM_PY_STUCK_SECS: Final = "storm_py.stuck.secs"
    STORM_PY_FALL_BACK_ON_PICKLE: Final = "storm_py.fall.back.on.pickle"
    STORM_PY_SERIALIZERS: Final = "storm_py.serializers"
    STORM_PY_LOCAL_MAX_FAILURES: Final = "storm_py.local.max.failures"
    STORM_PY_DRAIN_TIMEOUT_SECS: Final = "storm_py.drain.timeout.secs"

    def set_num_workers(self, workers: int) -> None:
        """Set ``topology.workers``: how many workers to spread the executors over."""
        self[self.TOPOLOGY_WORKERS] = workers

    def set_debug(self, debug: bool) -> None:
        """Set ``topology.debug``: whether to log every emitted tuple."""
        self[self.TOPOLOGY_DEBUG] = debug

    def set_max_spout_pending(self, limit: int) -> None:
        """Set ``topology.max.spout.pending``: unfinished tuples per spout task."""
        self[self.TOPOLOGY_MAX_SPOUT_PENDING] = limit

    def set_message_timeout_secs(self, secs: int) -> None:
        """Set ``topology.message.timeout.secs``: seconds until an unfinished tuple fails."""
        self[self.TOPOLOGY_MESSAGE_TIMEOUT_SECS] = secs

    def set_max_task_parallelism(self, limit: int) -> None:
        """Set ``topology.max.task.parallelism``: cap on tasks and executors per component."""
        self[self.TOPOLOGY_MAX_TASK_PARALLELISM] = limit

    def set_num_ackers(self, ackers: int) -> None:
        """Set ``topology.acker.executors``: 0 for no tracking, any other number for tracking."""
        self[self.TOPOLOGY_ACKER_EXECUTORS] = ackers

    def register_metrics_consumer(
        self, consumer: type | str, argument: object = None, parallelism_hint: int = 1
    ) -> None:
        """Add a consumer to ``topology.metrics.consumer.register``.

        ``consumer`` is a subclass of ``MetricsConsumer`` that can be imported, or its
        ``package.module:Class``; ``argument`` is plain data that its ``prepare`` gets.
        """
        if isinstance(consumer, type):
            consumer = f"{consumer.__module__}:{consumer.__qualname__}"
        registered = self.get(self.TOPOLOGY_METRICS_CONSUMER_REGISTER) or []
        added = {"class": consumer, "argument": argument, "parallelism.hint": parallelism_hint}
        self[self.TOPOLOGY_METRICS_CONSUMER_REGISTER] = [*registered, added]

    def register_serialization(
        self, cls: type[_T], dumps: Callable[[_T], bytes], loads: Callable[[bytes], _T]
    ) -> None:
        """Let instances of exactly this class travel as `dumps` makes them and `loads` reads them.

        All three are stored by name, under ``storm_py.serializers``, so each has to be at the top
        level of a module or in a class there: ConfigError if one is not. A second registration of a
        class replaces the first. Keys of a fields grouping are told apart by what `dumps` returns.
        """
        try:
            paths = [path_of(cls), path_of(dumps), path_of(loads)]
            resolve_serializer(paths)
        except NotImportable as error:
            raise ConfigError(f"register_serialization: {error}") from error
        others = [one for one in self.get(self.STORM_PY_SERIALIZERS, []) if one[0] != paths[0]]
        self[self.STORM_PY_SERIALIZERS] = [*others, paths]


def defaults() -> dict[str, object]:
    """Return the default of every key, as a new dict."""
    return {key.name: key.default for key in KEYS.values()}


def merge(*layers: Mapping[str, object] | None) -> dict[str, object]:
    """Return the layers combined, a later one overriding an earlier one key by key.

    None stands for an empty layer. A value of None overrides as any other. Nothing is checked.
    """
    merged: dict[str, object] = {}
    for layer in layers:
        merged.update(layer or {})
    return merged


def configuration(
    topology: Mapping[str, object] | None, command_line: Mapping[str, object] | None
) -> dict[str, object]:
    """Return the whole configuration of a topology, checked: what every component starts from.

    The defaults, overridden by what the topology's file sets, overridden by the command line: it is
    the same order in which Storm's submit puts ``-c`` over the conf of the program. A component's
    own configuration overrides all of it, when its tasks start. Raises ConfigError.
    """
    conf = merge(defaults(), topology, command_line)
    validate(conf)
    return conf


def validate(conf: Mapping[str, object]) -> None:
    """Check every key and value of one layer or of all of them merged.

    Unknown keys are the user's own and pass, except for those that begin with ``storm_py.`` and
    those under ``topology.`` that look like a misspelt known key. Raises ConfigError that names
    key, value and expectation, for the first fault.
    """
    for name, value in conf.items():
        if not isinstance(name, str):
            raise ConfigError(f"configuration key {name!r} is {a_type(name)}, not a str")
        key = KEYS.get(name)
        if key is None:
            _check_unknown(name)
        elif not key.accepts(value):
            raise ConfigError(
                f"{name} is {value!r} ({type(value).__name__}); expected {key.expected}"
            )


def _check_unknown(name: str) -> None:
    if name.startswith(_OWN_PREFIX):
        own = [known for known in KEYS if known.startswith(_OWN_PREFIX)]
        hint = did_you_mean(name, own) or f"; keys: {', '.join(own)}"
        raise ConfigError(f"unknown configuration key {name!r}{hint}")
    if name.startswith(_STORM_PREFIX):
        hint = did_you_mean(name, KEYS, _TYPO_CUTOFF)
        if hint:
            raise ConfigError(f"unknown configuration key {name!r}{hint}")


def parse_assignment(text: str) -> tuple[str, object]:
    """Split ``key=value`` of a command line; the value is JSON if it parses, else the plain text.

    So ``true``, ``3`` and ``[1, 2]`` get their types and ``hello`` needs no quotes. Raises
    ConfigError when there is no ``=`` or no key before it. The result is not validated.
    """
    name, equals, raw = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise ConfigError(f"{text!r} sets nothing; expected key=value, as in topology.workers=2")
    try:
        value: object = json.loads(raw, parse_constant=_no_constant)
    except ValueError:
        value = raw
    return name, value


def _no_constant(text: str) -> object:
    # json would read NaN and Infinity, which are no JSON and which no key accepts
    raise ValueError(text)


def markdown() -> str:
    """Return docs/configuration.md, generated from ``KEYS``."""
    lines = [
        "# Configuration",
        "",
        "<!-- Generated from storm_py/config.py; change it there, then write this file with",
        "     python -c 'from storm_py.config import markdown; print(markdown(), end=\"\")' -->",
        "",
        "Each of these overrides what stands above it:",
        "",
        "1. the defaults below;",
        "2. the topology's file, whose function returns `(builder, conf)`: the topology, and a",
        "   `Config` or a dict;",
        "3. the command line: `-c key=value`, where the value is read as JSON if it is JSON, and",
        "   options of their own such as `--workers`;",
        "4. one component's `get_component_configuration`;",
        "5. for one component, `add_configuration` on what `set_spout` and `set_bolt` return.",
        "",
        "So what you type wins over what the file says, as with Storm's `-c`, but for what a",
        "component needs for itself.",
        "",
        "Keys that Storm has keep Storm's name; keys of this project begin with `storm_py.`.",
        "Any other key is the topology's own, unless it looks like one of these misspelt.",
        "",
    ]
    for key in KEYS.values():
        lines += [f"## `{key.name}`", "", key.doc, "", f"- Default: `{json.dumps(key.default)}`"]
        lines += [f"- Value: {key.expected}"]
        lines += [f"- Unit: {key.unit}"] if key.unit else []
        lines += [f"- In Storm: {key.storm}"] if key.storm else []
        lines += [""]
    return "\n".join(lines[:-1]) + "\n"
