"""The source text of emit functions: one for each stream, collector and way of tracking.

Everything that is the same for all tuples of a stream is a constant of the text; what is off leaves
no line behind. `storm_py.engine.emitters` provides the names that the text uses and compiles it.
Pure text: nothing here sees a tuple.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from storm_py.api.grouping import GroupingKind
from storm_py.core.roots import ID_BITS
from storm_py.core.routing import Target


class Tracking(Enum):
    """How the rows of a function are tracked."""

    OFF = "off"
    #: a root of its own for each tuple with a message id
    SPOUT = "spout"
    #: anchored to one input tuple that has one root, or to nothing
    ANCHOR = "anchor"
    #: anchored to any number of tuples with any number of roots
    ANCHORS = "anchors"


@dataclass(frozen=True, slots=True)
class EmitShape:
    """What an emit function is made for."""

    style: str  # the collector: spout, bolt or basic
    width: int
    targets: Sequence[Target]
    #: rows up to this size are not counted
    small: int
    #: what rows above that size, and tracking columns, may add up to in one batch
    extra_limit: int
    #: roots that a row up to the small size may have, whatever it is
    room: int
    #: index of the stream, if some destination receives several streams of this task
    mixed_index: int | None
    tracking: Tracking
    #: whether each emit is logged
    debug: bool = False
    #: targets, by number, whose tasks all are in this instance: they get a copy of the row
    handed: frozenset[int] = frozenset()
    #: whether what is handed over is packed all the same, and unpacked
    serialize: bool = False

    @property
    def has_one_edge(self) -> bool:
        """Whether a row goes to exactly one task: what its anchor learns of it is the edge."""
        return len(self.targets) == 1 and self.targets[0].kind not in _SEVERAL

    @property
    def packs(self) -> bool:
        """Whether a row is packed at all: what nobody consumes is counted only."""
        return len(self.handed) < len(self.targets) or bool(self.handed and self.serialize)


#: Groupings that choose any number of tasks: a loop over `batches<i>`, told to be `answer<i>`.
_SEVERAL = frozenset({GroupingKind.ALL, GroupingKind.CUSTOM})
#: Groupings that take the candidates in turn.
SHUFFLES = frozenset({GroupingKind.SHUFFLE, GroupingKind.NONE, GroupingKind.LOCAL_OR_SHUFFLE})

#: Parameters of each style of collector, and the arguments (values, second, stream) they make.
SIGNATURES = {
    "spout": ("values, msg_id=None, stream=HOME", "values, msg_id, stream"),
    "bolt": ("values, anchors=None, stream=HOME", "values, anchors, stream"),
    "basic": ("values, stream=HOME", "values, None, stream"),
}


def emit_lines(shape: EmitShape) -> list[str]:
    """The lines of `def emit(...)`."""
    lines = _head(shape)
    if shape.packs:
        lines += [
            "    try:",
            "        row = pack(values)",
            "    except Exception as error:",
            "        row = repack(values, error)",
        ]
        if shape.tracking is Tracking.ANCHORS:  # before any anchor has learnt of the row's edges
            many = "(len(anchors) > 1 or anchors and anchors[0].root.__class__ is not int)"
            many += f" and count_roots(anchors) > {shape.room}"
            lines += [
                f"    if len(row) > {shape.small} or {many}:",
                "        check_size(row, anchors)",
            ]
    for i, target in enumerate(shape.targets):
        lines += _choose(i, target)
    lines += _root(shape)
    # What is sent comes first: a row that is too large for it must not be anywhere.
    for i in sorted(range(len(shape.targets)), key=shape.handed.__contains__):
        lines += _append(i, shape.targets[i], shape)
    answers = [
        f"answer{i}" if target.kind in _SEVERAL else f"batch{i}.answer"
        for i, target in enumerate(shape.targets)
    ]
    lines.append("    emissions.emitted += 1")  # behind all that may refuse the tuple
    lines += _tail(shape)
    answer = " + ".join(answers) or "()"
    if shape.debug:
        lines += [f"    answer = {answer}", "    log_emit(values, answer)"]
        answer = "answer"
    lines.append(f"    return {answer}")
    return lines


def _head(shape: EmitShape) -> list[str]:
    parameters, pass_on = SIGNATURES[shape.style]
    lines = [
        f"def emit({parameters}):",
        "    if stream is not HOME and stream != HOME:",
        f"        return other({pass_on})",
    ]
    if shape.style == "spout":
        lines += ["    if emissions.ended:", "        check_open()"]
    if shape.tracking is Tracking.ANCHOR:
        lines += _anchor(shape)
    elif shape.tracking is Tracking.ANCHORS:
        anchors = "current.tuple" if shape.style == "basic" else "anchors"
        lines.append(f"    anchors = anchor_list({anchors})")
    return [
        *lines,
        "    if values.__class__ is not list:",
        "        values = as_row(values)",
        f"    if len(values) != {shape.width}:",
        "        raise wrong_width(values)",
    ]


def _root(shape: EmitShape) -> list[str]:
    """Begin a tree, where that is this function's business."""
    if shape.tracking is not Tracking.SPOUT:
        return []
    lines = ["    root = 0 if msg_id is None else next_root()"]
    return lines if shape.has_one_edge else [*lines, "    value = 0"]


def _anchor(shape: EmitShape) -> list[str]:
    """Find the root of the one anchor; other cases go to the general function at once."""
    if not shape.targets:  # only what is no anchor matters
        if shape.style == "basic":
            return []
        return [
            "    if anchors is not None and (",
            "        anchors.__class__ is not TrackedTuple or anchors.root is None",
            "    ):",
            "        return emit_many(values, anchors, stream)",
        ]
    value = [] if shape.has_one_edge else ["        value = 0"]
    if shape.style == "basic":
        return [
            "    anchors = current.tuple",
            "    if anchors is None:",
            "        root = 0",
            "    else:",
            "        root = anchors.root",
            "        if root.__class__ is not int:",
            "            return emit_many(values, stream)",
            *value,
        ]
    return [
        "    if anchors.__class__ is TrackedTuple and anchors.root.__class__ is int:",
        "        root = anchors.root",
        *value,
        "    elif anchors is None or anchors.__class__ is Tuple:  # of a frame without tracking",
        "        root = 0",
        "    else:",
        "        return emit_many(values, anchors, stream)",
    ]


def _choose(i: int, target: Target) -> list[str]:
    """The lines that choose the batch of target `i`; nothing is appended before all are chosen."""
    match target.kind:
        case GroupingKind.FIELDS:
            return _by_key(i, target, f"batch{i}")
        case GroupingKind.PARTIAL_KEY if len(target.tasks) > 1:
            return [
                *_by_key(i, target, "share, second"),
                "    if second.sent < share.sent:",
                "        share = second",
                "    share.sent += 1",
                f"    batch{i} = share.batch",
            ]
        case GroupingKind.CUSTOM:
            return [f"    batches{i}, answer{i} = choose{i}(values)"]
        case kind if kind in SHUFFLES and len(target.candidates) > 1:
            return [f"    batch{i} = next{i}()"]
        case _:
            return []  # a constant of the function: batch<i>, or batches<i> for all_grouping


def _by_key(i: int, target: Target, found: str) -> list[str]:
    """The lines that look a row's key up, in the cache and then slowly."""
    key = ", ".join(f"values[{position}]" for position in target.key)
    return [
        "    try:",
        f"        {found} = cache{i}[{key}]",
        "    except Exception:",  # not there, or it cannot be hashed
        f"        {found} = miss{i}(values)",
    ]


def _append(i: int, target: Target, shape: EmitShape) -> list[str]:
    """The lines that append the row to the batch of target `i`, or to all of them."""
    lines: list[str] = []
    pad = "    "
    batch = f"batch{i}"
    if target.kind in _SEVERAL:
        lines.append(f"    for {batch} in batches{i}:")
        pad += "    "
    if shape.mixed_index is not None:
        lines += [
            f"{pad}if {batch}.stream != {shape.mixed_index}:",
            f"{pad}    {batch}.switch({shape.mixed_index})",
        ]
    handed = i in shape.handed
    row = "row" if not handed else "unpack(row)" if shape.serialize else "values[:]"
    lines += [f"{pad}rows = {batch}.rows", f"{pad}rows.append({row})"]
    if shape.tracking is Tracking.ANCHORS:
        lines += [f"{pad}if anchors:", f"{pad}    anchor_row({batch}, anchors)"]
    elif shape.tracking is not Tracking.OFF:
        lines += [
            f"{pad}if root:",
            f"{pad}    edge = bits({ID_BITS})",
            *([] if shape.has_one_edge else [f"{pad}    value ^= edge"]),
            f"{pad}    roots = {batch}.roots",
            f"{pad}    roots.append(root)",
            f"{pad}    {batch}.edges.append(edge)",
            f"{pad}    if len(roots) != len(rows):",
            f"{pad}        {batch}.pad()",
        ]
    # The columns of rows with many roots count as well.
    tracking = shape.tracking is Tracking.ANCHORS
    many = f" or {batch}.extra_bytes >= {shape.extra_limit}" if tracking else ""
    if not handed:
        lines += [f"{pad}if len(row) > {shape.small}:", f"{pad}    grow({batch}, row)"]
    return [
        *lines,
        f"{pad}if len(rows) >= {batch}.cap{many}:",
        f"{pad}    flush({batch})",
    ]


def _tail(shape: EmitShape) -> list[str]:
    match shape.tracking:
        case Tracking.OFF if shape.style == "spout":
            return ["    if msg_id is not None:", "        acked.append(msg_id)"]
        case Tracking.SPOUT if not shape.targets:
            return ["    if root:", "        acked.append(msg_id)"]
        case Tracking.SPOUT if all(t.kind is GroupingKind.CUSTOM for t in shape.targets):
            chosen = " or ".join(f"batches{i}" for i in range(len(shape.targets)))
            return [
                f"    if root and not ({chosen}):  # the groupings chose nobody",
                "        acked.append(msg_id)",
                "    elif root:",
                *_init(shape),
            ]
        case Tracking.SPOUT:
            return ["    if root:", *_init(shape)]
        case Tracking.ANCHOR if shape.targets:
            return ["    if root:", f"        anchors.xor ^= {_value(shape)}"]
        case _:
            return []


def _value(shape: EmitShape) -> str:
    """The XOR of the edges of a row."""
    return "edge" if shape.has_one_edge else "value"


def _init(shape: EmitShape) -> list[str]:
    return [
        "        init_roots.append(root)",
        f"        init_values.append({_value(shape)})",
        "        pending[root] = msg_id",
    ]


def compile_emit(
    name: str, lines: list[str], names: dict[str, Any]
) -> Callable[..., tuple[int, ...]]:
    """The function that the lines define, visible to tracebacks and debuggers as source."""
    source = "\n".join(lines) + "\n"
    filename = f"<storm-py emit {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = dict(names)
    exec(compile(source, filename, "exec"), namespace)
    emit: Callable[..., tuple[int, ...]] = namespace["emit"]
    return emit
