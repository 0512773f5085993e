"""The table of configuration keys: name, default, check and meaning of each.

``KEYS`` is the single source: defaults, checks and docs/configuration.md all come from it. Keys
that Storm has keep Storm's name; keys of this project begin with ``storm_py.``. Only the table is
here, its part about clusters in ``storm_py.config_cluster_keys``: ``storm_py.config_checks`` says
what values may be, ``storm_py.config`` has the constants,
combines layers of values and judges them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .config_checks import (
    Key,
    boolean,
    consumers,
    integer,
    number,
    or_none,
    paths,
    serializers,
    topology_name,
)
from .config_cluster_keys import CLUSTER_KEYS

__all__ = ["KEYS", "Key"]


_KIB: Final = 1024
_MIB: Final = 1024 * _KIB


_TOPOLOGY_KEYS: Final = (
    Key(
        "topology.name",
        None,
        or_none(topology_name()),
        "",
        "Name of the topology; without one it is named after the module it is loaded from.",
        "null",
    ),
    Key(
        "topology.workers",
        1,
        integer(1, 65535),
        "workers",
        "Number of workers that the executors are spread over; each has a stream manager.",
        "1",
    ),
    Key(
        "topology.tasks",
        None,
        or_none(integer(1)),
        "tasks",
        "Number of tasks of a component; null means as many as its parallelism hint. Fixed for "
        "the life of a topology.",
        "null",
    ),
    Key(
        "topology.max.task.parallelism",
        None,
        or_none(integer(1)),
        "tasks",
        "Cap on the tasks and executors of each component, to run a large topology on little.",
        "null",
    ),
    Key(
        "topology.debug",
        False,
        boolean(),
        "",
        "Log every emitted tuple: component, task, stream, the tasks it goes to, and its values, "
        "cut to 500 characters. At INFO, to the log of the instance; with --inline to the "
        "terminal. For a single component, set it there.",
        "false",
    ),
    Key(
        "topology.testing.always.try.serialize",
        False,
        boolean(),
        "",
        "Pack and unpack every tuple, also those that stay within a process.",
        "false",
    ),
    Key(
        "topology.acker.executors",
        None,
        or_none(integer(0)),
        "executors",
        "0 turns tracking off: delivery is at most once and message ids are acked at once. Any "
        "other value, null included, means on; what is emitted without a message id is then "
        "still not tracked.",
        "null, as many as workers; here stream managers track and no executor is started for it",
    ),
    Key(
        "topology.max.spout.pending",
        None,
        or_none(integer(1)),
        "tuples",
        "Limit on the tracked, unfinished tuples of each spout task; null means none. While it "
        "is reached next_tuple is not called.",
        "null",
    ),
    Key(
        "topology.message.timeout.secs",
        30,
        integer(1),
        "seconds",
        "Time after which a tracked tuple that is not finished fails: once this time is over, "
        "and before twice of it is.",
        "30",
    ),
    Key(
        "topology.tick.tuple.freq.secs",
        None,
        or_none(number(0.001)),
        "seconds",
        "Time between two tick tuples for each task of a bolt; null means no ticks. Usually set "
        "for one component.",
        "null; whole seconds only",
    ),
    Key(
        "topology.auto.task.hooks",
        None,
        or_none(paths()),
        "",
        "Task hooks for every task: classes that can be imported where the topology runs and are "
        "made without arguments.",
        "null; Java classes",
    ),
    Key(
        "topology.metrics.consumer.register",
        None,
        or_none(consumers()),
        "",
        "Who hears of metrics; Config.register_metrics_consumer adds one. Each runs as a component "
        "of its own. Without any, metrics are not read.",
        "null; Java classes, and filters that do not exist here",
    ),
    Key(
        "topology.builtin.metrics.bucket.size.secs",
        60,
        number(0.001),
        "seconds",
        "Time after which the counters, gauges and histograms of a task are read.",
        "60, for the metrics that Storm itself keeps",
    ),
    Key(
        "topology.error.throttle.interval.secs",
        10,
        number(0.001),
        "seconds",
        "Time over which the errors of report_error are counted, for the key below.",
        "10",
    ),
    Key(
        "topology.max.error.report.per.interval",
        5,
        integer(1),
        "errors",
        "Errors of report_error that each executor shows per interval; of the rest only the number "
        "is shown, when the interval is over. Errors that end an executor are always shown.",
        "5",
    ),
    Key(
        "nimbus.thrift.threads",
        64,
        integer(1, 4096),
        "threads",
        "Calls that nimbus carries out at the same time. Clients that ask nothing need none.",
        "64",
    ),
    Key(
        "nimbus.queue.size",
        1024,
        integer(0),
        "calls",
        "Calls that wait while all threads of nimbus are busy; further ones are refused.",
        "100000; who is so far behind has given up long before it is answered",
    ),
    Key(
        "nimbus.thrift.max_buffer_size",
        16 * _MIB,
        integer(64 * _KIB, 1024 * _MIB),
        "bytes",
        "Largest call to nimbus. Code is uploaded in chunks; a topology has to fit into one call, "
        "with all that its components hold.",
        "1048576; components that are Python objects are larger than names of Java classes",
    ),
    Key(
        "storm.thrift.socket.timeout.ms",
        600_000,
        integer(1),
        "milliseconds",
        "Time without a call after which nimbus closes a connection, and time that a client waits "
        "for an answer.",
        "600000",
    ),
    Key(
        "storm_py.fuse",
        True,
        boolean(),
        "",
        "Run a bolt in the processes of the component it reads from, where that is its only one, "
        "by local_or_shuffle, and both have as many executors and tasks: rows are handed over "
        "without a copy of what they hold. For a single bolt, set it there. docs/performance.md "
        "says what is given up.",
        "no such key",
    ),
    Key(
        "storm_py.batch.rows",
        1024,
        integer(1, 65535),
        "tuples",
        "Tuples per frame at which it is sent. Idle input and the two keys below send it earlier.",
        "no such key; its topology.transfer.batch.size of 1 would cost most of the throughput here",
    ),
    Key(
        "storm_py.batch.bytes",
        64 * _KIB,
        integer(1),
        "bytes",
        "Size at which a frame is sent, whatever the number of its tuples.",
    ),
    Key(
        "storm_py.batch.delay.ms",
        2,
        number(1, 1000),
        "milliseconds",
        "Longest time that a tuple waits for its frame to fill while its sender is busy.",
    ),
    Key(
        "storm_py.batch.linger.ms",
        None,
        or_none(number(0, 250)),
        "milliseconds",
        "How long a frame that is not full may wait for more tuples while its sender is idle; one "
        "after a silence of that length does not wait. null: not at all, but where processes have "
        "to wait for a processor most of the time, as 100 instances on two cores do, up to 250 ms.",
    ),
    Key(
        "storm_py.frame.max.bytes",
        8 * _MIB,
        integer(_KIB, 1024 * _MIB),
        "bytes",
        "Largest frame. A batch above it is split; a single tuple above it, with 16 bytes for each "
        "root if it has several, is an error at emit (less than 80 bytes of header do not count).",
    ),
    Key(
        "storm_py.key.groups",
        1024,
        integer(1, 65536),
        "groups",
        "Number of groups that keys of a fields grouping fall into; groups are dealt out to tasks. "
        "At least the largest number of tasks of such a bolt.",
    ),
    Key(
        "storm_py.backpressure.window.secs",
        0.5,
        number(0.01, 60),
        "seconds",
        "Work that may wait inside a consumer, as the time it needs for it at its measured rate.",
    ),
    Key(
        "storm_py.backpressure.high.bytes",
        _MIB,
        integer(_KIB),
        "bytes",
        "Backlog of one task in a stream manager above which the senders to it are paused.",
    ),
    Key(
        "storm_py.backpressure.low.ratio",
        0.5,
        number(0, 0.95),
        "",
        "Share of the high mark below which paused senders go on.",
    ),
    Key(
        "storm_py.spout.wait.ms",
        1000,
        number(1, 60_000),
        "milliseconds",
        "Longest wait between calls of next_tuple that emit nothing. Waits start at 1 ms and "
        "double up to 50 ms; then each is a twentieth of the silence so far. So the first tuple "
        "behind a silence may be late by that, and by this limit at most: by a second behind 20 s "
        "or more. That tuple ends the waits. A spout that has a file descriptor to wait on, see "
        "its method wait_fd, does not wait longer than that is quiet.",
        "1 ms, the sleep of Storm's progressive wait strategy; backing off spares an idle machine",
    ),
    Key(
        "storm_py.stuck.secs",
        30,
        number(0.1),
        "seconds",
        "Time that user code may take for one call, or for a millisecond's worth of fast ones, "
        "before a warning names task, method and rows. It comes again when the time has doubled.",
    ),
    Key(
        "storm_py.fall.back.on.pickle",
        False,
        boolean(),
        "",
        "Pickle values of types that are neither built in nor registered, instead of refusing "
        "them at emit. Slow, and unsafe if anybody else can reach the sockets. For the whole "
        "topology; docs/values.md says more.",
        "false, for topology.fall.back.on.java.serialization",
    ),
    Key(
        "storm_py.serializers",
        [],
        serializers(),
        "",
        "Classes with a serializer of their own, as `Config.register_serialization` stores them: "
        "import paths of class, dumps and loads. For the whole topology; docs/values.md says more.",
        "topology.kryo.register",
    ),
    Key(
        "storm_py.local.max.failures",
        10,
        or_none(integer(1)),
        "failures",
        "How often in a row a task of a local run may raise before the run is given up; null for "
        "any number. In a row are failures with less than 15 s between them.",
    ),
    Key(
        "storm_py.kill.on.end",
        False,
        boolean(),
        "",
        "Whether nimbus kills a topology once its input has ended and all of it is processed; "
        "otherwise it stays, idle.",
    ),
    Key(
        "storm_py.drain.timeout.secs",
        30,
        number(0, 86_400),
        "seconds",
        "Time that tuples on their way get to be processed when a topology is stopped; what is "
        "left then is dropped.",
    ),
    Key(
        "storm_py.submit.max.bytes",
        100 * _MIB,
        integer(_KIB, 1024 * _MIB),
        "bytes",
        "Largest project that is packed when a topology is submitted, before compression and "
        "after.",
    ),
)

#: Every key there is, by name, in the order of the documentation.
KEYS: Final[Mapping[str, Key]] = MappingProxyType(
    {key.name: key for key in (*_TOPOLOGY_KEYS, *CLUSTER_KEYS)}
)
