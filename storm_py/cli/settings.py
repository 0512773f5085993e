"""The option `-c KEY=VALUE`, which every command that has a configuration takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import click

from storm_py.config import parse_assignment
from storm_py.errors import ConfigError

__all__ = ["Settings", "settings_option"]

#: Keys and values in the order of the command line.
Settings: TypeAlias = tuple[tuple[str, object], ...]


def settings_option() -> Callable[[Any], Any]:
    """The option; a command gets it as `settings`, not validated."""
    return click.option(
        "-c",
        "settings",
        callback=_parse,
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a configuration key; the value is read as JSON if it is JSON. May be repeated.",
    )


def _parse(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> Settings:
    try:
        return tuple(parse_assignment(text) for text in value)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx, param) from error
