"""Structs of Storm's interface that callers fill in: topologies, options, heartbeats; its enums.

The classes are thriftpy2's; ``definitions.pyi`` beside this file declares them to type checkers,
and a test compares it with the IDL. They take their fields by keyword; what is not set is None.
Values of enums are ints. Required fields, types and ranges are checked when a struct is sent.
"""

from __future__ import annotations

from thriftpy2.thrift import TPayload as Struct

from .service import IDL

__all__ = [
    "AccessControl",
    "AccessControlType",
    "BeginDownloadResult",
    "Bolt",
    "ComponentCommon",
    "ComponentObject",
    "Credentials",
    "ExecutorInfo",
    "GetInfoOptions",
    "GlobalStreamId",
    "Grouping",
    "JavaObject",
    "JavaObjectArg",
    "KillOptions",
    "LogConfig",
    "LogLevel",
    "LogLevelAction",
    "NullStruct",
    "NumErrorsChoice",
    "ReadableBlobMeta",
    "RebalanceOptions",
    "SettableBlobMeta",
    "SharedMemory",
    "ShellComponent",
    "SpoutSpec",
    "StateSpoutSpec",
    "StormTopology",
    "StreamInfo",
    "Struct",
    "SubmitOptions",
    "SupervisorWorkerHeartbeat",
    "SupervisorWorkerHeartbeats",
    "TopologyInitialStatus",
]

AccessControl = IDL.AccessControl
AccessControlType = IDL.AccessControlType
BeginDownloadResult = IDL.BeginDownloadResult
Bolt = IDL.Bolt
ComponentCommon = IDL.ComponentCommon
ComponentObject = IDL.ComponentObject
Credentials = IDL.Credentials
ExecutorInfo = IDL.ExecutorInfo
GetInfoOptions = IDL.GetInfoOptions
GlobalStreamId = IDL.GlobalStreamId
Grouping = IDL.Grouping
JavaObject = IDL.JavaObject
JavaObjectArg = IDL.JavaObjectArg
KillOptions = IDL.KillOptions
LogConfig = IDL.LogConfig
LogLevel = IDL.LogLevel
LogLevelAction = IDL.LogLevelAction
NullStruct = IDL.NullStruct
NumErrorsChoice = IDL.NumErrorsChoice
ReadableBlobMeta = IDL.ReadableBlobMeta
RebalanceOptions = IDL.RebalanceOptions
SettableBlobMeta = IDL.SettableBlobMeta
SharedMemory = IDL.SharedMemory
ShellComponent = IDL.ShellComponent
SpoutSpec = IDL.SpoutSpec
StateSpoutSpec = IDL.StateSpoutSpec
StormTopology = IDL.StormTopology
StreamInfo = IDL.StreamInfo
SubmitOptions = IDL.SubmitOptions
SupervisorWorkerHeartbeat = IDL.SupervisorWorkerHeartbeat
SupervisorWorkerHeartbeats = IDL.SupervisorWorkerHeartbeats
TopologyInitialStatus = IDL.TopologyInitialStatus
