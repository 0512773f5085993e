"""Logging of worker processes: everything to the process's log file, warnings on to the terminal.

A record of WARNING or above is also queued for the worker's control channel; the queue is bounded
and says how many records it dropped, so that a bolt that warns about every tuple cannot flood.
"""

from __future__ import annotations

import json
import logging
import logging.handlers
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

from storm_py.wire.control import LogRecord

_LOG = logging.getLogger("storm_py.instance")

_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"
_QUEUED_RECORDS = 100
_TEXT_CHARS = 2000
#: Size from which a log that is rotated, or output that lies there when its writer starts, is put
#: aside; and how many of those are kept.
LOG_BYTES = 10 * 1024 * 1024
LOG_BACKUPS = 3
#: How much of the end of its log is shown of a process that died without a word.
_LAST_CHARS = 2000


class RecordQueue(logging.Handler):
    """Holds warnings until the loop takes them; any thread may log, also before there is a loop."""

    def __init__(self, source: str) -> None:
        super().__init__(logging.WARNING)
        self.source = source
        self._queue: deque[LogRecord] = deque()
        self._dropped = 0
        self._wake: Callable[[], None] = lambda: None
        self._woken = False

    def wake_by(self, wake: Callable[[], None]) -> None:
        """From now on call `wake` when there is something to take, on the thread that logs it."""
        self._wake = wake
        self._woken = bool(self._queue)
        if self._woken:
            wake()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record for the terminal; those of storm-py itself travel as error reports."""
        if record.name.startswith("storm_py."):
            return
        if len(self._queue) >= _QUEUED_RECORDS:
            self._dropped += 1
            return
        text = record.getMessage()[:_TEXT_CHARS]
        self._queue.append(LogRecord(record.levelno, self.source, text))
        if not self._woken:  # one wake-up serves all records until they are taken
            self._woken = True
            self._wake()

    def take(self) -> list[LogRecord]:
        """What was queued since the last call."""
        # Before looking: whoever logs from here on wakes the loop again.
        self._woken = False
        if not self._queue:
            return []
        taken = [self._queue.popleft() for _ in range(len(self._queue))]
        if self._dropped:
            text = f"{self._dropped} more records were dropped here; the log file has them"
            taken.append(LogRecord(logging.WARNING, self.source, text))
            self._dropped = 0
        return taken


def set_up_logging(records: RecordQueue | None, path: Path | None = None) -> None:
    """Log INFO and above to a file that is rotated here; without one to standard error."""
    handler: logging.Handler
    if path is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = logging.handlers.RotatingFileHandler(
            path, maxBytes=LOG_BYTES, backupCount=LOG_BACKUPS, encoding="utf-8", errors="replace"
        )
    handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    if records is not None:
        root.addHandler(records)


class LoggerLevels:
    """The levels of this process's loggers, as orders change them."""

    def __init__(self) -> None:
        #: of loggers that are changed: the level that they had
        self._before: dict[str, int] = {}

    def set(self, levels: str) -> None:
        """Have these loggers at these levels, as `LogLevels` has them, and all others as before."""
        wanted: dict[str, str] = json.loads(levels)
        for name in self._before.keys() - wanted.keys():
            self._set(name, self._before.pop(name))
        for name, level in wanted.items():
            self._before.setdefault(name, logging.getLogger(name).level)
            self._set(name, level)

    def _set(self, name: str, level: str | int) -> None:
        logger = logging.getLogger(name)
        logger.setLevel(level)
        _LOG.info("the level of %s is %d now", logger.name, logger.level)


def last_words(log: Path) -> str:
    """The end of a log, for a process that can no longer say what happened to it."""
    return log.read_text("utf-8", "replace")[-_LAST_CHARS:] if log.exists() else ""
