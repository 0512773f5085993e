"""Bolts for tests: one that keeps what it receives, and the sinks behind a component alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from storm_py.api.collector import BasicOutputCollector, OutputCollector
from storm_py.api.component import BaseBasicBolt, BaseRichBolt
from storm_py.api.context import TopologyContext
from storm_py.api.tuples import Tuple, Value

from .shared import Shared

__all__ = ["CapturingBolt", "HoldingBolt", "SinkBolt"]


class _Captured(Shared):
    """What a capturing bolt and its copies share."""

    label = "CapturingBolt"

    def __init__(self) -> None:
        super().__init__()
        self.tuples: list[Tuple] = []
        self.values: list[list[Value]] = []


class CapturingBolt(BaseRichBolt):
    """A bolt that keeps every tuple it receives and acks it.

    All tasks and copies capture into one place, which the object that the test holds reads.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._captured = _Captured()

    @property
    def values(self) -> list[list[Value]]:
        """The values received so far, in order of arrival."""
        return copy.deepcopy(self._captured.values)

    @property
    def tuples(self) -> list[Tuple]:
        """The tuples received so far, with their sources."""
        return list(self._captured.tuples)

    def clear(self) -> None:
        """Forget what was received."""
        self._captured.tuples.clear()
        self._captured.values.clear()

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector
    ) -> None:
        self._collector = collector
        self._tuples = self._captured.tuples  # in another process this says why it cannot work

    def execute(self, tup: Tuple) -> None:
        self._tuples.append(tup)
        self._captured.values.append(list(tup.values))
        self._collector.ack(tup)


class HoldingBolt(BaseRichBolt):
    """A bolt that neither acks nor fails what it receives, as if it worked on it for ever."""

    def execute(self, tup: Tuple) -> None:
        """Hold the tuple."""


class SinkBolt(BaseBasicBolt):
    """A bolt that acks what it receives and does nothing with it."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Do nothing."""
