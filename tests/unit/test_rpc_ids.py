"""The ids of Storm's Thrift interface, written down a second time: what clients that exist rely on.

The tables are those of Storm 2.8.8; `beginFileDownload`, which it no longer has, is that of Storm
1.2.3. A field is its id, with an exclamation mark if it is required, its name and its type. After
an arrow stand the fields of an answer: 0 is the result, the others are exceptions. Ids from 1000 on
are not Storm's.
"""

from __future__ import annotations

from typing import Any

from thriftpy2.thrift import TType

from storm_py.rpc.service import IDL

TYPES = """
enum TopologyInitialStatus
  1 ACTIVE, 2 INACTIVE
enum NumErrorsChoice
  0 ALL, 1 NONE, 2 ONE
enum LogLevelAction
  1 UNCHANGED, 2 UPDATE, 3 REMOVE
enum AccessControlType
  1 OTHER, 2 USER
enum ComponentType
  1 BOLT, 2 SPOUT
JavaObject
  1! full_class_name string, 2! args_list list<JavaObjectArg>
NullStruct
GlobalStreamId
  1! componentId string, 2! streamId string
StreamInfo
  1! output_fields list<string>, 2! direct bool
ShellComponent
  1 execution_command string, 2 script string
ComponentCommon
  1! inputs map<GlobalStreamId,Grouping>, 2! streams map<string,StreamInfo>,
  3 parallelism_hint i32, 4 json_conf string
SpoutSpec
  1! spout_object ComponentObject, 2! common ComponentCommon
Bolt
  1! bolt_object ComponentObject, 2! common ComponentCommon
StateSpoutSpec
  1! state_spout_object ComponentObject, 2! common ComponentCommon
SharedMemory
  1! name string, 2 on_heap double, 3 off_heap_worker double, 4 off_heap_node double
StormTopology
  1! spouts map<string,SpoutSpec>, 2! bolts map<string,Bolt>,
  3! state_spouts map<string,StateSpoutSpec>, 4 worker_hooks list<binary>,
  5 dependency_jars list<string>, 6 dependency_artifacts list<string>, 7 storm_version string,
  8 jdk_version string, 9 component_to_shared_memory map<string,set<string>>,
  10 shared_memory map<string,SharedMemory>
KillOptions
  1 wait_secs i32
RebalanceOptions
  1 wait_secs i32, 2 num_workers i32, 3 num_executors map<string,i32>,
  4 topology_resources_overrides map<string,map<string,double>>, 5 topology_conf_overrides string,
  6 principal string
Credentials
  1! creds map<string,string>, 2 topoOwner string
SubmitOptions
  1! initial_status TopologyInitialStatus, 2 creds Credentials
GetInfoOptions
  1 num_err_choice NumErrorsChoice
LogLevel
  1! action LogLevelAction, 2 target_log_level string, 3 reset_log_level_timeout_secs i32,
  4 reset_log_level_timeout_epoch i64, 5 reset_log_level string
LogConfig
  2 named_logger_level map<string,LogLevel>
AccessControl
  1! type AccessControlType, 2 name string, 3! access i32
SettableBlobMeta
  1! acl list<AccessControl>, 2 replication_factor i32
ReadableBlobMeta
  1! settable SettableBlobMeta, 2! version i64, 1000 sha256 string
BeginDownloadResult
  1! version i64, 2! session string, 3 data_size i64
TopologySummary
  1! id string, 2! name string, 3! num_tasks i32, 4! num_executors i32, 5! num_workers i32,
  6! uptime_secs i32, 7! status string, 8 storm_version string, 9 topology_version string,
  513 sched_status string, 514 owner string, 515 replication_count i32,
  521 requested_memonheap double, 522 requested_memoffheap double, 523 requested_cpu double,
  524 assigned_memonheap double, 525 assigned_memoffheap double, 526 assigned_cpu double,
  527 requested_generic_resources map<string,double>,
  528 assigned_generic_resources map<string,double>
SupervisorSummary
  1! host string, 2! uptime_secs i32, 3! num_workers i32, 4! num_used_workers i32,
  5! supervisor_id string, 6 version string, 7 total_resources map<string,double>,
  8 used_mem double, 9 used_cpu double, 10 fragmented_mem double, 11 fragmented_cpu double,
  12 blacklisted bool, 13 used_generic_resources map<string,double>
NimbusSummary
  1! host string, 2! port i32, 3! uptime_secs i32, 4! isLeader bool, 5! version string,
  6 tlsPort i32
ClusterSummary
  1! supervisors list<SupervisorSummary>, 3! topologies list<TopologySummary>,
  4! nimbuses list<NimbusSummary>
ErrorInfo
  1! error string, 2! error_time_secs i32, 3 host string, 4 port i32
BoltStats
  1! acked map<string,map<GlobalStreamId,i64>>, 2! failed map<string,map<GlobalStreamId,i64>>,
  3! process_ms_avg map<string,map<GlobalStreamId,double>>,
  4! executed map<string,map<GlobalStreamId,i64>>,
  5! execute_ms_avg map<string,map<GlobalStreamId,double>>
SpoutStats
  1! acked map<string,map<string,i64>>, 2! failed map<string,map<string,i64>>,
  3! complete_ms_avg map<string,map<string,double>>
ExecutorStats
  1! emitted map<string,map<string,i64>>, 2! transferred map<string,map<string,i64>>,
  3! specific ExecutorSpecificStats, 4! rate double
ExecutorInfo
  1! task_start i32, 2! task_end i32
ExecutorSummary
  1! executor_info ExecutorInfo, 2! component_id string, 3! host string, 4! port i32,
  5! uptime_secs i32, 7 stats ExecutorStats
DebugOptions
  1 enable bool, 2 samplingpct double
TopologyInfo
  1! id string, 2! name string, 3! uptime_secs i32, 4! executors list<ExecutorSummary>,
  5! status string, 6! errors map<string,list<ErrorInfo>>,
  7 component_debug map<string,DebugOptions>, 8 storm_version string, 513 sched_status string,
  514 owner string, 515 replication_count i32, 521 requested_memonheap double,
  522 requested_memoffheap double, 523 requested_cpu double, 524 assigned_memonheap double,
  525 assigned_memoffheap double, 526 assigned_cpu double
CommonAggregateStats
  1 num_executors i32, 2 num_tasks i32, 3 emitted i64, 4 transferred i64, 5 acked i64,
  6 failed i64, 7 resources_map map<string,double>
SpoutAggregateStats
  1 complete_latency_ms double
BoltAggregateStats
  1 execute_latency_ms double, 2 process_latency_ms double, 3 executed i64, 4 capacity double
ComponentAggregateStats
  1 type ComponentType, 2 common_stats CommonAggregateStats,
  3 specific_stats SpecificAggregateStats, 4 last_error ErrorInfo
TopologyStats
  1 window_to_emitted map<string,i64>, 2 window_to_transferred map<string,i64>,
  3 window_to_complete_latencies_ms map<string,double>, 4 window_to_acked map<string,i64>,
  5 window_to_failed map<string,i64>
WorkerSummary
  1 supervisor_id string, 2 host string, 3 port i32, 4 topology_id string, 5 topology_name string,
  6 num_executors i32, 7 component_to_num_tasks map<string,i64>, 8 time_secs i32,
  9 uptime_secs i32, 521 requested_memonheap double, 522 requested_memoffheap double,
  523 requested_cpu double, 524 assigned_memonheap double, 525 assigned_memoffheap double,
  526 assigned_cpu double, 527 owner string
SupervisorPageInfo
  1 supervisor_summaries list<SupervisorSummary>, 2 worker_summaries list<WorkerSummary>
TopologyPageInfo
  1! id string, 2 name string, 3 uptime_secs i32, 4 status string, 5 num_tasks i32,
  6 num_workers i32, 7 num_executors i32, 8 topology_conf string,
  9 id_to_spout_agg_stats map<string,ComponentAggregateStats>,
  10 id_to_bolt_agg_stats map<string,ComponentAggregateStats>, 11 sched_status string,
  12 topology_stats TopologyStats, 13 owner string, 14 debug_options DebugOptions,
  15 replication_count i32, 16 workers list<WorkerSummary>, 17 storm_version string,
  18 topology_version string, 521 requested_memonheap double, 522 requested_memoffheap double,
  523 requested_cpu double, 524 assigned_memonheap double, 525 assigned_memoffheap double,
  526 assigned_cpu double, 527 requested_regular_on_heap_memory double,
  528 requested_shared_on_heap_memory double, 529 requested_regular_off_heap_memory double,
  530 requested_shared_off_heap_memory double, 531 assigned_regular_on_heap_memory double,
  532 assigned_shared_on_heap_memory double, 533 assigned_regular_off_heap_memory double,
  534 assigned_shared_off_heap_memory double, 535 requested_generic_resources map<string,double>,
  536 assigned_generic_resources map<string,double>
ExecutorAggregateStats
  1 exec_summary ExecutorSummary, 2 stats ComponentAggregateStats
ComponentPageInfo
  1! component_id string, 2! component_type ComponentType, 3 topology_id string,
  4 topology_name string, 5 num_executors i32, 6 num_tasks i32,
  7 window_to_stats map<string,ComponentAggregateStats>,
  8 gsid_to_input_stats map<GlobalStreamId,ComponentAggregateStats>,
  9 sid_to_output_stats map<string,ComponentAggregateStats>,
  10 exec_stats list<ExecutorAggregateStats>, 11 errors list<ErrorInfo>, 12 eventlog_host string,
  13 eventlog_port i32, 14 debug_options DebugOptions, 15 topology_status string,
  16 resources_map map<string,double>
SupervisorWorkerHeartbeat
  1! storm_id string, 2! executors list<ExecutorInfo>, 3! time_secs i32, 1000 statistics string
SupervisorWorkerHeartbeats
  1! supervisor_id string, 2! worker_heartbeats list<SupervisorWorkerHeartbeat>
union JavaObjectArg
  1 int_arg i32, 2 long_arg i64, 3 string_arg string, 4 bool_arg bool, 5 binary_arg binary,
  6 double_arg double
union Grouping
  1 fields list<string>, 2 shuffle NullStruct, 3 all NullStruct, 4 none NullStruct,
  5 direct NullStruct, 6 custom_object JavaObject, 7 custom_serialized binary,
  8 local_or_shuffle NullStruct
union ComponentObject
  1 serialized_java binary, 2 shell ShellComponent, 3 java_object JavaObject
union ExecutorSpecificStats
  1 bolt BoltStats, 2 spout SpoutStats
union SpecificAggregateStats
  1 bolt BoltAggregateStats, 2 spout SpoutAggregateStats
AlreadyAliveException
  1! msg string
NotAliveException
  1! msg string
AuthorizationException
  1! msg string
InvalidTopologyException
  1! msg string
KeyNotFoundException
  1! msg string
KeyAlreadyExistsException
  1! msg string
"""

CALLS = """
submitTopology
  1 name string, 2 uploadedJarLocation string, 3 jsonConf string, 4 topology StormTopology,
  -> 1 e AlreadyAliveException, -> 2 ite InvalidTopologyException, -> 3 aze AuthorizationException
submitTopologyWithOpts
  1 name string, 2 uploadedJarLocation string, 3 jsonConf string, 4 topology StormTopology,
  5 options SubmitOptions, -> 1 e AlreadyAliveException, -> 2 ite InvalidTopologyException,
  -> 3 aze AuthorizationException
killTopology
  1 name string, -> 1 e NotAliveException, -> 2 aze AuthorizationException
killTopologyWithOpts
  1 name string, 2 options KillOptions, -> 1 e NotAliveException, -> 2 aze AuthorizationException
activate
  1 name string, -> 1 e NotAliveException, -> 2 aze AuthorizationException
deactivate
  1 name string, -> 1 e NotAliveException, -> 2 aze AuthorizationException
rebalance
  1 name string, 2 options RebalanceOptions, -> 1 e NotAliveException,
  -> 2 ite InvalidTopologyException, -> 3 aze AuthorizationException
setLogConfig
  1 name string, 2 config LogConfig
getLogConfig
  1 name string, -> 0 success LogConfig
beginFileUpload
  -> 0 success string, -> 1 aze AuthorizationException
uploadChunk
  1 location string, 2 chunk binary, -> 1 aze AuthorizationException
finishFileUpload
  1 location string, -> 1 aze AuthorizationException
beginFileDownload
  1 file string, -> 0 success string, -> 1 aze AuthorizationException
downloadChunk
  1 id string, -> 0 success binary, -> 1 aze AuthorizationException
getBlobMeta
  1 key string, -> 0 success ReadableBlobMeta, -> 1 aze AuthorizationException,
  -> 2 knf KeyNotFoundException
beginBlobDownload
  1 key string, -> 0 success BeginDownloadResult, -> 1 aze AuthorizationException,
  -> 2 knf KeyNotFoundException
downloadBlobChunk
  1 session string, -> 0 success binary, -> 1 aze AuthorizationException
getNimbusConf
  -> 0 success string, -> 1 aze AuthorizationException
getTopologyConf
  1 id string, -> 0 success string, -> 1 e NotAliveException, -> 2 aze AuthorizationException
getClusterInfo
  -> 0 success ClusterSummary, -> 1 aze AuthorizationException
getLeader
  -> 0 success NimbusSummary, -> 1 aze AuthorizationException
isTopologyNameAllowed
  1 name string, -> 0 success bool, -> 1 aze AuthorizationException
getTopologySummaries
  -> 0 success list<TopologySummary>, -> 1 aze AuthorizationException
getTopologySummaryByName
  1 name string, -> 0 success TopologySummary, -> 1 e NotAliveException,
  -> 2 aze AuthorizationException
getTopologySummary
  1 id string, -> 0 success TopologySummary, -> 1 e NotAliveException,
  -> 2 aze AuthorizationException
getTopologyInfo
  1 id string, -> 0 success TopologyInfo, -> 1 e NotAliveException,
  -> 2 aze AuthorizationException
getTopologyInfoByName
  1 name string, -> 0 success TopologyInfo, -> 1 e NotAliveException,
  -> 2 aze AuthorizationException
getTopologyInfoWithOpts
  1 id string, 2 options GetInfoOptions, -> 0 success TopologyInfo, -> 1 e NotAliveException,
  -> 2 aze AuthorizationException
getTopologyInfoByNameWithOpts
  1 name string, 2 options GetInfoOptions, -> 0 success TopologyInfo, -> 1 e NotAliveException,
  -> 2 aze AuthorizationException
getTopologyPageInfo
  1 id string, 2 window string, 3 is_include_sys bool, -> 0 success TopologyPageInfo,
  -> 1 e NotAliveException, -> 2 aze AuthorizationException
getSupervisorPageInfo
  1 id string, 2 host string, 3 is_include_sys bool, -> 0 success SupervisorPageInfo,
  -> 1 e NotAliveException, -> 2 aze AuthorizationException
getComponentPageInfo
  1 topology_id string, 2 component_id string, 3 window string, 4 is_include_sys bool,
  -> 0 success ComponentPageInfo, -> 1 e NotAliveException, -> 2 aze AuthorizationException
getTopology
  1 id string, -> 0 success StormTopology, -> 1 e NotAliveException,
  -> 2 aze AuthorizationException
getUserTopology
  1 id string, -> 0 success StormTopology, -> 1 e NotAliveException,
  -> 2 aze AuthorizationException
sendSupervisorWorkerHeartbeats
  1 heartbeats SupervisorWorkerHeartbeats, -> 1 aze AuthorizationException
sendSupervisorWorkerHeartbeat
  1 heatbeat SupervisorWorkerHeartbeat, -> 1 aze AuthorizationException, -> 2 e NotAliveException
"""


def entries(table: str) -> dict[str, list[str]]:
    """The fields of each heading of a table."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            found[heading] += line.strip().removesuffix(",").split(", ")
        else:
            heading = line
            found[heading] = []
    return found


def type_name(spec: Any) -> str:
    """How the tables call a type that thriftpy2 has read."""
    if not isinstance(spec, tuple):
        return str(TType._VALUES_TO_NAMES[spec]).lower()
    code, inner = spec
    if code == TType.MAP:
        return f"map<{type_name(inner[0])},{type_name(inner[1])}>"
    if code in (TType.LIST, TType.SET):
        return f"{'list' if code == TType.LIST else 'set'}<{type_name(inner)}>"
    return str(inner.__name__)


def fields(cls: Any, arrow: str = "") -> list[str]:
    """The fields of a struct that thriftpy2 has read, as the tables have them."""
    return [
        f"{arrow}{number}{'!' if required else ''} {name} "
        f"{type_name((code, inner[0]) if inner else code)}"
        for number, (code, name, *inner, required) in sorted(cls.thrift_spec.items())
    ]


def test_types() -> None:
    meta = IDL.__thrift_meta__
    found = {cls.__name__: fields(cls) for kind in ("structs", "exceptions") for cls in meta[kind]}
    found |= {f"union {cls.__name__}": fields(cls) for cls in meta["unions"]}
    found |= {
        f"enum {cls.__name__}": [
            f"{number} {name}" for name, number in cls._NAMES_TO_VALUES.items()
        ]
        for cls in meta["enums"]
    }
    assert found == entries(TYPES)


def test_calls() -> None:
    found = {
        name: fields(getattr(IDL.Nimbus, f"{name}_args"))
        + fields(getattr(IDL.Nimbus, f"{name}_result"), "-> ")
        for name in IDL.Nimbus.thrift_services
    }
    assert found == entries(CALLS)


def test_every_call_is_answered() -> None:
    assert not [
        name for name in IDL.Nimbus.thrift_services if getattr(IDL.Nimbus, f"{name}_result").oneway
    ]
