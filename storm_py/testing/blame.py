"""What a test is told about an exception of user code: its own traceback, and where it happened."""

from __future__ import annotations

from typing import Final

from storm_py.engine.tasks import UserError

from .spies import SpoutSpy, Spy

__all__ = ["explain", "users_own"]

#: Modules whose frames lead to user code and say nothing about it.
_OURS: Final = ("storm_py.engine.", "storm_py.single", "storm_py.testing.")


def users_own(error: UserError, spy: Spy) -> BaseException:
    """The exception that user code raised, with a note of where."""
    where = f"{error.component!r} (task {error.task}), {error.where}"
    if error.where == "execute" and not isinstance(spy, SpoutSpy):
        where += f" of {spy.executing!r}"
    explain(error.error, where)
    return error.error


def explain(error: BaseException, where: str) -> None:
    """Add a note, and leave out of the traceback how the engine came to user code."""
    error.add_note(f"in {where}")
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(_OURS):
        trace = trace.tb_next
    error.__traceback__ = trace or error.__traceback__
