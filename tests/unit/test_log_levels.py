"""LogLevels: what an operator has set, in Python's words, for as long as it holds."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from storm_py.engine.log_levels import LogLevels, Setting
from storm_py.runtime.logs import LoggerLevels


def levels(**settings: Setting) -> LogLevels:
    found = LogLevels()
    found.set(settings)
    return found


@pytest.mark.parametrize(
    ("storms", "pythons"),
    [
        ("ALL", "DEBUG"),
        ("TRACE", "DEBUG"),
        ("DEBUG", "DEBUG"),
        ("INFO", "INFO"),
        ("WARN", "WARNING"),
        ("ERROR", "ERROR"),
        ("FATAL", "CRITICAL"),
        ("OFF", "CRITICAL"),
    ],
)
def test_storms_words(storms: str, pythons: str) -> None:
    assert levels(shop=Setting(storms)).effective(0.0) == {"shop": pythons}


def test_the_root_logger() -> None:
    assert levels(ROOT=Setting("WARN"), shop=Setting("DEBUG")).effective(0.0) == {
        "": "WARNING",
        "shop": "DEBUG",
    }


def test_a_level_for_a_time() -> None:
    found = levels(
        back=Setting("DEBUG", until=100),
        other=Setting("DEBUG", until=50, then="ERROR"),
        good=Setting("INFO"),
    )
    assert found.effective(49.9) == {"back": "DEBUG", "good": "INFO", "other": "DEBUG"}
    assert found.next_timeout(49.9) == 50
    assert found.effective(50) == {"back": "DEBUG", "good": "INFO", "other": "ERROR"}
    assert found.next_timeout(50) == 100
    assert found.effective(100) == {"good": "INFO", "other": "ERROR"}
    assert found.next_timeout(100) is None


def test_what_is_no_level_changes_nothing() -> None:
    assert levels(shop=Setting("LOUD")).effective(0.0) == {}


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("test_log_levels")
    found.setLevel(logging.ERROR)
    yield found
    found.setLevel(logging.NOTSET)


def test_a_process_goes_back_to_what_it_had(logger: logging.Logger) -> None:
    process = LoggerLevels()
    for level in ("DEBUG", "WARNING"):
        process.set(json.dumps({logger.name: level}))
        assert logger.level == getattr(logging, level)
    process.set("{}")
    assert logger.level == logging.ERROR
