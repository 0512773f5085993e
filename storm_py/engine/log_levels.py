"""LogLevels: which levels the loggers of a topology have now, of those that an operator has set.

Storm's levels and names of loggers: ROOT is the root logger, the others are those of Python. A
level is set for good, or for a time, after which another one holds or what held before. Pure; time
is that of the clock on the wall, as the end of a level is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

#: Storm's name of the root logger; Python's is empty.
ROOT: Final = "ROOT"

#: Storm's levels by Python's.
LEVELS: Final[Mapping[str, str]] = {
    "ALL": "DEBUG",
    "TRACE": "DEBUG",
    "DEBUG": "DEBUG",
    "INFO": "INFO",
    "WARN": "WARNING",
    "WARNING": "WARNING",
    "ERROR": "ERROR",
    "FATAL": "CRITICAL",
    "CRITICAL": "CRITICAL",
    "OFF": "CRITICAL",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """The level of a logger, in Storm's words."""

    level: str
    #: When it ends, in seconds since 1970; 0 for never.
    until: float = 0
    #: What holds after it; None for what held before.
    then: str | None = None


class LogLevels:
    """The settings of one topology."""

    def __init__(self) -> None:
        self._settings: dict[str, Setting] = {}

    def set(self, settings: Mapping[str, Setting]) -> None:
        """These are all the settings from now on."""
        self._settings = dict(settings)

    def effective(self, now: float) -> dict[str, str]:
        """Python's levels of Python's loggers, but for those that are as at the start."""
        found = {}
        for name, setting in sorted(self._settings.items()):
            over = setting.until and now >= setting.until
            level = LEVELS.get((setting.then if over else setting.level) or "")
            if level is not None:
                found["" if name == ROOT else name] = level
        return found

    def next_timeout(self, now: float) -> float | None:
        """When the next setting ends, None for never."""
        return min((s.until for s in self._settings.values() if s.until > now), default=None)
