"""From the TOPOLOGY of a command line to a checked ``StormTopology``.

TOPOLOGY is ``path/file.py[:name]`` or ``package.module[:name]``; ``name``, by default
``topology``, is a function that takes the list of arguments and returns a ``TopologyBuilder`` or
``StormTopology``, or a pair of that and the topology's configuration; or it is such an object or
pair itself. The module is imported under its real name and never
as ``__main__``, so that its classes are found again in other processes that put the same folder
on their path. This module runs user code once, to build; it starts nothing. Every failure is a
``TopologyLoadError`` whose text is complete: commands print it and exit.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import keyword
import os
import pkgutil
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Final

from .api.declarers import checked_config
from .api.topology import StormTopology, TopologyBuilder
from .errors import (
    ConfigError,
    InvalidTopologyException,
    TopologyLoadError,
    a_type,
    did_you_mean,
)

__all__ = ["LoadedTopology", "load"]

_DEFAULT_NAME: Final = "topology"
_FORMS: Final = "path/file.py[:name] or package.module[:name]"


@dataclass(frozen=True, slots=True)
class LoadedTopology:
    """A topology and what another process needs to import the same classes."""

    topology: StormTopology
    #: Name to run it under when none is configured: the module's, or what was named after ``:``.
    name: str
    #: Module that was imported, by its real, dotted name.
    module: str
    #: Absolute folder that has to come first on ``sys.path`` for that import.
    sys_path: str
    #: What the file sets of the topology's configuration, checked; nothing by default.
    conf: Mapping[str, object]


def load(spec: str, args: list[str]) -> LoadedTopology:
    """Load the topology that ``spec`` names; ``args`` are handed to it if it is a function.

    The folder of the file, or the current folder for a module, is put first on ``sys.path`` and
    stays there. Raises TopologyLoadError if there is no such file, module or name, or if the
    user's code fails, with the user's own part of the traceback; InvalidTopologyException if the
    builder it gives holds a topology that cannot run. A SystemExit of the function, as argparse
    raises it for ``--help``, passes through.
    """
    where, colon, name = spec.partition(":")
    if not where or (colon and not _is_name(name)):
        raise TopologyLoadError(f"{spec!r} names no topology; expected {_FORMS}")
    name = name or _DEFAULT_NAME
    if _is_path(where):
        file = _checked_file(where)
        folder, module_name = str(file.parent), file.stem
        _put_first(folder)
        module = _import(where, module_name)
    else:
        folder, module_name = os.getcwd(), where
        if where == "__main__" or not all(_is_name(part) for part in where.split(".")):
            raise TopologyLoadError(f"{where!r} is no .py file and no module; expected {_FORMS}")
        _put_first(folder)
        module = _import_found(where)
    topology, conf = _topology_from(_attribute(module, name), f"{name!r} in {where}", args)
    run_name = module_name.rpartition(".")[2] if name == _DEFAULT_NAME else name
    return LoadedTopology(topology, run_name, module_name, folder, conf)


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _is_path(where: str) -> bool:
    if os.sep in where or where.endswith(".py") or where in (os.curdir, os.pardir):
        return True
    return Path(where).is_file()


def _put_first(folder: str) -> None:
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()  # the file may be younger than what the finders remember


# --- a file -------------------------------------------------------------------------------------


def _checked_file(where: str) -> Path:
    """Return the resolved file, after the checks that need no import."""
    path = Path(where)
    if path.is_dir():
        raise TopologyLoadError(
            f"{where} is a folder; name a file in it{_listed(_python_files(path), 'it holds')}"
        )
    if not path.is_file():
        raise TopologyLoadError(_missing_file(path))
    if path.suffix != ".py":
        raise TopologyLoadError(f"{where} is no Python file; its name has to end in .py")
    if not _is_name(path.stem):
        raise TopologyLoadError(
            f"{where}: {path.stem!r} is not a name that Python can import; rename the file to "
            "letters, digits and underscores"
        )
    file = path.resolve()
    _refuse_shadowing(where, file)
    return file


def _missing_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"{path} does not exist, nor does its folder {path.parent}"
    return f"{path} does not exist{did_you_mean(path.name, _python_files(path.parent))}"


def _python_files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.glob("*.py"))


def _refuse_shadowing(where: str, file: Path) -> None:
    """Refuse a file whose module name belongs to something else, here or in other processes."""
    name = file.stem
    other = _other_module(name, file)
    if other:
        raise TopologyLoadError(
            f"{where} would be imported as {name!r}, which is {other}; rename the file"
        )


def _other_module(name: str, file: Path) -> str:
    """Describe what else ``import name`` means, here or elsewhere; ``""`` if only ``file``."""
    if name in sys.stdlib_module_names:
        return "a module of Python's standard library"
    loaded = sys.modules.get(name)
    if loaded is not None and not _same_file(getattr(loaded, "__file__", None), file):
        return f"already imported from {getattr(loaded, '__file__', None) or 'elsewhere'}"
    beside = PathFinder.find_spec(name, [str(file.parent)])
    if beside is not None and not _same_file(beside.origin, file):
        return f"also {beside.origin}, and Python prefers that"
    here = (file.parent, Path.cwd())
    elsewhere = [entry for entry in sys.path if entry and Path(entry).resolve() not in here]
    installed = PathFinder.find_spec(name, elsewhere)
    if installed is None or installed.origin is None or _same_file(installed.origin, file):
        return ""
    return f"an installed module ({installed.origin})"


def _same_file(one: str | None, other: Path) -> bool:
    return one is not None and Path(one).resolve() == other


# --- importing ----------------------------------------------------------------------------------


def _import_found(name: str) -> ModuleType:
    """Import a module given by name; say so clearly if there is none."""
    try:
        found = importlib.util.find_spec(name)
    except (Exception, SystemExit) as error:  # packages on the way run their __init__.py
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{name}.".startswith(f"{missing}."):
            raise TopologyLoadError(_missing_module(name)) from None
        raise _import_failed(name, error) from error
    if found is None:
        raise TopologyLoadError(_missing_module(name))
    module = _import(name, name)
    if module.__file__ is None:
        raise TopologyLoadError(f"{name!r} is a folder, not a module; name a module in it")
    return module


def _missing_module(name: str) -> str:
    start = f"no module {name!r} here or among what is installed"
    parts = name.split(".")
    path = [os.getcwd()]
    for end in range(len(parts) - 1, 0, -1):
        parent, missing = ".".join(parts[:end]), parts[end]
        if parent in sys.modules:
            path = list(getattr(sys.modules[parent], "__path__", []))
            if not path:
                return f"{start}; {parent!r} is no package, for a name in it: {parent}:{missing}"
            break
    else:
        missing = parts[0]
    siblings = [found.name for found in pkgutil.iter_modules(path)]
    return f"{start}{did_you_mean(missing, siblings) or f'; expected {_FORMS}'}"


def _import(where: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise _import_failed(where, error) from error


def _import_failed(where: str, error: BaseException) -> TopologyLoadError:
    if isinstance(error, SyntaxError):
        place = f"{error.filename or where}, line {error.lineno}"
        return TopologyLoadError(f"{where} is not valid Python: {place}\n{_users_traceback(error)}")
    if isinstance(error, SystemExit):
        return TopologyLoadError(
            f"{where} exits while it is imported; move what it does at the top level into "
            f"{_DEFAULT_NAME}(args)\n{_users_traceback(error)}"
        )
    if isinstance(error, InvalidTopologyException | ConfigError):
        return TopologyLoadError(f"{_users_line(error, where)}: {error}")
    hint = ""
    if isinstance(error, ImportError) and "relative import" in str(error):
        hint = "; for relative imports name it as package.module"
    return TopologyLoadError(f"importing {where} failed{hint}\n{_users_traceback(error)}")


# --- what the module holds ----------------------------------------------------------------------


def _attribute(module: ModuleType, name: str) -> object:
    if hasattr(module, name):
        value: object = getattr(module, name)
        return value
    known = [key for key, value in vars(module).items() if _is_candidate(module, key, value)]
    hint = did_you_mean(name, known) or _listed(known, "it defines")
    raise TopologyLoadError(
        f"{module.__name__} ({module.__file__}) has no {name!r}{hint}; "
        f"define {_DEFAULT_NAME}(args), or name what to use after a colon"
    )


def _is_candidate(module: ModuleType, key: str, value: object) -> bool:
    if key.startswith("_"):
        return False
    if isinstance(value, TopologyBuilder | StormTopology):
        return True
    return inspect.isfunction(value) and value.__module__ == module.__name__


def _listed(names: Sequence[str], lead: str) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"; {lead}: {shown}"


def _topology_from(
    value: object, what: str, args: list[str]
) -> tuple[StormTopology, Mapping[str, object]]:
    if callable(value) and not isinstance(value, type):
        value, verb = _call(value, what, args), "returned"
    else:
        verb = "is"
    conf: Mapping[str, object] = {}
    if isinstance(value, tuple):
        value, conf = _pair(value, what, verb)
    if isinstance(value, TopologyBuilder):
        return value.create_topology(), conf
    if isinstance(value, StormTopology):
        return value, conf
    if inspect.iscoroutine(value):
        value.close()  # it would warn that nobody awaited it
    forgot = "; did it forget to return the builder?" if value is None else ""
    raise TopologyLoadError(
        f"{what} {verb} {a_type(value)}; expected a TopologyBuilder or StormTopology, or a pair of "
        f"that and a configuration{forgot}"
    )


def _pair(value: tuple[object, ...], what: str, verb: str) -> tuple[object, Mapping[str, object]]:
    """Take (topology, configuration) apart, the second checked."""
    kinds = TopologyBuilder | StormTopology
    if len(value) != 2 or not isinstance(value[0], kinds) or not isinstance(value[1], Mapping):
        found = ", ".join(a_type(each) for each in value)
        turned = len(value) == 2 and isinstance(value[0], Mapping)
        raise TopologyLoadError(
            f"{what} {verb} a tuple ({found}); expected (topology, configuration): a "
            "TopologyBuilder or StormTopology, and a Config or dict"
            f"{', in this order' if turned else ''}"
        )
    try:
        return value[0], checked_config(f"the configuration that {what} gives", value[1])
    except InvalidTopologyException as error:
        raise TopologyLoadError(str(error)) from error


def _call(function: Callable[..., object], what: str, args: list[str]) -> object:
    try:
        inspect.signature(function).bind(args)
    except TypeError:
        raise TopologyLoadError(
            f"{what} has the parameters {inspect.signature(function)}; it is called with one, "
            "the list of arguments: def topology(args)"
        ) from None
    try:
        return function(list(args))
    except (InvalidTopologyException, ConfigError) as error:  # says it all, but for the line
        raise TopologyLoadError(f"{_users_line(error, what)}: {error}") from error
    except Exception as error:
        raise TopologyLoadError(f"{what} failed\n{_users_traceback(error)}") from error


# --- the user's part of a traceback -------------------------------------------------------------

_LIBRARY_FOLDERS: Final = (
    str(Path(__file__).parent) + os.sep,
    *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")),
)


def _users_traceback(error: BaseException) -> str:
    """Format ``error`` and what caused it, without the frames of libraries and of storm-py."""
    report = traceback.TracebackException.from_exception(error)
    pending = [report]
    while pending:
        part = pending.pop()
        own = [frame for frame in part.stack if _is_users(frame.filename)]
        part.stack = traceback.StackSummary.from_list(own)
        pending += [linked for linked in (part.__cause__, part.__context__) if linked]
    text = "".join(report.format()).rstrip()
    return text.replace("Traceback (most recent call last):\n", "", 1) if not report.stack else text


def _users_line(error: Exception, default: str) -> str:
    """Name the line of user code that led to ``error``."""
    own = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    return f"{own[-1].filename}, line {own[-1].lineno}" if own else default


def _is_users(filename: str) -> bool:
    if filename.startswith("<"):  # importlib's frozen part, or code without a file
        return False
    if "site-packages" in filename or "dist-packages" in filename:
        return False
    real = os.path.realpath(filename)  # the examples are in storm_py by a link only
    return not real.startswith(_LIBRARY_FOLDERS)
