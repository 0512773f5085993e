"""The options of every command that has a configuration: `-c KEY=VALUE`, and `--config FILE`.

Commands of the cluster read storm.yaml; `local` does not. Environment and home folder are read
here, and nothing else of them anywhere.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import click

from storm_py.config import configuration, parse_assignment
from storm_py.errors import ConfigError

__all__ = [
    "Settings",
    "cluster_options",
    "config_option",
    "home",
    "parse_settings",
    "settings_option",
    "storm_yaml",
]

#: Keys and values in the order of the command line.
Settings: TypeAlias = tuple[tuple[str, object], ...]


def settings_option() -> Callable[[Any], Any]:
    """The option `-c`; a command gets it as `settings`, not validated."""
    return click.option(
        "-c",
        "settings",
        callback=parse_settings,
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a configuration key; the value is read as JSON if it is JSON. May be repeated.",
    )


def config_option() -> Callable[[Any], Any]:
    """The option `--config`; a command gets it as `config`, for `storm_yaml`."""
    return click.option(
        "--config",
        metavar="FILE",
        help="Read this storm.yaml, instead of the first one where it is looked for.",
    )


def cluster_options(command: Callable[..., object]) -> Any:
    """Both options; the command gets the configuration of the cluster as `conf`, checked."""

    @config_option()
    @settings_option()
    @functools.wraps(command)
    def configured(*args: Any, config: str | None, settings: Settings, **named: Any) -> object:
        conf = configuration(None, dict(settings), storm_yaml(config))
        return command(*args, conf=conf, **named)

    return configured


def storm_yaml(config: str | None) -> Mapping[str, object]:
    """What the storm.yaml says that counts; what is odd in it is said on stderr.

    `config` is the value of `--config`. Raises ConfigError.
    """
    from storm_py.storm_yaml import find, load  # imports yaml

    found = load(find(config, os.environ, home()))
    for warning in found.warnings:
        click.echo(f"Warning: {warning}", err=True)
    return found.values


def home() -> Path:
    """The user's home folder; a folder that is not there for a user without one."""
    return Path(os.path.expanduser("~"))


def parse_settings(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> Settings:
    """A callback that reads each KEY=VALUE."""
    try:
        return tuple(parse_assignment(text) for text in value)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx, param) from error
