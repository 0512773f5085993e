"""User code and what becomes of its exceptions: every call says which component, task and method.

`UserError` ends the executor that raises it, as in Storm; `ErrorReport` is what an operator sees.
Pure.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from storm_py.wire.control import ErrorReport

Report = Callable[[ErrorReport], None]

#: What user code may end with; sys.exit() in a bolt is a mistake to show, not an orderly end.
FROM_USER_CODE = (Exception, SystemExit)


class UserError(Exception):
    """Raised when user code raised: where, and what; the cause is the user's exception."""

    def __init__(self, component: str, task: int, where: str, error: BaseException) -> None:
        super().__init__(f"{component} (task {task}), {where}: {type(error).__name__}: {error}")
        self.component = component
        self.task = task
        self.where = where
        self.error = error

    def report(self, fatal: bool) -> ErrorReport:
        """The record that tells the operator."""
        text = "".join(traceback.format_exception(self.error))
        message = f"{type(self.error).__name__}: {self.error}"
        return ErrorReport(self.component, self.task, self.where, message, text, fatal)


def call_user(
    component: str, task: int, where: str, function: Callable[..., object], *args: object
) -> object:
    """Call and return the answer; what it raises becomes a UserError, unless it is one already."""
    try:
        return function(*args)
    except UserError:
        raise
    except FROM_USER_CODE as error:
        raise UserError(component, task, where, error) from error
