"""Names and ids of topologies: which names Storm allows, and the id that a submission gets.

A name becomes part of paths in ZooKeeper, of folders and of log lines, so what Storm forbids is
what would break one of these. Pure; who is alive, and which number comes next, is Nimbus' to know.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from storm_py.errors import InvalidTopologyException

#: What Storm's own pattern for names excludes.
FORBIDDEN: Final = "/.:\\"
#: Longest name in UTF-8: what a daemon appends to it still makes the name of a file (255 bytes).
MAX_BYTES: Final = 200


def validate_topology_name(name: str) -> None:
    """Refuse what cannot be the name of a topology with an InvalidTopologyException.

    Storm's rule, and three more: a blank name could not be typed after `storm-py kill`, ZooKeeper
    has no paths with control characters, and file systems have no names of any length.
    """
    found = [character for character in FORBIDDEN if character in name]
    if not name.strip():
        reason = "it is blank"
    elif found:
        reason = f"it contains {' and '.join(found)}"
    elif not name.isprintable():
        odd = next(character for character in name if not character.isprintable())
        reason = f"it contains {odd!r}, which cannot be printed"
    elif (size := len(name.encode())) > MAX_BYTES:
        raise InvalidTopologyException(
            f"Topology name {name!r:.40}... is not valid: it has {size} bytes; choose one of at "
            f"most {MAX_BYTES}, as files are named after it"
        )
    else:
        return
    allowed = " ".join(FORBIDDEN)
    raise InvalidTopologyException(
        f"Topology name {name!r} is not valid: {reason}; "
        f"choose one that is not blank and has none of {allowed} in it, like 'word-count'"
    )


def is_topology_name_allowed(name: str, taken: Collection[str]) -> bool:
    """Whether a topology may be submitted under this name; `taken` are the names of those alive."""
    try:
        validate_topology_name(name)
    except InvalidTopologyException:
        return False
    return name not in taken


def make_topology_id(name: str, number: int, now_secs: float) -> str:
    """The id of a submission: `<name>-<number>-<whole seconds since 1970>`, as Storm's.

    `number` counts the submissions of a Nimbus, so that two within a second differ.
    """
    return f"{name}-{number}-{int(now_secs)}"


def topology_name(topology_id: str) -> str:
    """The name in an id that `make_topology_id` made."""
    parts = topology_id.rsplit("-", 2)
    if len(parts) != 3 or not (parts[0] and parts[1].isdecimal() and parts[2].isdecimal()):
        raise ValueError(f"{topology_id!r} is no topology id: expected <name>-<number>-<seconds>")
    return parts[0]
