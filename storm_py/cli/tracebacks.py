"""Tracebacks as an operator wants them: the frames of user code, without those of storm_py.

Works on text, because that is what arrives from other processes (`ErrorReport`). The loader trims
exceptions it caught itself, in `storm_py.loader`. Pure, but for the place where storm_py is.
"""

from __future__ import annotations

import os
import re
import sysconfig
from pathlib import Path
from typing import Final

__all__ = ["users_part"]

_PACKAGE: Final = str(Path(__file__).resolve().parents[1]) + os.sep
#: The examples are part of the package and yet user code.
_EXAMPLES: Final = os.path.join(_PACKAGE, "topologies") + os.sep
_STANDARD_LIBRARY: Final = tuple(
    os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
)
_HEADER: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r'  File "(.*)", line \d+')
#: What Python writes between two exceptions of a chain.
_LINK: Final = re.compile(
    r"\n\n(The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)\n\n"
)


def users_part(text: str, message: str) -> str:
    """Return the traceback `text` without storm_py's frames; "" if nothing else is in it.

    A cause that arose within storm_py alone goes too. `message` is what the caller shows anyway
    (`ValueError: ...`) and is not repeated at the end.
    """
    pieces = _LINK.split(text.rstrip())
    shown = ""
    for i in range(0, len(pieces) - 1, 2):
        frames, tail = _split(pieces[i])
        if frames:
            shown += "\n".join([_HEADER, *frames, *tail]) + f"\n\n{pieces[i + 1]}\n\n"
    frames, tail = _split(pieces[-1])
    if frames:
        shown += "\n".join([_HEADER, *frames])
    if not _repeats("\n".join(tail), message):
        shown += "\n".join(["", *tail] if frames else tail)
    return shown.rstrip()


def _split(piece: str) -> tuple[list[str], list[str]]:
    """The lines of the user's frames, and the lines behind all frames."""
    lines = piece.splitlines()
    if not lines or lines[0] != _HEADER:
        return [], lines
    frames: list[str] = []
    users = True
    for i in range(1, len(lines)):
        line = lines[i]
        if not line.startswith("  "):
            return frames, lines[i:]
        if found := _FRAME.match(line):
            users = _is_users(found.group(1), users)
        if users:
            frames.append(line)
    return frames, []


def _is_users(filename: str, caller_is_users: bool) -> bool:
    """Whether code is the user's; a library counts as whoever called it."""
    if filename.startswith("<storm-py "):  # a generated function
        return False
    if filename.startswith("<") and not filename.startswith("<frozen "):  # run by exec, say
        return True
    path = os.path.realpath(filename)
    if path.startswith(_PACKAGE):
        return path.startswith(_EXAMPLES)
    is_installed = "site-packages" in path or "dist-packages" in path
    is_compiled = not os.path.isabs(filename)  # and names a source that is not here
    if is_installed or is_compiled or path.startswith(_STANDARD_LIBRARY):
        return caller_is_users
    return True


def _repeats(tail: str, message: str) -> bool:
    """Whether the last lines say `message`; they name the module of the exception as well."""
    message = message.rstrip().removesuffix(":")
    return tail == message or tail.endswith(f".{message}")
