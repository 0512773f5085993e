"""A topology made ready for the cluster: all that is sent, checked, before any of it is.

It puts together what the rest of this package, `storm_py.components`, `storm_py.bundle` and
`storm_py.archive` do. Nothing is sent here; the archive is written last, into a file that is given.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from storm_py.api.spec import StormTopology
from storm_py.archive import Manifest, Packed, pack_archive
from storm_py.bundle import dump_code, dump_conf
from storm_py.components import pack
from storm_py.config import Config
from storm_py.engine.system import system_topology
from storm_py.errors import PackingError
from storm_py.loader import LoadedTopology

from .listing import Listing, list_files
from .project import Project, find_project

__all__ = ["Prepared", "prepare"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is sent of a topology; its archive is listed, and not written yet."""

    project: Project
    listing: Listing
    manifest: Manifest
    #: The stormcode, as `storm_py.bundle` has it.
    code: bytes
    #: The stormconf.
    conf: bytes
    #: The largest archive that is allowed.
    max_bytes: int

    def pack(self, file: BinaryIO) -> Packed:
        """Write the archive to an empty file, which can be read as well; PackingError if not."""
        try:
            return pack_archive(file, self.listing.files, self.manifest, self.max_bytes)
        except OSError as error:
            raise PackingError(
                f"the archive of {self.project.name} cannot be written, as a temporary file: "
                f"{error.strerror}; TMPDIR says where these are"
            ) from error


def prepare(
    loaded: LoadedTopology,
    topology: StormTopology,
    conf: Mapping[str, object],
    include: Sequence[str],
    version: str,
) -> Prepared:
    """Make a topology ready.

    `topology` is that of `loaded` with its limits applied, `conf` its whole configuration,
    `include` the paths to bring in, `version` that of storm_py. Raises PackingError for the
    project, InvalidTopologyException for objects that cannot be copied, ConfigError for
    configuration that cannot travel.
    """
    max_bytes = conf[Config.STORM_PY_SUBMIT_MAX_BYTES]
    assert isinstance(max_bytes, int)  # the configuration is valid
    whole = system_topology(topology, conf)
    code = dump_code(whole, pack(whole))
    packed_conf = dump_conf(conf)
    project = find_project(loaded)
    return Prepared(
        project,
        list_files(project, include, max_bytes),
        Manifest(
            version, platform.python_version(), project.module, project.sys_path, project.name
        ),
        code,
        packed_conf,
        max_bytes,
    )
