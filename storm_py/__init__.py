"""storm-py: topologies of spouts and bolts over unbounded streams, in Python processes.

The public names, all of them importable from here. The interface is Storm's, in snake_case. This
module only re-exports; it loads no socket library, no ZooKeeper client and no Spark.
"""

from __future__ import annotations

from .api.batches import Batch
from .api.collector import (
    BasicOutputCollector,
    BatchOutputCollector,
    OutputCollector,
    SpoutOutputCollector,
)
from .api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt
from .api.context import TopologyContext
from .api.grouping import CustomStreamGrouping, Grouping, GroupingKind
from .api.hooks import (
    BaseTaskHook,
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
)
from .api.metrics import (
    Counter,
    CountMetric,
    DataPoint,
    Gauge,
    Histogram,
    MeanReducer,
    Metric,
    MetricsConsumer,
    MultiCountMetric,
    ReducedMetric,
    Reducer,
    TaskInfo,
)
from .api.topology import (
    BoltDeclarer,
    OutputFieldsDeclarer,
    SpoutDeclarer,
    StormTopology,
    TopologyBuilder,
)
from .api.tuples import Fields, GlobalStreamId, Tuple, Values
from .config import Config
from .constants import VERSION
from .errors import (
    ConfigError,
    EmitError,
    FailedException,
    InvalidTopologyException,
    ProtocolError,
    ReportedFailedException,
    StormPyError,
    TopologyFailed,
    TopologyLoadError,
)
from .metrics import LoggingMetricsConsumer

__version__ = VERSION

__all__ = [  # noqa: RUF022 - grouped by purpose
    # building
    "BoltDeclarer",
    "CustomStreamGrouping",
    "Grouping",
    "GroupingKind",
    "OutputFieldsDeclarer",
    "SpoutDeclarer",
    "StormTopology",
    "TopologyBuilder",
    # components
    "BaseBasicBolt",
    "BaseRichBolt",
    "BaseRichSpout",
    "BatchBolt",
    # values
    "Batch",
    "Fields",
    "GlobalStreamId",
    "Tuple",
    "Values",
    # collectors
    "BasicOutputCollector",
    "BatchOutputCollector",
    "OutputCollector",
    "SpoutOutputCollector",
    # context
    "TopologyContext",
    # hooks
    "BaseTaskHook",
    "BoltAckInfo",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "EmitInfo",
    "SpoutAckInfo",
    "SpoutFailInfo",
    # metrics
    "CountMetric",
    "Counter",
    "DataPoint",
    "Gauge",
    "Histogram",
    "LoggingMetricsConsumer",
    "MeanReducer",
    "Metric",
    "MetricsConsumer",
    "MultiCountMetric",
    "ReducedMetric",
    "Reducer",
    "TaskInfo",
    # config
    "Config",
    # errors
    "ConfigError",
    "EmitError",
    "FailedException",
    "InvalidTopologyException",
    "ProtocolError",
    "ReportedFailedException",
    "StormPyError",
    "TopologyFailed",
    "TopologyLoadError",
    # version
    "__version__",
]
