"""One thing that operators get wrong: a command, its exit code, what it says, and what to do.

The rows are in `tests.operators_submit` and `tests.operators_rest`; `tests.operators_page` makes a
page of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Mistake"]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One row."""

    id: str
    #: What happened, for the page.
    what: str
    #: What is said, to the ends of its lines; `<name>` stands for anything within a line.
    says: str
    #: What to do, for the page.
    do: str
    #: Behind storm-py; names in braces are of the cluster of the tests. "" for what takes more than
    #: a command: that has a test of its own.
    command: str = ""
    code: int = 2
    #: Whether the user's own code raised, so that its traceback helps.
    traceback: bool = False

    def is_said(self, text: str) -> bool:
        """Whether a text says this."""
        parts = re.split(r"<[a-z ]+>", self.says)
        pattern = r"[^\n]+?".join(map(re.escape, parts))
        return re.search(f"{pattern}$", text, re.MULTILINE) is not None
