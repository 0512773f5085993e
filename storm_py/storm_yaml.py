"""storm.yaml: where it is looked for, and how it becomes a layer of configuration.

One file counts, the first of these that is there; files are not merged, as in Storm:

1. the one that `--config FILE` names;
2. `$STORM_CONF_DIR/storm.yaml`;
3. `~/.storm/storm.yaml`, where Storm's own client looks;
4. `$XDG_CONFIG_HOME/storm-py/storm.yaml`, which is in `~/.config` if the variable is not set;
5. `/etc/storm-py/storm.yaml`.

The first two were chosen by somebody: it is an error if they are not there. None of the rest is
needed. The current folder is no such place: what a command does should not depend on that.

Callers bring environment and home folder, so that the command line alone reads them.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from .config import KEYS, validate
from .errors import ConfigError, a_type, nearest

__all__ = ["StormYaml", "find", "load"]

_NAME: Final = "storm.yaml"
_SYSTEM: Final = Path("/etc/storm-py")
#: Storm has many keys that mean nothing here, and a file of Storm's should read without a warning:
#: the closest of them to a key of ours, storm.log.dir to storm.local.dir, is at 0.857.
_TYPO_CUTOFF: Final = 0.87


@dataclass(frozen=True, slots=True)
class StormYaml:
    """What a storm.yaml says, checked."""

    #: None if there is none.
    path: Path | None = None
    values: Mapping[str, object] = field(default_factory=dict)
    #: What is odd about it, a sentence each: keys that look misspelt.
    warnings: tuple[str, ...] = ()


def find(
    config: str | None, environ: Mapping[str, str], home: Path, system: Path = _SYSTEM
) -> Path | None:
    """The storm.yaml that counts; None if there is none. ConfigError if a chosen one is not there.

    `config` is the value of `--config`.
    """
    if config is not None:
        path = Path(config)
        if not path.is_file():
            what = "is a folder; name a file in it" if path.is_dir() else "is not there"
            raise ConfigError(f"--config {config}: {path.absolute()} {what}")
        return path
    if environ.get("STORM_CONF_DIR"):
        path = Path(environ["STORM_CONF_DIR"], _NAME)
        if not path.is_file():
            raise ConfigError(
                f"STORM_CONF_DIR is {environ['STORM_CONF_DIR']}, but there is no file {path}; "
                "create it, or unset the variable"
            )
        return path
    settings = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    folders = (home / ".storm", settings / "storm-py", system)
    return next((folder / _NAME for folder in folders if (folder / _NAME).is_file()), None)


def load(path: Path | None) -> StormYaml:
    """Read and check a storm.yaml; an empty layer for None.

    Raises ConfigError that names file, line, key, value and expectation for a file that cannot be
    read, is no YAML or no mapping, for a key that is there twice or is not written in full, for a
    value that is wrong or no plain data, and for keys that `storm_py.config.validate` refuses.
    Other unknown keys are somebody's own; those that look like a known one are warned of.
    """
    if path is None:
        return StormYaml()
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    values, lines = _parsed(path, text)
    warnings = []
    for key, value in values.items():
        place = f"{path}, line {lines[key]}"
        _check(place, key, value)
        near = None if key in KEYS else nearest(key, KEYS, _TYPO_CUTOFF)
        if near is not None:
            warnings.append(f"{place}: no key is called {key!r}; did you mean {near!r}?")
    return StormYaml(path, values, tuple(warnings))


def _check(place: str, key: str, value: object) -> None:
    below = next((known for known in sorted(KEYS) if known.startswith(f"{key}.")), None)
    if isinstance(value, dict) and below is not None:
        raise ConfigError(f"{place}: {key} is a mapping; keys are written in full, as {below}: ...")
    try:
        validate({key: value})
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{place}: {key} is {value!r}; expected text, numbers, true, false, null, lists and "
            "mappings of these; quotes make a text of anything"
        ) from error


# ---- YAML --------------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """YAML for plain data, which has each key of a mapping once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Make the mapping; a ConstructorError for a key that is there twice, or is no text."""
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            key = key_node.value
            line = key_node.start_mark.line + 1
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            if key_node.tag != "tag:yaml.org,2002:str":
                found = self.construct_object(key_node, deep=True)
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {found!r} is {a_type(found)}, not a str", key_node.start_mark
                )
            if key in seen:
                problem = f"{key} is there twice, first in line {seen[key]}"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen[key] = line
        return super().construct_mapping(node, deep)


def _parsed(path: Path, text: bytes) -> tuple[dict[str, object], dict[str, int]]:
    """The mapping in a file, and the line of each key."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return {}, {}
            if not isinstance(node, yaml.MappingNode):
                found = loader.construct_document(node)
                if found is None:
                    return {}, {}
                raise ConfigError(
                    f"{path}, line {node.start_mark.line + 1}: the file is {a_type(found)}; "
                    "expected a mapping, a line as `topology.workers: 2` for each key"
                )
            scalars = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            lines = {key.value: key.start_mark.line + 1 for key in scalars}
            values = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{path}{_place(error)}: {_words(error)}") from error
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    return values, {key: lines.get(key, 1) for key in values}


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"


def _words(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "is no YAML"
    return f"{error.context}: {problem}" if error.context else problem
