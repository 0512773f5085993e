"""Configurations: how one is written, how layers of them are combined, and who judges the result.

The keys themselves, with defaults and checks, are the table ``storm_py.config_keys``; each has a
constant here, Storm's where Storm has the key (``Config.TOPOLOGY_WORKERS``). This module reads no
file, no environment and no command line: callers bring the layers, lowest first, to ``merge`` and
check the result with ``validate``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from .config_cluster_keys import CLUSTER_KEYS
from .config_keys import KEYS, Key
from .errors import ConfigError, a_type, did_you_mean
from .imports import NotImportable, path_of, resolve_serializer

__all__ = [
    "KEYS",
    "Config",
    "Key",
    "configuration",
    "defaults",
    "local_dir",
    "markdown",
    "merge",
    "parse_assignment",
    "validate",
]

_T = TypeVar("_T")

_OWN_PREFIX: Final = "storm_py."
_STORM_PREFIX: Final = "topology."
#: Storm has many topology.* keys that mean nothing here yet and must pass when a configuration is
#: carried over. None of them is closer than 0.82 to a known key; a typo in one of those is.
_TYPO_CUTOFF: Final = 0.85


class Config(dict[str, Any]):
    """A configuration under construction: a dict with Storm's constants and setters.

    ``Config()`` is empty: it holds what the user sets, not the defaults. Setters store without a
    check; ``validate`` judges the whole.
    """

    TOPOLOGY_NAME: Final = "topology.name"
    TOPOLOGY_WORKERS: Final = "topology.workers"
    TOPOLOGY_TASKS: Final = "topology.tasks"
    TOPOLOGY_MAX_TASK_PARALLELISM: Final = "topology.max.task.parallelism"
    TOPOLOGY_TESTING_ALWAYS_TRY_SERIALIZE: Final = "topology.testing.always.try.serialize"
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
    NIMBUS_THRIFT_THREADS: Final = "nimbus.thrift.threads"
    NIMBUS_QUEUE_SIZE: Final = "nimbus.queue.size"
    NIMBUS_THRIFT_MAX_BUFFER_SIZE: Final = "nimbus.thrift.max_buffer_size"
    STORM_THRIFT_SOCKET_TIMEOUT_MS: Final = "storm.thrift.socket.timeout.ms"
    STORM_PY_FUSE: Final = "storm_py.fuse"
    STORM_PY_BATCH_ROWS: Final = "storm_py.batch.rows"
    STORM_PY_BATCH_BYTES: Final = "storm_py.batch.bytes"
    STORM_PY_BATCH_DELAY_MS: Final = "storm_py.batch.delay.ms"
    STORM_PY_BATCH_LINGER_MS: Final = "storm_py.batch.linger.ms"
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
    STORM_PY_KILL_ON_END: Final = "storm_py.kill.on.end"
    STORM_PY_DRAIN_TIMEOUT_SECS: Final = "storm_py.drain.timeout.secs"
    STORM_PY_SUBMIT_MAX_BYTES: Final = "storm_py.submit.max.bytes"
    DEV_ZOOKEEPER_PATH: Final = "dev.zookeeper.path"
    NIMBUS_CLEANUP_INBOX_FREQ_SECS: Final = "nimbus.cleanup.inbox.freq.secs"
    NIMBUS_INBOX_JAR_EXPIRATION_SECS: Final = "nimbus.inbox.jar.expiration.secs"
    NIMBUS_MONITOR_FREQ_SECS: Final = "nimbus.monitor.freq.secs"
    NIMBUS_SEEDS: Final = "nimbus.seeds"
    NIMBUS_SUPERVISOR_TIMEOUT_SECS: Final = "nimbus.supervisor.timeout.secs"
    NIMBUS_TASK_LAUNCH_SECS: Final = "nimbus.task.launch.secs"
    NIMBUS_TASK_TIMEOUT_SECS: Final = "nimbus.task.timeout.secs"
    NIMBUS_THRIFT_PORT: Final = "nimbus.thrift.port"
    NIMBUS_TOPOLOGY_BLOBSTORE_DELETION_DELAY_MS: Final = (
        "nimbus.topology.blobstore.deletion.delay.ms"
    )
    STORM_LOCAL_DIR: Final = "storm.local.dir"
    STORM_LOCAL_HOSTNAME: Final = "storm.local.hostname"
    STORM_ZOOKEEPER_CONNECTION_TIMEOUT: Final = "storm.zookeeper.connection.timeout"
    STORM_ZOOKEEPER_PORT: Final = "storm.zookeeper.port"
    STORM_ZOOKEEPER_RETRY_INTERVAL: Final = "storm.zookeeper.retry.interval"
    STORM_ZOOKEEPER_RETRY_INTERVALCEILING_MILLIS: Final = (
        "storm.zookeeper.retry.intervalceiling.millis"
    )
    STORM_ZOOKEEPER_RETRY_TIMES: Final = "storm.zookeeper.retry.times"
    STORM_ZOOKEEPER_ROOT: Final = "storm.zookeeper.root"
    STORM_ZOOKEEPER_SERVERS: Final = "storm.zookeeper.servers"
    STORM_ZOOKEEPER_SESSION_TIMEOUT: Final = "storm.zookeeper.session.timeout"
    SUPERVISOR_HEARTBEAT_FREQUENCY_SECS: Final = "supervisor.heartbeat.frequency.secs"
    SUPERVISOR_MONITOR_FREQUENCY_SECS: Final = "supervisor.monitor.frequency.secs"
    SUPERVISOR_SLOTS_PORTS: Final = "supervisor.slots.ports"
    SUPERVISOR_WORKER_SHUTDOWN_SLEEP_SECS: Final = "supervisor.worker.shutdown.sleep.secs"
    SUPERVISOR_WORKER_START_TIMEOUT_SECS: Final = "supervisor.worker.start.timeout.secs"
    SUPERVISOR_WORKER_TIMEOUT_SECS: Final = "supervisor.worker.timeout.secs"
    WORKER_HEARTBEAT_FREQUENCY_SECS: Final = "worker.heartbeat.frequency.secs"
    WORKER_LOG_LEVEL_RESET_POLL_SECS: Final = "worker.log.level.reset.poll.secs"

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
        ``package.module:Class``; ``argument`` is plain data that its ``prepare`` gets. ConfigError
        if a class has no such name.
        """
        if isinstance(consumer, type):
            try:
                consumer = path_of(consumer)
            except NotImportable as error:
                raise ConfigError(f"register_metrics_consumer: {error}") from error
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
    topology: Mapping[str, object] | None,
    command_line: Mapping[str, object] | None,
    storm_yaml: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the whole configuration of a topology, checked: what every component starts from.

    The defaults, overridden by storm.yaml, overridden by what the topology's file sets, overridden
    by the command line: it is the same order in which Storm's submit puts ``-c`` over the conf of
    the program. A component's own configuration overrides all of it, when its tasks start. Raises
    ConfigError.
    """
    conf = merge(defaults(), storm_yaml, topology, command_line)
    validate(conf)
    return conf


def local_dir(conf: Mapping[str, object], home: Path) -> Path:
    """Return the folder that ``storm.local.dir`` of a valid configuration means.

    ``home`` is what ``~`` in it stands for.
    """
    text = str(conf[Config.STORM_LOCAL_DIR])
    return home / text[2:] if text.startswith("~/") else Path(text)


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
                f"{key.check.hint(value)}"
            )


def _check_unknown(name: str) -> None:
    if name.startswith(_OWN_PREFIX):
        own = [known for known in KEYS if known.startswith(_OWN_PREFIX)]
        hint = did_you_mean(name, own) or f"; keys: {', '.join(own)}"
        raise ConfigError(f"unknown configuration key {name!r}{hint}")
    if name.startswith(_STORM_PREFIX):
        own = [known for known in KEYS if known.startswith(_STORM_PREFIX)]
        hint = did_you_mean(name, own, _TYPO_CUTOFF)
        if hint:
            raise ConfigError(f"unknown configuration key {name!r}{hint}")


def parse_assignment(text: str) -> tuple[str, object]:
    """Split ``key=value`` of a command line; the value is JSON if it parses, else the plain text.

    So ``true``, ``3`` and ``[1, 2]`` get their types and ``hello`` needs no quotes. Raises
    ConfigError when there is no ``=`` or no key before it, and for a value that begins as a list, a
    dict or a quoted text of JSON and is none. The result is not validated.
    """
    name, equals, raw = text.partition("=")
    name = name.strip()
    if not equals or not name:
        raise ConfigError(f"{text!r} sets nothing; expected key=value, as in topology.workers=2")
    try:
        value: object = json.loads(raw, parse_constant=_no_constant)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError) and raw.lstrip().startswith(("[", "{", '"')):
            raise ConfigError(
                f"{text} begins as JSON but is none: {error.msg} at character {error.pos + 1} of "
                f'the value; as a text it goes into quotes: {name}="..."'
            ) from error
        value = raw
    return name, value


def _no_constant(text: str) -> object:
    # json would read NaN and Infinity, which are no JSON and which no key accepts
    raise ValueError(text)


_STORM_YAML: Final = (
    "## storm.yaml",
    "",
    "A file of YAML with a line as `nimbus.seeds: [alpha, beta]` for each key, for all that is",
    "done with one cluster. Commands of the cluster read the first of these that is there, and no",
    "other:",
    "",
    "1. the one that `--config FILE` names;",
    "2. `$STORM_CONF_DIR/storm.yaml`;",
    "3. `~/.storm/storm.yaml`, where Storm's own client looks;",
    "4. `~/.config/storm-py/storm.yaml`, or in `$XDG_CONFIG_HOME` if that is set;",
    "5. `/etc/storm-py/storm.yaml`.",
    "",
    "A key that is there twice is an error, as is a value that is none of the key's; an unknown",
    "key that looks like a misspelt one is warned of.",
    "",
    "# Keys of topologies",
    "",
)

_CLUSTER: Final = (
    "# Keys of the cluster",
    "",
    "Its daemons and clients go by these. They stand in storm.yaml, and are the same on every",
    "machine but for what is about the machine itself, as its folders and slots. A topology has no",
    "use for them. [A page of its own](cluster.md) says which to set.",
    "",
)


def markdown() -> str:
    """Return docs/configuration.md, generated from ``KEYS``."""
    lines: list[str] = [
        "# Configuration",
        "",
        "<!-- Generated from storm_py/config_keys.py; change it there, then write this file with",
        "     python -c 'from storm_py.config import markdown; print(markdown(), end=\"\")' -->",
        "",
        "Each of these overrides what stands above it:",
        "",
        "1. the defaults below;",
        "2. storm.yaml, see [below](#stormyaml);",
        "3. the topology's file, whose function returns `(builder, conf)`: the topology, and a",
        "   `Config` or a dict;",
        "4. the command line: `-c key=value`, where the value is read as JSON if it is JSON, and",
        "   options of their own such as `--workers`;",
        "5. one component's `get_component_configuration`;",
        "6. for one component, `add_configuration` on what `set_spout` and `set_bolt` return.",
        "",
        "So what you type wins over what the file says, as with Storm's `-c`, but for what a",
        "component needs for itself.",
        "",
        "Keys that Storm has keep Storm's name; keys of this project begin with `storm_py.`.",
        "Any other key is the topology's own, unless it looks like one of these misspelt.",
        "",
        *_STORM_YAML,
    ]
    for key in KEYS.values():
        lines += _CLUSTER if key is CLUSTER_KEYS[0] else []
        lines += [f"## `{key.name}`", "", key.doc, "", f"- Default: `{json.dumps(key.default)}`"]
        lines += [f"- Value: {key.expected}"]
        lines += [f"- Unit: {key.unit}"] if key.unit else []
        lines += [f"- In Storm: {key.storm}"] if key.storm else []
        lines += [""]
    return "\n".join(lines[:-1]) + "\n"
