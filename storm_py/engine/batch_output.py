"""BatchOutput: the emits of a batch bolt, many rows in one call.

What is decided per tuple in `storm_py.engine.emitters` is decided here per call; per row there are
comprehensions and calls of C functions only, so nothing is generated. A call goes in steps, each
for all rows: pack, look at the anchors, choose destinations, append (`batch_filling`). Whatever may
refuse a row comes before the last of them, so that a refused call has emitted nothing. What only
tasks of the same instance hear of, or nobody, is not packed. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from storm_py.api.batches import Batch
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.errors import EmitError, a_type
from storm_py.wire.values import PLAIN

from .batch_acking import Anchors, BatchAcks, positions
from .batch_filling import Filling
from .batch_routes import Choice, Part, Receivers, Route, Rows, handing, route_of
from .columns import is_columns, rows_of
from .debug import emit_log
from .emitters import TaskOutput

#: Hears of every row that was emitted: its values, the stream, the tasks that it goes to.
Tell = Callable[[Sequence[object], str, tuple[int, ...]], None]


class BatchOutput(TaskOutput):
    """The sending half of one task of a batch bolt."""

    #: the batch that is being executed
    batch: Batch | None = None
    #: there is a hook: it wants to know of every row
    tell: Tell | None = None

    def _functions(self) -> dict[str, Callable[..., tuple[int, ...]]]:
        self._batch_acks = None if self._acks is None else BatchAcks(self._acks)
        self._routes = {name: self._routes_of(name) for name in self._streams}
        self._widths = {name: len(info.fields) for name, info in self._streams.items()}
        self._heads = {name: _head(width) for name, width in self._widths.items()}
        self._packs = {name: self._is_packed(name) for name in self._streams}
        self._filling = Filling(self.batcher, self._flush)
        return {}

    def _is_packed(self, stream: str) -> bool:
        """Whether anybody gets rows of a stream packed, or a test wants to see that they can be."""
        targets = self._targets[stream]
        return not all(map(self._is_handed, targets)) or bool(targets and self._serialize)

    def _routes_of(self, stream: str) -> list[Route]:
        if self._streams[stream].direct:
            return []
        fields, where = self._streams[stream].fields, self._where(stream)
        routes = []
        for target in self._targets[stream]:
            batches = {task: self.batcher.batch(task) for task in target.candidates}
            keys = self._key_groups, self._keys
            route = route_of(target, batches, fields, where, self._task, *keys)
            routes.append(handing(route) if self._is_handed(target) else route)
        return routes

    @property
    def emit(self) -> Callable[..., tuple[int, ...]]:
        """The collector's emit."""
        return self.emit_row

    @property
    def emit_direct(self) -> Callable[..., None]:
        """The collector's emit_direct."""
        return self.emit_row_direct

    @property
    def batch_acks(self) -> BatchAcks | None:
        """What the task answers its batches with, None without acking."""
        return self._batch_acks

    # ---- the collector -------------------------------------------------------------------------

    def emit_batch(
        self,
        rows: Any,
        source_index: Any = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> Sequence[tuple[int, ...]]:
        """The collector's emit_batch."""
        lists = self._lists(stream, rows)
        of = self._of(batch, "emit_batch")
        found = None
        if source_index is not None:
            found = self._positions(source_index, of, "emit_batch")
            if len(found) != len(lists):
                raise EmitError(
                    f"{self._where(stream)}: emit_batch got {len(lists)} row(s) and a source_index "
                    f"of {len(found)}; expected one position of {of!r} for each row"
                )
        lists, packed, longest = self._packed(stream, lists)
        anchors, acks = None, self._batch_acks
        heard = bool(self._routes[stream])
        if lists and of is not None and acks is not None and (heard or of.left < len(of)):
            anchors = acks.to_whole(of, len(lists)) if found is None else acks.to_rows(of, found)
        return self._send(stream, lists, packed, longest, anchors)

    def emit_row(
        self,
        values: Sequence[object],
        source_index: int | Sequence[int] | None = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> tuple[int, ...]:
        """The collector's emit."""
        if stream not in self._streams or self._streams[stream].direct:
            raise self._not_regular(stream)
        plain = self._plain(stream, values)
        row = b""
        if self._packs[stream]:
            row = self._row(stream, plain)
            self._check_room(stream, row, 0)
        anchors = self._anchors_of_row(source_index, batch, "emit")
        return self._send(stream, [plain], [row], len(row), anchors)[0]

    def emit_row_direct(
        self,
        task_id: int,
        values: Sequence[object],
        source_index: int | Sequence[int] | None = None,
        stream: str = DEFAULT_STREAM_ID,
        batch: Batch | None = None,
    ) -> None:
        """The collector's emit_direct."""
        self._check_direct(stream)
        row = self._row(stream, values)
        self._check_room(stream, row, 0)
        anchors = self._anchors_of_row(source_index, batch, "emit_direct")
        heard = any(task_id in target.tasks for target in self._targets[stream])
        # As in Storm: nothing is sent to a component that does not subscribe to this stream.
        parts = [Part(self.batcher.batch(task_id), range(1))] if heard else []
        choice = Choice(parts, lambda n: (task_id,) if heard else ())
        self._send(stream, [list(values)], [row], len(row), anchors, [choice])

    # ---- what is emitted -----------------------------------------------------------------------

    def _lists(self, stream: str, rows: Any) -> Rows:
        """The rows as a list, and as lists if they are tuples; no other row is looked at."""
        if stream not in self._streams or self._streams[stream].direct:
            raise self._not_regular(stream)
        if is_columns(rows):
            return rows_of(rows, self._streams[stream].fields, self._where(stream))
        if isinstance(rows, (str, bytes)) or not hasattr(rows, "__iter__"):
            raise EmitError(
                f"{self._where(stream)}: emit_batch got {a_type(rows)}; expected rows, each a list "
                "of values, as in emit_batch([[value], [value]])"
            )
        found: list[Any] = rows if rows.__class__ is list else list(rows)
        if found and found[0].__class__ is tuple:
            return [list(row) if row.__class__ is tuple else row for row in found]
        return found

    def _packed(self, stream: str, rows: Rows) -> tuple[Rows, list[bytes], int]:
        """The rows, surely lists now, the same packed, and the size of the longest.

        EmitError names the first that cannot be packed.
        """
        if not self._packs[stream]:
            width = self._widths[stream]
            if set(map(type, rows)) <= {list} and set(map(len, rows)) <= {width}:
                return rows, [], 0
            return [self._naming(n, self._plain, stream, row) for n, row in enumerate(rows)], [], 0
        first, expected = self._heads[stream]
        packed: list[bytes] = []
        try:
            packed = list(map(self._pack, rows))
            # These bytes say whether a row is a list, and of how many values.
            odd = not set(map(first, packed)) <= {expected}
        except Exception:  # noqa: BLE001 - whatever it is, the slow way finds and names it
            odd = True
        longest = max(map(len, packed), default=0)
        if odd or longest > self._max_row_bytes:
            packed = [self._packed_slowly(stream, rows, n) for n in range(len(rows))]
            return [list(row) for row in rows], packed, max(map(len, packed))
        return rows, packed, longest

    def _plain(self, stream: str, row: object) -> list[Any]:
        """A row as a list, if it has the right width."""
        plain: list[Any] = row if type(row) is list else self._as_row(stream, row)
        if len(plain) != self._widths[stream]:
            raise self._wrong_width(stream, plain)
        return plain

    def _packed_slowly(self, stream: str, rows: Rows, n: int) -> bytes:
        packed: bytes = self._naming(n, self._row, stream, rows[n])
        self._naming(n, self._check_room, stream, packed, 0)
        return packed

    @staticmethod
    def _naming(n: int, function: Callable[..., Any], *args: object) -> Any:
        """Call, and name row `n` in what is raised."""
        try:
            return function(*args)
        except EmitError as error:
            raise _in_row(n, error) from error.__cause__

    # ---- what it is anchored to ----------------------------------------------------------------

    def _of(self, batch: Batch | None, call: str) -> Batch | None:
        """The batch that an emit is made from."""
        if batch is None:
            return self.batch
        if not isinstance(batch, Batch):
            raise EmitError(f"{call} got {a_type(batch)} as batch; expected a Batch")
        return batch

    def _positions(self, source_index: object, batch: Batch | None, call: str) -> list[int]:
        if batch is None:
            raise EmitError(
                f"{call} got a source_index, but no batch is being executed; give the batch that "
                "it means, as in batch=kept"
            )
        return positions(source_index, batch, f"{call} (source_index)")

    def _anchors_of_row(
        self, source_index: object, batch: Batch | None, call: str
    ) -> Anchors | None:
        of = self._of(batch, call)
        found = None if source_index is None else self._positions(source_index, of, call)
        acks = self._batch_acks
        if of is None or acks is None:
            return None
        return acks.to_whole(of, 1) if found is None else acks.to_several(of, found)

    # ---- out -----------------------------------------------------------------------------------

    def _send(
        self,
        stream: str,
        rows: Rows,
        packed: list[bytes],
        longest: int,
        anchors: Anchors | None,
        choices: Sequence[Choice] | None = None,
    ) -> Receivers:
        """Emit the rows, which have been checked but for the room that their roots need.

        `longest` is the size of the longest row.
        """
        many_roots = anchors is not None and anchors.most_roots > 1
        if anchors is not None and many_roots:
            for n, row in enumerate(packed):
                self._naming(n, self._check_room, stream, row, anchors.most_roots)
        if choices is None:
            choices = [route(rows) for route in self._routes[stream]]
        self.emissions.emitted += len(rows)
        index = self._index[stream]
        small = not many_roots and longest <= self.batcher.small
        for choice in choices:
            for part in choice.parts:
                columns = None if anchors is None else anchors.columns(part.picked)
                if choice.handed:
                    lists = self._copies(rows, packed, part.picked)
                    self._filling.lists(index, part.dests, lists, columns)
                    continue
                copies = packed
                if part.picked.__class__ is not range:
                    copies = [packed[n] for n in part.picked]
                self._filling.packed(index, part.dests, copies, columns, small)
        receivers = Receivers(choices, len(rows))
        if self._log is not None or self.tell is not None:
            for values, tasks in zip(rows, receivers, strict=True):
                self._tell_of(values, stream, tasks)
        return receivers

    def _copies(self, rows: Rows, packed: list[bytes], picked: Sequence[int]) -> Rows:
        """The rows at these positions as lists that are nobody else's."""
        if self._serialize:
            return [self._codec.unpack_row(packed[n]) for n in picked]
        return [list(rows[n]) for n in picked]

    def _tell_of(self, values: Sequence[object], stream: str, tasks: tuple[int, ...]) -> None:
        if self._log is not None:
            emit_log(self.component, self._task, stream, self._log)(values, tasks)
        if self.tell is not None:
            self.tell(values, stream, tasks)


def _head(width: int) -> tuple[Callable[[bytes], object], object]:
    """What takes the first bytes of a packed row, and what they are for a list of this width."""
    first: Callable[[bytes], object] = itemgetter(0 if width < 16 else slice(3))
    return first, first(PLAIN.packer()([None] * width))


def _in_row(n: int, error: EmitError) -> EmitError:
    return EmitError(f"row {n} of the batch: {error}")
