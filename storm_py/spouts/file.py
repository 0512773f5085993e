"""FileSpout: the lines of a text file, each until it was acked, also over deaths of the process.

The spout itself: files, locks and the clock around `Progress` (what to emit next, what to keep) and
`LineReader` (what a line is).
"""

from __future__ import annotations

import codecs
import fcntl
import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from storm_py import (
    BaseRichSpout,
    Config,
    FailedException,
    InvalidTopologyException,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    TopologyContext,
)

from .lines import HEAD_BYTES, LineReader, head_of
from .progress import START, Pace, Position, Progress, Saved

__all__ = ["FileSpout"]

_LOG = logging.getLogger("storm_py.spouts")

#: Lines that are read and not acked where topology.max.spout.pending sets no limit.
_MAX_OPEN: Final = 10_000
#: How long a task waits for its predecessor, which the run has given up, to be gone.
_LOCK_SECS: Final = 5.0
#: By path, the locks that tasks of this process hold.
_LOCKS: Final[dict[Path, IO[bytes]]] = {}


class FileSpout(BaseRichSpout):
    """Emits the lines of the text file `path` as `[line_number, line]`, at least once each.

    A line's message id is its byte offset. What fails is emitted again: at once the first time,
    later after waits that double from 0.1 to 10 s. When `max_retries` (None: no limit) retries of a
    line have failed too it is reported as an error and skipped. What is not acked is kept on disk
    in `offset_dir`, one file per task, written whole and synced, `save_secs` after the last time or
    after `save_rows` acks: a task that is started again goes on there and repeats, besides what was
    not acked, only what was acked since. So a second run over a file that is done emits nothing;
    remove `offset_dir` to read it again. Without acking (`topology.acker.executors: 0`) lines count
    as acked when they are emitted.

    Several tasks share the file by line number: each reads all of it and emits every n-th line.
    That costs each of them the reading, which is cheap beside an emit, and keeps line numbers exact
    and shares equal while the file grows, which ranges of bytes would not. The number of tasks may
    not change while there are offsets.

    Memory is bounded by `topology.max.spout.pending` (10,000 where it is not set): lines that wait
    for a retry count as pending too. `max_per_sec` limits each task. At the end of the file the
    input ends, once all is acked; with `follow` the spout waits for lines to be appended instead,
    and takes a line when its end is there. The file may grow, but not change.

    `encoding` must be one in which a line ends with the byte 10; `errors` is that of bytes.decode.
    With `encoding=None` lines are bytes. Line ends (LF or CRLF) are taken off. (Not in Storm.)
    """

    _clock = staticmethod(time.monotonic)

    def __init__(
        self,
        path: str | os.PathLike[str],
        offset_dir: str | os.PathLike[str],
        *,
        encoding: str | None = "utf-8",
        errors: str = "strict",
        follow: bool = False,
        max_per_sec: float | None = None,
        max_retries: int | None = None,
        save_secs: float = 1.0,
        save_rows: int = 10_000,
        max_line_bytes: int = 1 << 20,
    ) -> None:
        """Keep the settings; raises InvalidTopologyException for those that cannot work."""
        _check(encoding is None or _is_known(encoding), "encoding", encoding, "a known encoding")
        _check(
            encoding is None or "\n".encode(encoding) == b"\n",
            "encoding",
            encoding,
            "one that writes the end of a line as the single byte 10, or None for lines as bytes",
        )
        _check(_is_handler(errors), "errors", errors, "a name such as 'strict' or 'replace'")
        _check(max_per_sec is None or max_per_sec > 0, "max_per_sec", max_per_sec, "more than 0")
        _check(max_retries is None or max_retries >= 0, "max_retries", max_retries, "at least 0")
        _check(save_secs >= 0, "save_secs", save_secs, "at least 0")
        _check(save_rows >= 1, "save_rows", save_rows, "at least 1")
        _check(max_line_bytes >= 1, "max_line_bytes", max_line_bytes, "at least 1")
        self.path = Path(path).absolute()
        self.offset_dir = Path(offset_dir).absolute()
        self.encoding = encoding
        self.errors = errors
        self.follow = follow
        self.max_per_sec = max_per_sec
        self.max_retries = max_retries
        self.save_secs = save_secs
        self.save_rows = save_rows
        self.max_line_bytes = max_line_bytes

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the default stream; override it together with `values`."""
        declarer.declare("line_number", "line")

    def values(self, line_number: int, line: Any) -> Sequence[object]:
        """What is emitted for a line, a str or bytes; called again for each retry."""
        return line_number, line

    # ---- a task's life -------------------------------------------------------------------------

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Go on where the offset file says, or begin at the beginning."""
        if not self.path.exists():
            raise FileNotFoundError(f"FileSpout: {self.path} does not exist")
        if not self.path.is_file():
            raise IsADirectoryError(f"FileSpout: {self.path} is no regular file; name a text file")
        self.collector = collector
        self._index = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))
        self._make_offset_dir()
        name = f"{context.this_component_id}-{self._index}"
        self._offsets = self.offset_dir / f"{name}.json"
        self._lock = self._locked(self.offset_dir / f"{name}.lock", context.storm_id)
        try:
            saved = self._load()
        except ValueError:
            self._lock.close()
            raise
        next_, open_ = (START, ()) if saved is None else (saved.next, saved.open)
        if not self.follow and not open_ and 0 < next_.offset == self.path.stat().st_size:
            _LOG.warning(
                "every line of %s was acked before, says %s; remove that to read the file again",
                self.path,
                self._offsets,
            )
        limit = conf[Config.TOPOLOGY_MAX_SPOUT_PENDING] or _MAX_OPEN
        now = self._clock()
        self._progress = Progress(next_, open_, limit, self.save_rows, self.save_secs, now)
        self._pace = None if self.max_per_sec is None else Pace(self.max_per_sec, now)
        self._reader = LineReader(
            self.path, next_, self._index, self._tasks, self.follow, self.max_line_bytes
        )

    def next_tuple(self) -> None:
        """Emit a line: one that is due for its retry, else the next of the file."""
        now = self._clock()
        progress = self._progress
        if self._pace is None or self._pace.may(now):
            at = progress.again(now)
            if at is not None:
                self._emit(at, self._reader.at(at), now)
            elif progress.may_read:
                found = self._reader.next()
                progress.reads(found[0] if found else None, self._reader.position)
                if found is not None:
                    self._emit(*found, now)
                elif progress.done and not self.follow:
                    self._save(now)
                    self.collector.end_of_input()
        if progress.save_due(now):
            self._save(now)

    def _emit(self, at: Position, line: bytes, now: float) -> None:
        self.collector.emit(self.values(at.number, self._text(at, line)), msg_id=at.offset)
        if self._pace is not None:
            self._pace.emitted(now)

    def _text(self, at: Position, line: bytes) -> str | bytes:
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if self.encoding is None:
            return line
        try:
            return line.decode(self.encoding, self.errors)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"line {at.number:,} of {self.path} (byte {at.offset:,}) is no {self.encoding}: "
                f"{error.reason} at byte {at.offset + error.start:,}; give the FileSpout the right "
                "encoding, errors='replace', or encoding=None for lines as bytes"
            ) from error

    def ack(self, msg_id: object) -> None:
        """The line at this offset is done."""
        assert isinstance(msg_id, int)
        self._progress.acked(msg_id)
        now = self._clock()
        if self._progress.save_due(now):
            self._save(now)

    def fail(self, msg_id: object) -> None:
        """The line at this offset is emitted again, unless it has failed too often."""
        assert isinstance(msg_id, int)
        fails = self._progress.failed(msg_id, self._clock())
        if self.max_retries is not None and fails > self.max_retries:
            at = self._progress.give_up(msg_id)
            self.collector.report_error(
                FailedException(
                    f"line {at.number:,} of {self.path} (byte {at.offset:,}) failed {fails} times "
                    f"and is skipped (max_retries={self.max_retries})"
                )
            )

    def close(self) -> None:
        """Save where to go on."""
        self._save(self._clock())
        self._reader.close()
        self._lock.close()

    # ---- the offset file -----------------------------------------------------------------------

    def _load(self) -> Saved | None:
        """What an earlier process saved; ValueError if that does not belong to this task's file."""
        try:
            data = self._offsets.read_bytes()
        except FileNotFoundError:
            return None
        remedy = "remove it to read the file from its beginning, or use another offset_dir"
        try:
            saved = Saved.decode(data)
        except ValueError as error:
            raise ValueError(
                f"offset file {self._offsets} is damaged: {error}; {remedy}"
            ) from error
        if saved.path != str(self.path):
            raise ValueError(
                f"offset file {self._offsets} belongs to {saved.path}, not to {self.path}; {remedy}"
            )
        if (saved.task_index, saved.tasks) != (self._index, self._tasks):
            raise ValueError(
                f"offset file {self._offsets} was written by task {saved.task_index} of "
                f"{saved.tasks}, and this is task {self._index} of {self._tasks}: keep the number "
                f"of tasks, or remove {self.offset_dir} to read the file from its beginning"
            )
        size = self.path.stat().st_size
        offset = saved.next.offset
        same = size >= offset and self._ends_a_line(offset, size)
        if not same or head_of(self.path, saved.head_bytes) != saved.head:
            raise ValueError(
                f"{self.path} is not the file that offset file {self._offsets} was written for: it "
                f"was read up to byte {offset:,} then and has {size:,} bytes of other "
                f"content now; {remedy}"
            )
        return saved

    def _ends_a_line(self, offset: int, size: int) -> bool:
        if offset in (0, size):
            return True
        with self.path.open("rb") as file:
            file.seek(offset - 1)
            return file.read(1) == b"\n"

    def _save(self, now: float) -> None:
        progress = self._progress
        head_bytes = min(HEAD_BYTES, progress.next.offset)
        saved = Saved(
            str(self.path),
            head_bytes,
            head_of(self.path, head_bytes),
            self._index,
            self._tasks,
            progress.lowest,
            progress.next,
            progress.open,
        )
        write_durably(self._offsets, saved.encode())
        progress.saved(now)

    def _make_offset_dir(self) -> None:
        remedy = "name a folder, which is made if need be"
        try:
            self.offset_dir.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(
                f"FileSpout: offset_dir {self.offset_dir} is a file; {remedy}"
            ) from error
        except OSError as error:
            raise OSError(
                f"FileSpout: offset_dir {self.offset_dir} cannot be made: {error.strerror}; "
                f"{remedy}"
            ) from error

    def _locked(self, path: Path, run: str) -> IO[bytes]:
        """Keep other runs away from the offsets: two writers would skip lines of each other.

        The file names the run that holds it. A process of this run that is about to die is waited
        for, another run is not. One that this process holds is of a copy that died in it, as copies
        do in tests.
        """
        earlier = _LOCKS.pop(path, None)
        if earlier is not None:
            earlier.close()
        lock = open(path, "ab", opener=_private)  # noqa: SIM115 - held until close, or death
        give_up_at = self._clock() + _LOCK_SECS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = path.read_text(encoding="utf-8", errors="replace")
                if holder not in ("", run) or self._clock() > give_up_at:
                    lock.close()
                    name = f", {holder}" if holder not in ("", run) else ""
                    raise ValueError(
                        f"the offsets in {self.offset_dir} are in use by another run{name}; end "
                        "it, or give each run an offset_dir of its own"
                    ) from None
                time.sleep(0.05)
            else:
                lock.truncate(0)
                lock.write(run.encode())
                lock.flush()
                _LOCKS[path] = lock
                return lock


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def write_durably(path: Path, data: bytes) -> None:
    """Replace a file so that after a crash either the old or the new content is there, whole."""
    draft = path.with_suffix(".new")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check(good: bool, name: str, value: object, expected: str) -> None:
    if not good:
        raise InvalidTopologyException(f"FileSpout got {name}={value!r}; expected {expected}")


def _is_known(encoding: str) -> bool:
    try:
        "".encode(encoding)
    except (LookupError, TypeError):
        return False
    return True


def _is_handler(errors: str) -> bool:
    try:
        codecs.lookup_error(errors)
    except (LookupError, TypeError):
        return False
    return True
