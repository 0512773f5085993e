"""The project of a topology: which folder is packed, and where in it the user's modules are found.

It looks at the file system and at the modules that `storm_py.loader` has imported, and reads no
file. What of the folder belongs into the archive is decided in `storm_py.submit.listing`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storm_py.errors import PackingError
from storm_py.loader import LoadedTopology

__all__ = ["Project", "find_project", "never_roots"]

#: Any of these marks the root of a project.
_MARKERS: Final = ("pyproject.toml", "setup.cfg", ".git")
_INSTALLED: Final = ("site-packages", "dist-packages")
_OWN: Final = "storm_py"


@dataclass(frozen=True, slots=True)
class Project:
    """The folder of a topology's code, and how its module is imported from a copy of it."""

    #: The folder, resolved; None for a module of storm_py itself, which every node has.
    root: Path | None
    #: Dotted name of the topology's module.
    module: str
    #: What has to be on `sys.path` to import it: relative to the root, with slashes; "." for it.
    sys_path: str
    #: The module's file, relative to the root; empty without a root.
    file: str

    @property
    def name(self) -> str:
        """What the project is called: the name of its folder."""
        return _OWN if self.root is None else self.root.name


def find_project(loaded: LoadedTopology, never: Mapping[Path, str] | None = None) -> Project:
    """Find the project of a topology that was loaded in this process.

    Its root is the nearest folder with a pyproject.toml, setup.cfg or .git, from the one upwards
    that Python found the module in; without any it is that folder. `never` are folders that are not
    looked into on that way, nor packed, with words for each, by default `never_roots()`. Raises
    PackingError.
    """
    if loaded.module.partition(".")[0] == _OWN:
        return Project(None, loaded.module, ".", "")
    never = never_roots() if never is None else never
    file = Path(os.path.abspath(sys.modules[loaded.module].__file__ or ""))
    if not file.is_file():
        raise PackingError(
            f"the module {loaded.module} is in no file of its own, but in {file}; submit it from "
            "a folder"
        )
    # Its links are kept until here: they may stand for the packages in the module's name.
    depth = loaded.module.count(".") + (file.stem == "__init__")
    found_in = file.parents[depth]
    if any(part in _INSTALLED for part in found_in.parts):
        raise PackingError(
            f"the module {loaded.module} is installed, in {found_in}, and belongs to no project "
            "that could be packed; submit it from its source"
        )
    inside = file.relative_to(found_in)
    folder = found_in.resolve()
    root = _root(folder, file, never)
    return Project(
        root,
        loaded.module,
        folder.relative_to(root).as_posix(),
        (folder / inside).relative_to(root).as_posix(),
    )


def never_roots() -> dict[Path, str]:
    """The folders that are no project, whatever is in them, with words for each."""
    found = {Path(os.sep): "the root of the file system"}
    for temporary in ("/tmp", "/var/tmp", tempfile.gettempdir()):
        found[Path(temporary).resolve()] = "a folder for temporary files"
    try:
        found[Path.home().resolve()] = "your home folder"
    except RuntimeError:
        pass  # a user without one, as in some containers
    return found


def _root(folder: Path, file: Path, never: Mapping[Path, str]) -> Path:
    if folder in never:
        raise PackingError(
            f"{file} belongs to the folder {folder}, {never[folder]}, which is not packed as a "
            "whole; move the project into a folder of its own"
        )
    for candidate in (folder, *folder.parents):
        if candidate in never:
            break
        if any((candidate / marker).exists() for marker in _MARKERS):
            return candidate
    return folder
