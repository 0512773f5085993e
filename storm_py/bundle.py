"""The blobs of a submitted topology: their names, and two of them as bytes and back.

A topology is three blobs, named as Storm names them: the archive with the user's code
(`storm_py.archive`), the topology (*stormcode*), and its configuration (*stormconf*). A stormcode
holds the structure as JSON, without any object of the user's, and behind it what
`storm_py.components.pack` made of each component. So who only wants the structure, as nimbus and
supervisors do, reads it without unpickling anything: nothing here ever does.

Both begin with a line for people and checks::

    storm_py stormcode 1 <bytes of JSON> <sha256 of them>

The JSON of a stormcode has size and sha256 of each packed component, so that line vouches for all
that follows. A change of any of this is a new format number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from .api.grouping import Grouping, GroupingKind
from .api.spec import ComponentSpec, StormTopology, StreamInfo
from .api.tuples import Fields, GlobalStreamId
from .errors import BlobError, ConfigError, a_type

__all__ = [
    "FORMAT",
    "StormCode",
    "code_key",
    "conf_key",
    "dump_code",
    "dump_conf",
    "jar_key",
    "load_code",
    "load_conf",
    "load_structure",
    "without_objects",
]

#: Version of both forms.
FORMAT: Final = 1
_CODE: Final = "stormcode"
_CONF: Final = "stormconf"
#: No first line is longer; what has no end of line within it is not ours.
_LINE_MAX_BYTES: Final = 160


@dataclass(frozen=True, slots=True)
class StormCode:
    """A topology as it is stored."""

    #: Its structure: no component, and no custom grouping, has its object.
    topology: StormTopology
    #: Per component what `storm_py.components.pack` made of its objects.
    components: Mapping[str, bytes]


def jar_key(topology_id: str) -> str:
    """The name of the blob with the user's code; it is a zip file, not a jar."""
    return f"{topology_id}-stormjar.jar"


def code_key(topology_id: str) -> str:
    """The name of the blob with the topology."""
    return f"{topology_id}-stormcode.ser"


def conf_key(topology_id: str) -> str:
    """The name of the blob with the topology's configuration."""
    return f"{topology_id}-stormconf.ser"


def without_objects(topology: StormTopology) -> StormTopology:
    """The structure alone: what reading it from a blob gives."""
    return StormTopology({id_: _bare(spec) for id_, spec in topology.components.items()})


def _bare(spec: ComponentSpec) -> ComponentSpec:
    inputs = {source: replace(how, custom=None) for source, how in spec.inputs.items()}
    return replace(spec, component=None, inputs=inputs)


# ---- the topology ------------------------------------------------------------------------------


def dump_code(topology: StormTopology, components: Mapping[str, bytes]) -> bytes:
    """A topology and its packed components as bytes.

    Raises ConfigError if the configuration of a component is no JSON.
    """
    if set(components) != set(topology.components):
        raise ValueError(f"packed are {sorted(components)}, not {sorted(topology.components)}")
    plain = {
        "components": [_plain(spec, components[spec.id]) for spec in topology.components.values()]
    }
    packed = (components[id_] for id_ in topology.components)
    return b"".join([_sealed(_CODE, plain), *packed])


def load_structure(data: bytes, name: str) -> StormTopology:
    """The structure in the stormcode of this name; BlobError if there is none.

    The packed components behind it are not looked at: they may be damaged, or not be there.
    """
    plain, _ = _opened(_CODE, data, name)
    return _topology(plain, name)


def load_code(data: bytes, name: str) -> StormCode:
    """All that is in the stormcode of this name; BlobError if anything is missing or damaged."""
    plain, at = _opened(_CODE, data, name)
    topology = _topology(plain, name)
    components = {}
    for entry in plain["components"]:
        packed = data[at : at + entry["bytes"]]
        at += entry["bytes"]
        if len(packed) < entry["bytes"]:
            raise BlobError(
                f"{name} is cut off in component {entry['id']!r}: {len(packed)} of its "
                f"{entry['bytes']} bytes are there"
            )
        if _digest(packed) != entry["sha256"]:
            raise BlobError(f"{name} is damaged: component {entry['id']!r} has another checksum")
        components[entry["id"]] = packed
    if at != len(data):
        raise BlobError(f"{name} is damaged: {len(data) - at} bytes too many at its end")
    return StormCode(topology, components)


def _plain(spec: ComponentSpec, packed: bytes) -> dict[str, object]:
    return {
        "id": spec.id,
        "kind": spec.kind,
        "parallelism": spec.parallelism,
        "num_tasks": spec.num_tasks,
        "streams": [[id_, list(info.fields), info.direct] for id_, info in spec.streams.items()],
        "inputs": [
            [source.component_id, source.stream_id, str(how.kind), _names(how.fields)]
            for source, how in spec.inputs.items()
        ],
        "config": _checked(f"{spec.label}: ", spec.config),
        "bytes": len(packed),
        "sha256": _digest(packed),
    }


def _names(fields: Fields | None) -> list[str] | None:
    return None if fields is None else list(fields)


def _topology(plain: Mapping[str, Any], name: str) -> StormTopology:
    try:
        specs = [_spec(**entry) for entry in plain["components"]]
        return StormTopology({spec.id: spec for spec in specs})
    except (KeyError, TypeError, ValueError) as error:  # its checksum is right: its writer is wrong
        raise BlobError(f"{name} is no structure of format {FORMAT}: {error}") from error


def _spec(
    id: str,
    kind: str,
    parallelism: int,
    num_tasks: int,
    streams: list[tuple[str, list[str], bool]],
    inputs: list[tuple[str, str, str, list[str] | None]],
    config: dict[str, object],
    bytes: int,
    sha256: str,
) -> ComponentSpec:
    if kind not in ("spout", "bolt") or type(bytes) is not int or bytes < 0:
        raise ValueError(f"component {id!r} is a {kind!r} of {bytes!r} bytes")
    return ComponentSpec(
        id=id,
        kind="spout" if kind == "spout" else "bolt",
        component=None,
        parallelism=parallelism,
        num_tasks=num_tasks,
        streams={stream: StreamInfo(Fields(names), direct) for stream, names, direct in streams},
        inputs={
            GlobalStreamId(component, stream): Grouping(
                GroupingKind(how), None if names is None else Fields(names)
            )
            for component, stream, how, names in inputs
        },
        config=config,
    )


# ---- the configuration -------------------------------------------------------------------------


def dump_conf(conf: Mapping[str, object]) -> bytes:
    """A configuration as bytes; ConfigError for a value that is no JSON."""
    return _sealed(_CONF, _checked("", conf))


def load_conf(data: bytes, name: str) -> dict[str, object]:
    """The configuration in the stormconf of this name; BlobError if there is none."""
    plain, at = _opened(_CONF, data, name)
    if at != len(data):
        raise BlobError(f"{name} is damaged: {len(data) - at} bytes too many at its end")
    return plain


def _checked(label: str, conf: Mapping[str, object]) -> dict[str, object]:
    """The configuration, if it is the same once it has travelled; a tuple becomes a list."""
    for key, value in conf.items():
        problem = f"{a_type(key)} as a key" if not isinstance(key, str) else _no_json(value)
        if problem:
            raise ConfigError(
                f"{label}{key} is {value!r:.200}, which cannot be sent to the cluster: it holds "
                f"{problem}; expected what JSON can hold"
            )
    return dict(conf)


def _no_json(value: object) -> str:
    """What in a value JSON cannot hold, or would change; empty if nothing is."""
    if isinstance(value, dict):
        odd = next((key for key in value if not isinstance(key, str)), None)
        if odd is not None:
            return f"{a_type(odd)} as a key"
        return next(filter(None, map(_no_json, value.values())), "")
    if isinstance(value, list | tuple):
        return next(filter(None, map(_no_json, value)), "")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return repr(value)
    known = value is None or isinstance(value, str | int | float)
    return "" if known else a_type(value)


# ---- bytes -------------------------------------------------------------------------------------


def _sealed(kind: str, plain: Mapping[str, object]) -> bytes:
    body = json.dumps(plain, indent=1).encode() + b"\n"
    return f"storm_py {kind} {FORMAT} {len(body)} {_digest(body)}\n".encode() + body


def _opened(kind: str, data: bytes, name: str) -> tuple[dict[str, Any], int]:
    """The JSON of a blob, and where in its bytes what follows begins."""
    line, newline, _ = data[:_LINE_MAX_BYTES].partition(b"\n")
    match line.decode("latin-1").split(" ") if newline else []:
        case ["storm_py", found, form, size, digest] if found == kind and size.isdecimal():
            pass
        case _:
            raise BlobError(f"{name} is no {kind} of storm_py: it begins with {data[:24]!r}")
    if form != str(FORMAT):
        raise BlobError(
            f"{name} has format {form}, and this storm_py reads {FORMAT}; use the same version of "
            "storm_py where topologies are submitted and on the nodes"
        )
    start = len(line) + 1
    body = data[start : start + int(size)]
    if len(body) < int(size):
        raise BlobError(f"{name} is cut off: {len(body)} of {size} bytes of its JSON are there")
    if _digest(body) != digest:
        raise BlobError(f"{name} is damaged: its JSON has another checksum")
    plain = json.loads(body)
    if not isinstance(plain, dict):
        raise BlobError(f"{name} holds {a_type(plain)}; expected an object")
    return plain, start + int(size)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
