"""User errors: what the components of a simulated topology raise, and whether they may.

`report_error` and FailedException are ways to say something and count for nothing here; what ends a
process does, and what `end_of_input`, `close` and `cleanup` raise.
"""

from __future__ import annotations

from collections.abc import Mapping

from storm_py.engine.tasks import UserError

from .watching import WatchedBasicBolt, WatchedBolt


class UserErrors:
    """Those of one run; exceptions of the classes in `expected` may happen."""

    def __init__(self, expected: tuple[type[BaseException], ...]) -> None:
        self._expected = expected
        self._count = 0
        self._last = ""

    def expect(self, kind: type[BaseException]) -> None:
        """Exceptions of one more class may happen."""
        self._expected += (kind,)

    def happened(self, error: BaseException, objects: Mapping[int, object], phase: str) -> str:
        """User code has raised; says what is wrong with that, "" if it may be.

        `objects` are those of the instance by task, `phase` the run's.
        """
        raised, where = error, ""
        if isinstance(error, UserError):
            raised = error.error
            where = f"{error.component} (task {error.task}) raised in {error.where}"
            task = objects.get(error.task)
            if error.where.startswith("execute") and isinstance(
                task, (WatchedBolt, WatchedBasicBolt)
            ):
                where += f" of {task.watch.guilty!r}"
        name = type(raised).__name__
        self._count += 1
        self._last = f"{where}: {name}: {raised}"
        if not isinstance(raised, self._expected):
            return (
                f"{self._last}\n  if this may happen, and the process start again: "
                f"Simulation(..., expected_errors={name})"
            )
        if phase == "starting":
            return f"{self._last}\n  before the run had begun, which ends it"
        return ""

    def described(self) -> list[str]:
        """How many there were and the last of them, for the report of a failure."""
        return (
            [f"  errors of user code: {self._count}, the last: {self._last}"] if self._count else []
        )
