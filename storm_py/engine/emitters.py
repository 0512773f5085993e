"""The emit functions of one task, generated for exactly its streams, consumers and groupings.

A tuple's way from `collector.emit` into an open batch is the hottest path there is, so nothing is
decided per tuple that is known beforehand: each stream gets a function in which width, key fields,
consumers and collector signature are constants. `storm_py.core.routing.Router` says the same
plainly and is the oracle of the tests; `storm_py.core.batching` owns the batches.

Rows are packed here, once, however many tasks they go to. Pure: frames leave through `flush`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from storm_py.api.grouping import GroupingKind
from storm_py.api.spec import StreamInfo
from storm_py.api.tuples import TrackedTuple, Tuple
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.core.batching import Batcher, OpenBatch
from storm_py.core.keys import Keys
from storm_py.core.pending import PendingTuples
from storm_py.core.roots import ID_BITS, Roots
from storm_py.core.routing import Target, receive_several
from storm_py.errors import EmitError, a_type, did_you_mean
from storm_py.wire.values import PLAIN, Codec

from .acking import ROOT_BYTES, Acks, anchor_list, count_roots
from .custom import chooser
from .debug import emit_log
from .emissions import Current, Emissions
from .emit_source import SHUFFLES, SIGNATURES, EmitShape, Tracking, compile_emit, emit_lines
from .keyed import cached, to_owner, to_owners

_TRAVELS = (
    "; emit plain values (str, bytes, numbers, None, lists, dicts, tuples, sets, dates, Decimal, "
    "UUID), Enum members, dataclasses or numpy arrays, or register a serializer for the class with "
    "Config.register_serialization"
)


class TaskOutput:
    """The sending half of one task.

    `style` is the collector's: "spout", "bolt" or "basic". `flush(batch)` is called when a batch is
    due. `acked` collects message ids of emits that nobody tracks, to be acked at once as Storm
    does without ackers. `log`, if there is one, gets a line for every tuple. With `serialize` rows
    that stay in the instance are packed and unpacked as the others.
    """

    def __init__(
        self,
        component: str,
        task: int,
        style: str,
        streams: Mapping[str, StreamInfo],
        targets: Mapping[str, Sequence[Target]],
        batcher: Batcher,
        key_groups: int,
        max_row_bytes: int,
        flush: Callable[[OpenBatch], None],
        acks: Acks | None,
        roots: Roots | None,
        pending: PendingTuples,
        codec: Codec = PLAIN,
        log: Callable[[str], None] | None = None,
        serialize: bool = False,
    ) -> None:
        self.component = component
        self.current = Current()
        self.roots = roots
        self.pending = pending
        self._acks = acks
        self.emissions = Emissions()
        self.batcher = batcher
        self.acked: list[object] = []
        self._task = task
        self._style = style
        self._streams = streams
        self._index = {name: i for i, name in enumerate(streams)}
        self._targets = targets
        self._key_groups = key_groups
        self._max_row_bytes = max_row_bytes
        self._flush = flush
        self._codec = codec
        self._pack = codec.packer()
        self._keys = Keys(codec.dumps)
        self._log = log
        self._serialize = serialize
        #: there each row may start a run
        self._mixed = receive_several(targets)
        for name in streams:
            for target in targets[name]:
                for dest in target.candidates:
                    if dest not in self._mixed:
                        batcher.batch(dest).switch(self._index[name])
        self._by_stream = self._functions()

    def _functions(self) -> dict[str, Callable[..., tuple[int, ...]]]:
        """The emit function of each regular stream."""
        return {
            name: self._regular(name) for name, info in self._streams.items() if not info.direct
        }

    @property
    def emit(self) -> Callable[..., tuple[int, ...]]:
        """The collector's emit; every stream's function passes other streams on."""
        home = self._by_stream.get(DEFAULT_STREAM_ID)
        return self._as_collector_method(self._other, "") if home is None else home

    @property
    def emit_direct(self) -> Callable[..., None]:
        """The collector's emit_direct."""
        call = self._direct if self._log is None else self._direct_logged
        return self._as_collector_method(call, "task_id, ")

    def _as_collector_method(self, call: Callable[..., Any], first: str) -> Callable[..., Any]:
        """`call` with the parameters, names included, of this style of collector."""
        parameters, pass_on = SIGNATURES[self._style]
        lines = [f"def emit({first}{parameters}):", f"    return call({first}{pass_on})"]
        name = f"{self.component} {call.__name__}"
        return compile_emit(name, lines, {"call": call, "HOME": DEFAULT_STREAM_ID})

    # ---- what is not hot -----------------------------------------------------------------------

    def _other(
        self, values: Sequence[object], second: object = None, stream: str = DEFAULT_STREAM_ID
    ) -> tuple[int, ...]:
        """Emit on a stream other than the one a generated function is for."""
        emit = self._by_stream.get(stream)
        if emit is not None:
            basic = self._style == "basic"
            return emit(values, stream) if basic else emit(values, second, stream)
        raise self._not_regular(stream)

    def _not_regular(self, stream: str) -> EmitError:
        if stream not in self._streams:
            return self._undeclared(stream)
        return EmitError(
            f"{self._where(stream)} is direct: name the receiving task with emit_direct"
        )

    def _direct_logged(
        self, task_id: int, values: Sequence[object], second: object, stream: str
    ) -> None:
        self._direct(task_id, values, second, stream)
        if self._log is not None:
            sent = any(task_id in target.tasks for target in self._targets[stream])
            log_emit = emit_log(self.component, self._task, stream, self._log)
            log_emit(values, (task_id,) if sent else ())

    def _direct(self, task_id: int, values: Sequence[object], second: object, stream: str) -> None:
        """Emit on a direct stream to one task of a component that subscribes to it."""
        self._check_direct(stream)
        self._check_open(stream)
        row = self._row(stream, values)
        anchors: list[TrackedTuple] = []
        if self._acks is not None and self._style != "spout":
            given = self.current.tuple if self._style == "basic" else second
            anchors = [] if given is None else anchor_list(given)
        self._check_size(stream, row, anchors)
        self.emissions.emitted += 1
        if not any(task_id in target.tasks for target in self._targets[stream]):
            if second is not None and self._style == "spout":
                self.acked.append(second)
            return  # as in Storm: its component does not subscribe to this stream
        batch = self.batcher.batch(task_id)
        due = self.batcher.add(task_id, self._index[stream], row)
        if self._style == "spout" and second is not None:
            self._track(batch, second)
        elif anchors and self._acks is not None:
            self._acks.anchor_row(batch, anchors)
        if due or batch.extra_bytes >= self.batcher.extra_limit:
            self._flush(batch)

    def _check_direct(self, stream: str) -> None:
        info = self._streams.get(stream)
        if info is None:
            raise self._undeclared(stream)
        if not info.direct:
            raise EmitError(
                f"{self._where(stream)} is not direct: use emit, or declare it with direct=True"
            )

    def _track(self, batch: OpenBatch, msg_id: object) -> None:
        """The row appended last to `batch` begins a tree."""
        if self._acks is None or self.roots is None:
            self.acked.append(msg_id)
            return
        root, edge = self.roots.next(), self._acks.bits(ID_BITS)
        batch.track(root, edge)
        self._acks.init_roots.append(root)
        self._acks.init_values.append(edge)
        self.pending.emitted(root, msg_id)

    def _row(self, stream: str, values: Sequence[object]) -> bytes:
        plain = values if type(values) is list else self._as_row(stream, values)
        if len(plain) != len(self._streams[stream].fields):
            raise self._wrong_width(stream, plain)
        try:
            row = self._pack(plain)
        except Exception as error:  # noqa: BLE001 - whatever it is, repack finds and names it
            row = self._repack(stream, plain, error)
        return row

    def _check_size(self, stream: str, row: bytes, anchors: Sequence[TrackedTuple]) -> None:
        """Refuse a row that would not fit into a frame, with the roots that it is anchored to."""
        self._check_room(stream, row, count_roots(anchors))

    def _check_room(self, stream: str, row: bytes, roots: int) -> None:
        if len(row) > self._max_row_bytes:
            raise self._too_large(stream, row)
        if roots > 1 and len(row) + ROOT_BYTES * roots > self._max_row_bytes:
            raise EmitError(
                f"{self._where(stream)}: a tuple of {len(row)} bytes, anchored to {roots} roots of "
                f"{ROOT_BYTES} bytes each, is above the limit of {self._max_row_bytes}; anchor it "
                "to fewer tuples or raise storm_py.frame.max.bytes"
            )

    def _check_open(self, stream: str) -> None:
        if self.emissions.ended:
            raise EmitError(
                f"{self._where(stream)}: emit after end_of_input(); a spout that has ended "
                "its input may not emit again"
            )

    def _as_row(self, stream: str, values: object) -> list[object]:
        if isinstance(values, (list, tuple)):
            return list(values)
        raise EmitError(
            f"{self._where(stream)}: emit got {a_type(values)}, expected a list of "
            f"{len(self._streams[stream].fields)} value(s), as in emit([value])"
        )

    def _wrong_width(self, stream: str, values: Sequence[object]) -> EmitError:
        fields = self._streams[stream].fields
        return EmitError(
            f"{self._where(stream)}: emit got {len(values)} value(s), expected {len(fields)}: "
            f"{', '.join(fields)}"
        )

    def _repack(self, stream: str, values: list[object], error: Exception) -> bytes:
        try:
            return self._codec.pack_slowly(values)
        except Exception as slow:  # noqa: BLE001 - whatever it is, it is told where it belongs
            problem = str(slow)
        fields = self._streams[stream].fields
        name = ""
        if problem.startswith("value["):
            position = int(problem[6 : problem.index("]")])
            name = f"field {fields[position]!r}: "
        hint = _TRAVELS if problem.endswith("cannot be serialised") else ""
        raise EmitError(f"{self._where(stream)}: {name}{problem}{hint}") from error

    def _too_large(self, stream: str, row: bytes) -> EmitError:
        return EmitError(
            f"{self._where(stream)}: a tuple of {len(row)} bytes is above the limit of "
            f"{self._max_row_bytes}; emit smaller tuples or raise storm_py.frame.max.bytes"
        )

    def _undeclared(self, stream: str) -> EmitError:
        if self._streams:
            declared, hint = ", ".join(self._streams), did_you_mean(stream, self._streams)
        else:
            declared = "none"
            hint = "; define declare_output_fields(self, declarer), as in declarer.declare('word')"
        return EmitError(
            f"component {self.component!r} emits on stream {stream!r}, which it has not declared "
            f"(declared: {declared}){hint}"
        )

    def _where(self, stream: str) -> str:
        return f"component {self.component!r}, stream {stream!r}"

    def _unpack(self, stream: str, row: bytes) -> list[object]:
        """A row that was packed for the sake of the test: what another process would receive."""
        if len(row) > self._max_row_bytes:
            raise self._too_large(stream, row)
        return self._codec.unpack_row(row)

    def _grow(self, stream: str, batch: OpenBatch, row: bytes) -> None:
        """A row above the small size was appended: count its bytes, flush when there are enough."""
        if len(row) > self._max_row_bytes:
            batch.rows.pop()
            if len(batch.roots) > len(batch.rows):
                batch.roots.pop()
                batch.edges.pop()
            raise self._too_large(stream, row)
        batch.extra_bytes += len(row) - self.batcher.small
        if batch.extra_bytes >= self.batcher.extra_limit:
            self._flush(batch)

    # ---- generation ----------------------------------------------------------------------------

    def _regular(self, stream: str) -> Callable[..., tuple[int, ...]]:
        """The emit function of one regular stream."""
        names = self._names(stream)
        if self._acks is None:
            return self._function(stream, Tracking.OFF, names)
        if self._style == "spout":
            return self._function(stream, Tracking.SPOUT, names)
        names["emit_many"] = self._function(stream, Tracking.ANCHORS, names)
        return self._function(stream, Tracking.ANCHOR, names)

    def _function(
        self, stream: str, tracking: Tracking, names: dict[str, Any]
    ) -> Callable[..., tuple[int, ...]]:
        targets = self._targets[stream]
        mixed = any(self._mixed.intersection(target.tasks) for target in targets)
        handed = [i for i, target in enumerate(targets) if self._is_handed(target)]
        shape = EmitShape(
            self._style,
            len(self._streams[stream].fields),
            targets,
            self.batcher.small,
            self.batcher.extra_limit,
            (self._max_row_bytes - self.batcher.small) // ROOT_BYTES,
            self._index[stream] if mixed else None,
            tracking,
            debug=self._log is not None,
            handed=frozenset(handed),
            serialize=self._serialize,
        )
        return compile_emit(f"{self.component}.{stream}", emit_lines(shape), names)

    def _is_handed(self, target: Target) -> bool:
        local = {batch.dest for batch in self.batcher.handed_over()}
        return local.issuperset(target.candidates)

    def _names(self, stream: str) -> dict[str, Any]:
        """What the text of a stream's functions refers to; both share cursors and caches."""
        names: dict[str, Any] = {
            "HOME": stream,
            "Tuple": Tuple,
            "TrackedTuple": TrackedTuple,
            "other": self._other,
            "as_row": lambda values: self._as_row(stream, values),
            "wrong_width": lambda values: self._wrong_width(stream, values),
            "pack": self._pack,
            "unpack": partial(self._unpack, stream),
            "repack": lambda values, error: self._repack(stream, values, error),
            "grow": lambda batch, row: self._grow(stream, batch, row),
            "check_size": partial(self._check_size, stream),
            "flush": self._flush,
            "emissions": self.emissions,
            "acked": self.acked,
            "check_open": lambda: self._check_open(stream),
            "current": self.current,
            "anchor_list": anchor_list,
            "count_roots": count_roots,
        }
        acks = self._acks
        if acks is not None:
            names["bits"] = acks.bits
            names["anchor_row"] = acks.anchor_row
            names["init_roots"] = acks.init_roots
            names["init_values"] = acks.init_values
            names["next_root"] = None if self.roots is None else self.roots.next
            names["pending"] = self.pending.newer
        if self._log is not None:
            names["log_emit"] = emit_log(self.component, self._task, stream, self._log)
        for i, target in enumerate(self._targets[stream]):
            names |= self._target_names(stream, i, target)
        return names

    def _target_names(self, stream: str, i: int, target: Target) -> dict[str, Any]:
        batches = {task: self.batcher.batch(task) for task in target.candidates}
        several = len(batches) > 1
        where = self._where(stream)
        match target.kind:
            case GroupingKind.FIELDS:
                owner = to_owner(target, batches, self._key_groups, self._keys)
                return self._by_key(i, stream, target, owner)
            case GroupingKind.PARTIAL_KEY if several:
                owners = to_owners(target, batches, self._key_groups, self._keys)
                return self._by_key(i, stream, target, owners)
            case GroupingKind.ALL:
                return {f"batches{i}": tuple(batches.values()), f"answer{i}": target.tasks}
            case GroupingKind.CUSTOM:
                return {f"choose{i}": chooser(target, where, self._task, batches)}
            case GroupingKind.DIRECT:
                raise AssertionError(f"{target.kind} on a regular stream")
            case kind if kind in SHUFFLES and several:
                start = self._task % len(batches)
                in_turn = [*batches.values()]
                turns = itertools.cycle(in_turn[start:] + in_turn[:start])
                return {f"next{i}": turns.__next__}
            case _:
                return {f"batch{i}": batches[min(batches)]}

    def _by_key(
        self, i: int, stream: str, target: Target, find: Callable[[Sequence[object]], object]
    ) -> dict[str, Any]:
        fields = self._streams[stream].fields
        cache, miss = cached(find, target, fields, self._where(stream))
        return {f"cache{i}": cache, f"miss{i}": miss}
