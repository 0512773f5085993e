"""UserError: an exception of user code, with the component, the task and what was being called."""

from __future__ import annotations

import traceback

from storm_py.wire.control import ErrorReport


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
