"""What `topology.debug` writes to the log: one line for each tuple emitted.

Only functions generated with it on come here; with it off nothing does. Pure: lines leave through
the `log` that the driver's port gives.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from typing import Final

#: Characters of a line's values; what is longer is cut.
_VALUES_CHARS: Final = 500

_SHORT: Final = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = _SHORT.maxdict = 20
_SHORT.maxstring = _SHORT.maxother = 100


def emit_log(
    component: str, task: int, stream: str, log: Callable[[str], None]
) -> Callable[[Sequence[object], Sequence[int]], None]:
    """A function that logs one emit: the values, and the tasks that they go to."""
    start = f"{component} task {task} emits on stream {stream!r}"

    def log_emit(values: Sequence[object], tasks: Sequence[int]) -> None:
        whom = f"to {', '.join(map(str, tasks))}" if tasks else "to nobody"
        log(f"{start} {whom}: {shortened(values)}")

    return log_emit


def shortened(values: Sequence[object]) -> str:
    """The values as text of bounded length, whatever they are."""
    try:
        text = _SHORT.repr(list(values))
    except Exception as error:  # noqa: BLE001 - a user's __repr__, or an int of 5000 digits
        return f"{len(values)} value(s) that cannot be shown ({type(error).__name__}: {error})"
    return text if len(text) <= _VALUES_CHARS else f"{text[: _VALUES_CHARS - 3]}..."
