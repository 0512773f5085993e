"""Where things are in ZooKeeper: Storm's layout, one function for each path.

Paths begin below ``storm.zookeeper.root``, which is the business of the storage. Strings only: who
reads or writes there is `storm_py.cluster.storm_cluster_state`.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote_plus

__all__ = [
    "ASSIGNMENTS",
    "BLOBSTORE",
    "BLOBSTORE_MAX_KEY_SEQUENCE_NUMBER",
    "CREDENTIALS",
    "ERRORS",
    "LEADER_INFO",
    "LEADER_LOCK",
    "LOGCONFIGS",
    "NIMBUSES",
    "PROFILERCONFIGS",
    "REGISTRATIONS",
    "STORMS",
    "SUPERVISORS",
    "WORKERBEATS",
    "assignment",
    "blob",
    "blob_max_key_sequence_number",
    "component_errors",
    "credentials",
    "error",
    "last_error",
    "logconfig",
    "nimbus",
    "profilerconfig",
    "profilerconfigs",
    "registration",
    "slot_of",
    "storm",
    "storm_errors",
    "storm_registrations",
    "storm_workerbeats",
    "supervisor",
    "workerbeat",
]

STORMS: Final = "/storms"
ASSIGNMENTS: Final = "/assignments"
SUPERVISORS: Final = "/supervisors"
WORKERBEATS: Final = "/workerbeats"
ERRORS: Final = "/errors"
REGISTRATIONS: Final = "/registrations"
NIMBUSES: Final = "/nimbuses"
LEADER_LOCK: Final = "/leader-lock"
LEADER_INFO: Final = "/leader-info"
CREDENTIALS: Final = "/credentials"
LOGCONFIGS: Final = "/logconfigs"
PROFILERCONFIGS: Final = "/profilerconfigs"
BLOBSTORE: Final = "/blobstore"
BLOBSTORE_MAX_KEY_SEQUENCE_NUMBER: Final = "/blobstoremaxkeysequencenumber"


def storm(storm_id: str) -> str:
    """The StormBase of a topology."""
    return f"{STORMS}/{storm_id}"


def assignment(storm_id: str) -> str:
    """The Assignment of a topology."""
    return f"{ASSIGNMENTS}/{storm_id}"


def supervisor(supervisor_id: str) -> str:
    """The SupervisorInfo of a supervisor."""
    return f"{SUPERVISORS}/{supervisor_id}"


def storm_workerbeats(storm_id: str) -> str:
    """The parent of the heartbeats of a topology's workers."""
    return f"{WORKERBEATS}/{storm_id}"


def workerbeat(storm_id: str, node: str, port: int) -> str:
    """The heartbeat of the worker in one slot; `node` is the id of its supervisor."""
    return f"{storm_workerbeats(storm_id)}/{node}-{port}"


def slot_of(name: str) -> tuple[str, int] | None:
    """Node and port of the last part of a `workerbeat` path, None if it is of no such form."""
    node, _, port = name.rpartition("-")
    return (node, int(port)) if node and port.isdecimal() else None


def storm_registrations(storm_id: str) -> str:
    """The parent of the registrations of a topology's workers; Storm has no such node."""
    return f"{REGISTRATIONS}/{storm_id}"


def registration(storm_id: str, worker: int) -> str:
    """The registration of the worker of that number."""
    return f"{storm_registrations(storm_id)}/{worker}"


def storm_errors(storm_id: str) -> str:
    """The parent of all errors of a topology."""
    return f"{ERRORS}/{storm_id}"


def component_errors(storm_id: str, component_id: str) -> str:
    """The parent of the errors of one component."""
    return f"{storm_errors(storm_id)}/{_encoded(component_id)}"


def error(storm_id: str, component_id: str) -> str:
    """One error of a component; ZooKeeper appends a number that grows with each."""
    return f"{component_errors(storm_id, component_id)}/e"


def last_error(storm_id: str, component_id: str) -> str:
    """The newest error of a component, which can be read without a look at the others."""
    return f"{component_errors(storm_id, component_id)}-last-error"


def nimbus(nimbus_id: str) -> str:
    """The NimbusSummary of a nimbus; its id is host:port."""
    return f"{NIMBUSES}/{nimbus_id}"


def credentials(storm_id: str) -> str:
    """The credentials of a topology."""
    return f"{CREDENTIALS}/{storm_id}"


def logconfig(storm_id: str) -> str:
    """The log levels of a topology."""
    return f"{LOGCONFIGS}/{storm_id}"


def profilerconfigs(storm_id: str) -> str:
    """The parent of what profilers of a topology's workers were asked to do."""
    return f"{PROFILERCONFIGS}/{storm_id}"


def profilerconfig(storm_id: str, host: str, port: int, action: str) -> str:
    """One such request."""
    return f"{profilerconfigs(storm_id)}/{host}_{port}_{action}"


def blob(key: str) -> str:
    """The parent of the copies of a blob."""
    return f"{BLOBSTORE}/{key}"


def blob_max_key_sequence_number(key: str) -> str:
    """The highest number that a version of a blob had so far."""
    return f"{BLOBSTORE_MAX_KEY_SEQUENCE_NUMBER}/{key}"


def _encoded(component_id: str) -> str:
    """As Java's URLEncoder does it, for clients that look there themselves.

    It differs from Python's in two characters. It leaves dots alone, but ZooKeeper takes no part of
    a path that is . or .. whole.
    """
    if component_id in (".", ".."):
        return component_id.replace(".", "%2E")
    return quote_plus(component_id, safe="*").replace("~", "%7E")
