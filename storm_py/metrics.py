"""Metrics consumers that come with storm-py; the interface is in `storm_py.api.metrics`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from .api.metrics import DataPoint, MetricsConsumer, TaskInfo

__all__ = ["LoggingMetricsConsumer"]

_LOG = logging.getLogger(__name__)


class LoggingMetricsConsumer(MetricsConsumer):
    """Writes every data point as a line to the log of its own process (as Storm's of that name)."""

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        """Log one line for each data point."""
        for point in data_points:
            _LOG.info(
                "%d\t%d\t%d:%s\t%s\t%s",
                task_info.timestamp,
                task_info.src_worker_port,
                task_info.src_task_id,
                task_info.src_component_id,
                point.name,
                point.value,
            )
