"""TaskMetrics: the metrics of one task, read once per bucket and sent to the consumers.

Data points travel as rows of the stream `__metrics`, which `storm_py.engine.system` adds to every
component once there is a consumer. They are not counted as emitted and never tracked. While a
consumer cannot take more, nothing is read: the bucket grows instead, so that a slow consumer costs
resolution and neither memory nor throughput. Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from storm_py.api.metrics import Metric
from storm_py.constants import METRICS_STREAM_ID
from storm_py.core.batching import Batcher, OpenBatch
from storm_py.core.plan import PhysicalPlan
from storm_py.core.ticker import Ticker
from storm_py.errors import a_type
from storm_py.wire.values import Codec

from .user_code import UserError, call_user


class TaskMetrics:
    """The metrics of `task`; `flush` is called with a batch that is full."""

    def __init__(
        self,
        plan: PhysicalPlan,
        task: int,
        port: int,
        batcher: Batcher,
        flush: Callable[[OpenBatch], None],
        max_row_bytes: int,
        codec: Codec,
    ) -> None:
        self._component = plan.task_to_component[task]
        self._task = task
        self._port = port
        self._batcher = batcher
        self._flush = flush
        self._max_row_bytes = max_row_bytes
        self._metrics: dict[str, tuple[float, Metric]] = {}
        self._tickers: dict[float, Ticker] = {}
        self._codec = codec
        self._pack = codec.packer()
        streams = plan.topology.components[self._component].streams
        self._stream = list(streams).index(METRICS_STREAM_ID) if METRICS_STREAM_ID in streams else 0
        targets = plan.targets(self._component).get(METRICS_STREAM_ID, ())
        #: The tasks of each consumer, in turn.
        self._dests: list[Iterator[int]] = [itertools.cycle(t.tasks) for t in targets]

    def register(self, name: str, metric: Metric, bucket_secs: float) -> None:
        """Read `metric` every `bucket_secs`; ValueError or TypeError says what is wrong."""
        label = f"register_metric of {self._component!r}"
        if not isinstance(name, str) or not name:
            raise TypeError(f"{label} got the name {name!r}; expected a str that is not empty")
        if name in self._metrics:
            raise ValueError(f"{label}: there is a metric {name!r} already; take another name")
        if not callable(getattr(metric, "get_value_and_reset", None)):
            raise TypeError(
                f"{label}: {name!r} is {a_type(metric)}; expected a Metric, which has "
                "get_value_and_reset()"
            )
        is_number = isinstance(bucket_secs, (int, float)) and not isinstance(bucket_secs, bool)
        if not is_number or not 0 < bucket_secs < float("inf"):
            raise ValueError(
                f"{label}: {name!r} has a bucket of {bucket_secs!r} s; expected a number above 0"
            )
        self._metrics[name] = (bucket_secs, metric)

    def start(self, now: float) -> None:
        """The buckets begin."""
        if self._dests:
            lengths = {secs for secs, _ in self._metrics.values()}
            self._tickers = {secs: Ticker(secs, now) for secs in sorted(lengths)}

    @property
    def next(self) -> float | None:
        """When a bucket is over, None for never."""
        return min((ticker.next for ticker in self._tickers.values()), default=None)

    def tick(self, now: float, stamp: Callable[[], int]) -> None:
        """Send the buckets that are over; `stamp` gives microseconds since the epoch."""
        for secs, ticker in self._tickers.items():
            if ticker.due(now):
                self._send(secs, stamp() // 1_000_000)

    def finish(self, stamp: Callable[[], int]) -> None:
        """Send every bucket as it is: the task has ended, and with it its buckets."""
        for secs in self._tickers:
            self._send(secs, stamp() // 1_000_000)
        self._tickers = {}

    def _send(self, secs: float, timestamp: int) -> None:
        points: list[list[object]] = []
        for name, (bucket_secs, metric) in self._metrics.items():
            if bucket_secs == secs:
                where = f"metric {name!r}"
                value = call_user(self._component, self._task, where, metric.get_value_and_reset)
                if value is not None:
                    points.append([name, value])
        if not points:
            return
        row = self._row([[self._port, self._component, self._task, timestamp, secs], points])
        for dests in self._dests:
            dest = next(dests)
            if self._batcher.add(dest, self._stream, row):
                self._flush(self._batcher.batch(dest))

    def _row(self, values: list[object]) -> bytes:
        try:
            row = self._codec.pack_slowly(values)
        except Exception as error:
            raise self._refused("cannot be serialised", error) from error
        if len(row) > self._max_row_bytes:
            raise self._refused(
                f"are {len(row)} bytes, above the limit of {self._max_row_bytes}", None
            )
        return row

    def _refused(self, why: str, error: Exception | None) -> UserError:
        names = ", ".join(self._metrics)
        cause = "" if error is None else f": {error}"
        problem = ValueError(f"the values of {names} {why}{cause}")
        return UserError(self._component, self._task, "metrics", problem)
