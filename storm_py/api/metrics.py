"""Metrics of user code: what a task counts, and who hears of it.

A task registers metrics on its context in ``open`` or ``prepare``; at the end of every bucket of
time each is read, on the task's own thread, and the values go to the metrics consumers. A consumer
is registered in the configuration (``Config.register_metrics_consumer``) and runs as a component
of its own, ``__metrics_<class>``. Without a consumer nothing is read. Values travel as tuples do:
they are of the types that can be emitted. Mirrors ``org.apache.storm.metric.api``; counters, gauges
and histograms are those of Storm 2, delivered to the same consumers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the context registers metrics
    from .context import TopologyContext

__all__ = [
    "CountMetric",
    "Counter",
    "DataPoint",
    "Gauge",
    "Histogram",
    "MeanReducer",
    "Metric",
    "MetricsConsumer",
    "MultiCountMetric",
    "ReducedMetric",
    "Reducer",
    "TaskInfo",
]

#: Two values in one class of a histogram differ by at most this factor.
_CLASS_WIDTH = 1.02
_LOG_CLASS_WIDTH = math.log(_CLASS_WIDTH)


class Metric:
    """Something that can be read once per bucket (Storm's ``IMetric``)."""

    def get_value_and_reset(self) -> object:
        """Return the value of the bucket that ends now and begin the next; None for no value."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_value_and_reset()")


class CountMetric(Metric):
    """A count per bucket."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._count = 0

    def incr(self) -> None:
        """Count one."""
        self._count += 1

    def incr_by(self, increment: int) -> None:
        """Count ``increment``."""
        self._count += increment

    def get_value_and_reset(self) -> int:
        """Return what was counted in this bucket."""
        count, self._count = self._count, 0
        return count


class MultiCountMetric(Metric):
    """A count per bucket for each key; the value is a dict."""

    def __init__(self) -> None:
        """Begin without keys; each comes to be when it is first asked for."""
        self._counts: dict[str, CountMetric] = {}

    def scope(self, key: str) -> CountMetric:
        """Return the count of ``key``."""
        count = self._counts.get(key)
        if count is None:
            count = self._counts[key] = CountMetric()
        return count

    def get_value_and_reset(self) -> dict[str, int]:
        """Return the count of every key."""
        return {key: count.get_value_and_reset() for key, count in self._counts.items()}


class Reducer:
    """How a ``ReducedMetric`` sums up what it gets (Storm's ``IReducer``)."""

    def init(self) -> Any:
        """Return the accumulator of an empty bucket."""
        raise NotImplementedError(f"{type(self).__name__} does not define init()")

    def reduce(self, accumulator: Any, value: Any) -> Any:
        """Return the accumulator with ``value`` added."""
        raise NotImplementedError(f"{type(self).__name__} does not define reduce()")

    def extract_result(self, accumulator: Any) -> object:
        """Return the value of a bucket, None for none."""
        raise NotImplementedError(f"{type(self).__name__} does not define extract_result()")


class MeanReducer(Reducer):
    """The mean of numbers; None of no numbers."""

    def init(self) -> tuple[int, float]:
        """Return count and sum."""
        return 0, 0.0

    def reduce(self, accumulator: tuple[int, float], value: float) -> tuple[int, float]:
        """Add a number."""
        return accumulator[0] + 1, accumulator[1] + value

    def extract_result(self, accumulator: tuple[int, float]) -> float | None:
        """Return the mean."""
        count, total = accumulator
        return total / count if count else None


class ReducedMetric(Metric):
    """What a reducer makes of the values of a bucket."""

    def __init__(self, reducer: Reducer) -> None:
        """Sum up with ``reducer``, for example ``MeanReducer()``."""
        self._reducer = reducer
        self._accumulator = reducer.init()

    def update(self, value: object) -> None:
        """Add a value."""
        self._accumulator = self._reducer.reduce(self._accumulator, value)

    def get_value_and_reset(self) -> object:
        """Return the reducer's result for this bucket."""
        accumulator, self._accumulator = self._accumulator, self._reducer.init()
        return self._reducer.extract_result(accumulator)


class Counter(Metric):
    """A count since the task started: it is read and goes on (Storm 2's ``Counter``)."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Add ``n``."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Take ``n`` away."""
        self._count -= n

    @property
    def count(self) -> int:
        """The count."""
        return self._count

    def get_value_and_reset(self) -> int:
        """Return the count, which is not reset."""
        return self._count


class Gauge(Metric):
    """What a function returns when it is asked, on the thread of the task."""

    def __init__(self, function: Callable[[], object]) -> None:
        """Ask ``function`` once per bucket."""
        self._function = function

    def get_value_and_reset(self) -> object:
        """Return what the function returns."""
        return self._function()


class Histogram(Metric):
    """The distribution of the numbers of a bucket, in bounded memory.

    The value is a dict of ``count``, ``mean``, ``min``, ``max`` and the percentiles ``p50``,
    ``p95`` and ``p99``; None of no numbers. Percentiles are off by at most 1 % of their value,
    because numbers are counted in classes of that width; the rest is exact.
    """

    def __init__(self) -> None:
        """Begin empty."""
        self._reset()

    def _reset(self) -> None:
        self._classes: dict[tuple[int, int], int] = {}
        self._count = 0
        self._total = 0.0
        self._min = math.inf
        self._max = -math.inf

    def update(self, value: float) -> None:
        """Add a number; ValueError for one that is not finite."""
        if not math.isfinite(value):
            raise ValueError(f"a histogram got {value!r}; expected a finite number")
        sign = (value > 0) - (value < 0)
        place = sign * round(math.log(abs(value)) / _LOG_CLASS_WIDTH) if sign else 0
        key = (sign, place)
        self._classes[key] = self._classes.get(key, 0) + 1
        self._count += 1
        self._total += value
        self._min = min(self._min, value)
        self._max = max(self._max, value)

    def percentile(self, share: float) -> float:
        """Return the number that ``share`` (0 to 1) of all numbers are not above; 0.0 of none."""
        if not self._count:
            return 0.0
        rank = max(1, math.ceil(share * self._count))
        sign = place = 0
        for key in sorted(self._classes):
            sign, place = key
            rank -= self._classes[key]
            if rank <= 0:
                break
        try:
            middle = sign * math.exp(sign * place * _LOG_CLASS_WIDTH)
        except OverflowError:
            middle = sign * math.inf
        return max(self._min, min(self._max, middle))

    def get_value_and_reset(self) -> dict[str, float] | None:
        """Return the distribution of this bucket."""
        if not self._count:
            return None
        found: dict[str, float] = {
            "count": self._count,
            "mean": self._total / self._count,
            "min": self._min,
            "max": self._max,
            "p50": self.percentile(0.5),
            "p95": self.percentile(0.95),
            "p99": self.percentile(0.99),
        }
        self._reset()
        return found


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """Which task data points come from, and when (Storm's ``IMetricsConsumer.TaskInfo``)."""

    src_worker_port: int
    src_component_id: str
    src_task_id: int
    #: Seconds since the Unix epoch.
    timestamp: int
    #: Length of the bucket.
    update_interval_secs: float


@dataclass(frozen=True, slots=True)
class DataPoint:
    """One value of one metric (Storm's ``IMetricsConsumer.DataPoint``)."""

    name: str
    value: object


class MetricsConsumer:
    """Hears of every bucket of every task (Storm's ``IMetricsConsumer``).

    It is made without arguments, in a process of its own that runs nothing else, and one is made
    for each task of its component. Its exceptions are those of a bolt.
    """

    def prepare(
        self, conf: Mapping[str, Any], registration_argument: Any, context: TopologyContext
    ) -> None:
        """Get ready; ``registration_argument`` is what it was registered with."""

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        """Take the values of one bucket of one task."""
        raise NotImplementedError(
            f"{type(self).__name__} does not define handle_data_points(self, task_info, points)"
        )

    def cleanup(self) -> None:
        """Clean up at the end; not called when the process is killed."""
