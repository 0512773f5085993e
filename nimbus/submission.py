"""A submission: what a client sends, checked and made what is stored of a topology.

Nothing of it is run or unpickled. All is checked before anything is stored: what is refused is an
InvalidTopologyException, whatever is wrong with it. `store` writes the blobs; that the topology
exists from then on is for the leader to write, after them.
"""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from storm_py.api.spec import apply_limits
from storm_py.api.validation import check_topology
from storm_py.archive import open_archive
from storm_py.bundle import StormCode, code_key, conf_key, dump_code, dump_conf, jar_key
from storm_py.cluster.records import StormBase, TopologyStatus
from storm_py.config import Config, defaults, merge, validate
from storm_py.errors import BlobError, ConfigError, InvalidTopologyException, a_type
from storm_py.rpc import definitions
from storm_py.thrift_topology import from_thrift

from .data import NimbusData

__all__ = ["Submission", "check_submission"]

#: Storm's keys that a submission sets.
_ID, _OWNER, _VERSION = "storm.id", "topology.submitter.user", "topology.version"
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Submission:
    """A topology that may be stored."""

    topology_id: str
    base: StormBase
    archive: Path
    #: Of the archive.
    sha256: str
    code: bytes
    conf: bytes

    def store(self, data: NimbusData) -> None:
        """Write the blobs; the archive is moved. BlobError if there is no room."""
        data.blobs.put(code_key(self.topology_id), self.code)
        data.blobs.put(conf_key(self.topology_id), self.conf)
        data.blobs.adopt(jar_key(self.topology_id), self.archive, self.sha256)


def check_submission(
    data: NimbusData,
    topology_id: str,
    name: str,
    archive: Path,
    json_conf: str,
    topology: definitions.StormTopology,
    active: bool,
) -> Submission:
    """What is to be stored of a submission; InvalidTopologyException if it cannot run."""
    where = f"topology {name!r}"
    try:
        conf = _configuration(data, topology_id, name, json_conf)
        code = _code(topology, conf, where)
        packed_code, packed_conf = dump_code(code.topology, code.components), dump_conf(conf)
    except ConfigError as error:
        raise InvalidTopologyException(f"{where}: {error}") from error
    try:
        opened = open_archive(archive, data.conf[Config.STORM_PY_SUBMIT_MAX_BYTES])
    except BlobError as error:
        raise InvalidTopologyException(f"{where}: its archive is refused: {error}") from error
    workers, version = conf[Config.TOPOLOGY_WORKERS], conf.get(_VERSION)
    assert isinstance(workers, int)  # the configuration is valid
    made_by = opened.manifest.storm_py if opened.manifest else topology.storm_version
    base = StormBase(
        name=name,
        status=TopologyStatus.ACTIVE if active else TopologyStatus.INACTIVE,
        launch_time_secs=int(data.wall()),
        num_workers=workers,
        component_executors={
            id_: spec.parallelism for id_, spec in code.topology.components.items()
        },
        owner=str(conf[_OWNER]),
        topology_version=version if isinstance(version, str) else None,
        storm_py_version=made_by or _UNKNOWN,
    )
    return Submission(topology_id, base, archive, opened.sha256, packed_code, packed_conf)


def _configuration(
    data: NimbusData, topology_id: str, name: str, json_conf: str
) -> dict[str, object]:
    """The topology's whole configuration: what it does not say itself, this cluster says."""
    try:
        given = json.loads(json_conf)
    except ValueError as error:
        raise ConfigError(f"the configuration is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise ConfigError(f"the configuration is {a_type(given)}; expected an object of JSON")
    cluster = {key: value for key, value in data.conf.items() if key.startswith("topology.")}
    conf = merge(defaults(), cluster, given)
    owner = conf.get(_OWNER)
    conf[_ID] = topology_id
    conf[Config.TOPOLOGY_NAME] = name
    conf[_OWNER] = owner if isinstance(owner, str) and owner else _user()
    validate(conf)
    return conf


def _code(topology: definitions.StormTopology, conf: Mapping[str, object], where: str) -> StormCode:
    code = from_thrift(topology, where)
    components = code.topology.components
    if "" in components:
        raise InvalidTopologyException(f"{where}: a component has an empty id; name it")
    places = {id_: dict.fromkeys(spec.inputs, "as submitted") for id_, spec in components.items()}
    try:
        check_topology(code.topology, places)
        return StormCode(apply_limits(code.topology, conf), code.components)
    except InvalidTopologyException as error:
        raise InvalidTopologyException(f"{where}: {error}") from error


def _user() -> str:
    """Who nimbus runs as: whoever could reach it, as there is no access control yet."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
