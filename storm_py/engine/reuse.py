"""One tuple object for many rows, as long as user code keeps none of them.

Making an object for every row costs a bolt more than the rest of its loop. Most bolts let go of a
tuple when `execute` returns; then nobody can tell whether the next row comes in the same object.
Who keeps a tuple holds a reference to it, and CPython counts those. Pure.
"""

from __future__ import annotations

import sys
from typing import Final


def _alone() -> int:
    """The count that `sys.getrefcount` gives a function whose local name is the only reference."""
    found = object()
    return sys.getrefcount(found)


#: `sys.getrefcount` of a local above this: somebody else has the object as well. Without a global
#: interpreter lock the count says nothing, and is always above.
ALONE: Final = _alone() if getattr(sys, "_is_gil_enabled", lambda: True)() else 0
