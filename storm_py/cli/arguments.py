"""Arguments and options that several commands take, and what their values may be.

Checks need the command line alone: whether there is such a topology is asked by the commands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from storm_py.config import Config, validate

from .settings import Settings

__all__ = [
    "ARGS",
    "TopologyCommand",
    "command_line",
    "json_option",
    "name_argument",
    "parse_whole",
    "seconds",
    "whole_number",
    "workers_option",
]

#: Where `TopologyCommand` puts the arguments of the topology, in the context's `meta`.
ARGS: Final = "storm_py.args"
#: Largest number that travels: 32 bits.
_LARGEST: Final = 2**31 - 1

Callback = Callable[[click.Context, click.Parameter, Any], Any]


class TopologyCommand(click.Command):
    """A command line in two parts: what stands behind `--` belongs to the topology."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args[: args.index("--")] if "--" in args else args
        ctx.meta[ARGS] = args[len(own) + 1 :]
        try:
            return super().parse_args(ctx, own)
        except click.UsageError as error:
            unknown = isinstance(error, click.NoSuchOption) and not error.possibilities
            if not unknown and "extra argument" not in error.message:
                raise
            hint = "what is meant for the topology goes behind --"
            message = error.format_message().removesuffix(".")
            raise click.UsageError(f"{message}; {hint}", ctx) from error

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- ARGS]..."]


def whole_number(smallest: int) -> Callback:
    """A callback for options whose values are whole numbers from `smallest` on."""

    def checked(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        number = parse_whole(value, smallest)
        if number is None:
            expected = f"a whole number of at least {smallest}"
            raise click.BadParameter(f"{value!r}; expected {expected}", ctx, param)
        return number

    return checked


def parse_whole(text: str, smallest: int) -> int | None:
    """The whole number in a text; None if there is none, or one that is too small or too large."""
    if not text.strip().isdecimal() or not smallest <= int(text) <= _LARGEST:
        return None
    return int(text)


def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A callback for options whose values are seconds, with a fraction if need be."""
    if value is None:
        return None
    try:
        secs = float(value)
    except ValueError:
        secs = 0.0
    if not 0 < secs < math.inf:  # nan fails both
        raise click.BadParameter(f"{value!r}; expected seconds, a number above 0", ctx, param)
    return secs


def workers_option() -> Callable[[Any], Any]:
    """The option `--workers`; a command gets a number or None."""
    return click.option(
        "--workers",
        callback=whole_number(1),
        metavar="N",
        help="Worker processes; overrides topology.workers.",
    )


def json_option() -> Callable[[Any], Any]:
    """The option `--json`; a command gets it as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def command_line(settings: Settings, workers: int | None) -> dict[str, object]:
    """What -c and --workers set; checked, so that no user code runs for nothing."""
    conf = dict(settings)
    if workers is not None:
        conf[Config.TOPOLOGY_WORKERS] = workers
    validate(conf)
    return conf


def name_argument() -> Callable[[Any], Any]:
    """The argument NAME, of a topology that runs; shells complete it."""
    return click.argument("name", metavar="NAME", callback=_name, shell_complete=_complete)


def _name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value or not value.isprintable():  # also what is no text in this terminal's coding
        raise click.BadParameter(f"{value!r} is no name of a topology", ctx, param)
    return value


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from .completion import topology_names

    settings: Mapping[str, object] = dict(ctx.params.get("settings") or ())
    names = topology_names(ctx.params.get("config"), settings)
    return [name for name in names if name.startswith(incomplete)]
