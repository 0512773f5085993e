"""Structs of Storm's interface that nimbus fills in: how the cluster and its topologies are doing.

As in `storm_py.rpc.definitions`, ``summaries.pyi`` beside this file declares the classes to type
checkers.
"""

from __future__ import annotations

from .service import IDL

__all__ = [
    "BoltAggregateStats",
    "BoltStats",
    "ClusterSummary",
    "CommonAggregateStats",
    "ComponentAggregateStats",
    "ComponentPageInfo",
    "ComponentType",
    "DebugOptions",
    "ErrorInfo",
    "ExecutorAggregateStats",
    "ExecutorSpecificStats",
    "ExecutorStats",
    "ExecutorSummary",
    "NimbusSummary",
    "SpecificAggregateStats",
    "SpoutAggregateStats",
    "SpoutStats",
    "SupervisorPageInfo",
    "SupervisorSummary",
    "TopologyInfo",
    "TopologyPageInfo",
    "TopologyStats",
    "TopologySummary",
    "WorkerSummary",
]

BoltAggregateStats = IDL.BoltAggregateStats
BoltStats = IDL.BoltStats
ClusterSummary = IDL.ClusterSummary
CommonAggregateStats = IDL.CommonAggregateStats
ComponentAggregateStats = IDL.ComponentAggregateStats
ComponentPageInfo = IDL.ComponentPageInfo
ComponentType = IDL.ComponentType
DebugOptions = IDL.DebugOptions
ErrorInfo = IDL.ErrorInfo
ExecutorAggregateStats = IDL.ExecutorAggregateStats
ExecutorSpecificStats = IDL.ExecutorSpecificStats
ExecutorStats = IDL.ExecutorStats
ExecutorSummary = IDL.ExecutorSummary
NimbusSummary = IDL.NimbusSummary
SpecificAggregateStats = IDL.SpecificAggregateStats
SpoutAggregateStats = IDL.SpoutAggregateStats
SpoutStats = IDL.SpoutStats
SupervisorPageInfo = IDL.SupervisorPageInfo
SupervisorSummary = IDL.SupervisorSummary
TopologyInfo = IDL.TopologyInfo
TopologyPageInfo = IDL.TopologyPageInfo
TopologyStats = IDL.TopologyStats
TopologySummary = IDL.TopologySummary
WorkerSummary = IDL.WorkerSummary
