"""`storm-py set_log_level`: levels of the loggers of a topology that runs, for a time or for good.

The name of the command and the form of its options are Storm's. Workers act on the levels; which of
Storm's words means what to Python's logging is their matter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from .arguments import json_option, name_argument, parse_whole
from .calls import nimbus_of
from .exits import Refused
from .settings import cluster_options
from .tables import table

if TYPE_CHECKING:  # slow to import
    from storm_py.rpc.definitions import LogConfig

__all__ = ["set_log_level"]

#: Storm's, from all there is to nothing.
LEVELS: Final = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_EXPECTED: Final = "LOGGER=LEVEL[:SECS], as in ROOT=DEBUG:30; LEVEL is one of " + ", ".join(LEVELS)

#: Per logger its level, and the seconds until it ends; 0 for never.
_Levels: TypeAlias = dict[str, tuple[str, int]]


def _levels(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> _Levels:
    levels: _Levels = {}
    for text in value:
        logger, _, rest = text.rpartition("=")
        level, colon, secs_text = rest.partition(":")
        secs = parse_whole(secs_text, 0) if colon else 0
        if not logger or level not in LEVELS or secs is None:
            raise click.BadParameter(f"{text!r}; expected {_EXPECTED}", ctx, param)
        if logger in levels:
            raise click.BadParameter(f"{logger!r} is there twice", ctx, param)
        levels[logger] = (level, secs)
    return levels


@click.command("set_log_level")
@name_argument()
@click.option(
    "-l",
    "levels",
    multiple=True,
    callback=_levels,
    metavar="LOGGER=LEVEL[:SECS]",
    help="Set the level of a logger, ROOT for all; after SECS it is what it was. May be repeated.",
)
@click.option(
    "-r",
    "removed",
    multiple=True,
    metavar="LOGGER",
    help="Let a logger have the level again that it had at first. May be repeated.",
)
@json_option()
@cluster_options
def set_log_level(
    name: str, levels: _Levels, removed: tuple[str, ...], as_json: bool, conf: dict[str, Any]
) -> None:
    """Set levels of loggers of the topology NAME, and show those that are set.

    Without -l and -r it shows them only.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, 3 refused by the cluster.
    """
    from storm_py.rpc.definitions import LogConfig, LogLevel, LogLevelAction

    both = [logger for logger in removed if logger in levels]
    if both:
        raise Refused(f"logger {both[0]!r} is to be set and removed; say one of both")
    changes = {
        logger: LogLevel(
            action=LogLevelAction.UPDATE,
            target_log_level=level,
            reset_log_level_timeout_secs=secs,
        )
        for logger, (level, secs) in levels.items()
    }
    changes.update((logger, LogLevel(action=LogLevelAction.REMOVE)) for logger in removed)
    with nimbus_of(conf, name) as nimbus:
        id_ = nimbus.getTopologySummaryByName(name).id
        if changes:
            nimbus.setLogConfig(id_, LogConfig(named_logger_level=changes))
        _show(name, nimbus.getLogConfig(id_), as_json)


def _show(name: str, config: LogConfig, as_json: bool) -> None:
    levels = [
        {
            "logger": logger,
            "level": level.target_log_level,
            "secs": level.reset_log_level_timeout_secs or None,
            "until_secs": level.reset_log_level_timeout_epoch or None,
            "before": level.reset_log_level,
        }
        for logger, level in sorted((config.named_logger_level or {}).items())
    ]
    if as_json:
        click.echo(json.dumps(levels, indent=2))
    elif not levels:
        click.echo(f"no levels are set for {name}")
    else:
        rows = [(level["logger"], level["level"], level["secs"]) for level in levels]
        click.echo(table(("Logger", "Level", "Secs"), rows))
