"""Exit codes of the command line, and the exceptions that carry one out with a message.

click prints "Error: " and the message on stderr and exits; only `storm_py.cli` raises these.
"""

from __future__ import annotations

from typing import Final

import click

__all__ = [
    "DONE",
    "FAILED",
    "INTERRUPTED",
    "ClusterRefused",
    "Failed",
    "Interrupted",
    "Refused",
]

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
INTERRUPTED: Final = 130


class Refused(click.ClickException):
    """Raised when what the user asked for cannot be started as it is."""

    exit_code = USAGE


class ClusterRefused(click.ClickException):
    """Raised when the cluster does not do what it was asked for."""

    exit_code = REFUSED


class Failed(click.ClickException):
    """Raised when the command did start and could not finish."""

    exit_code = FAILED


class Interrupted(click.ClickException):
    """Raised when somebody stopped the command outside a run, which has its own ways."""

    exit_code = INTERRUPTED
