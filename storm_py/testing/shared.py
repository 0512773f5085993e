"""What a test and the copies of its components have in common.

Every task runs a copy of the object that the builder was given, so a test that keeps a component
in a variable would look at the wrong one. What is `Shared` is never copied within a process: a
copy of a component holds the very same object. In another process there is nobody to share with,
and every use says so instead of losing what the test waits for.
"""

from __future__ import annotations

import itertools
import os
from typing import Any, Final, NoReturn
from weakref import WeakValueDictionary

__all__ = ["Shared"]

_numbers = itertools.count(1)
#: What pickles refer to; an object nobody holds any more is gone from here as well.
_living: Final[WeakValueDictionary[tuple[int, int], Shared]] = WeakValueDictionary()


class Shared:
    """An object that unpickles to itself; a subclass calls `super().__init__()`."""

    #: what users know it as
    label = ""

    def __init__(self) -> None:
        self._key = (os.getpid(), next(_numbers))
        _living[self._key] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self._key, self.label)


class _Elsewhere:
    """Stands for a shared object in a process that it does not belong to."""

    def __init__(self, key: tuple[int, int], label: str) -> None:
        self.__dict__["_what"] = (key, label)

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, self.__dict__["_what"]

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        self._refuse()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        what = self.__dict__["_what"][1]
        raise RuntimeError(
            f"this {what} belongs to the process of the test that made it, and this is process "
            f"{os.getpid()}; use it with TopologyDriver or in one thread, and "
            "complete_topology(..., mock_sources=..., processes=True) to feed and watch processes"
        )


def _find(key: tuple[int, int], label: str) -> object:
    if key[0] == os.getpid():
        found = _living.get(key)
        if found is not None:
            return found
    return _Elsewhere(key, label)
