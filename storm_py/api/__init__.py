"""What users write topologies against: values and base classes, with no behaviour but checks.

Everything public is re-exported by ``storm_py`` itself; import it from there. Running a topology
is the business of ``storm_py.engine`` and ``storm_py.runtime``, which this package never imports.
"""

from __future__ import annotations

from .batches import Batch
from .collector import (
    BasicOutputCollector,
    BatchOutputCollector,
    OutputCollector,
    SpoutOutputCollector,
)
from .component import BaseBasicBolt, BaseComponent, BaseRichBolt, BaseRichSpout, BatchBolt
from .context import TopologyContext
from .grouping import CustomStreamGrouping, Grouping, GroupingKind
from .topology import (
    BoltDeclarer,
    ComponentSpec,
    Edge,
    OutputFieldsDeclarer,
    SpoutDeclarer,
    StormTopology,
    StreamInfo,
    TopologyBuilder,
    apply_limits,
)
from .tuples import Fields, GlobalStreamId, Tuple, TupleContext, Values

__all__ = [
    "BaseBasicBolt",
    "BaseComponent",
    "BaseRichBolt",
    "BaseRichSpout",
    "BasicOutputCollector",
    "Batch",
    "BatchBolt",
    "BatchOutputCollector",
    "BoltDeclarer",
    "ComponentSpec",
    "CustomStreamGrouping",
    "Edge",
    "Fields",
    "GlobalStreamId",
    "Grouping",
    "GroupingKind",
    "OutputCollector",
    "OutputFieldsDeclarer",
    "SpoutDeclarer",
    "SpoutOutputCollector",
    "StormTopology",
    "StreamInfo",
    "TopologyBuilder",
    "TopologyContext",
    "Tuple",
    "TupleContext",
    "Values",
    "apply_limits",
]
