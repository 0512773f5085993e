"""All that operators get wrong, and `docs/mistakes.md`, which is these rows.

`python -m tests.operators_page > docs/mistakes.md` writes it again; the rows are made true in
`tests.integration.test_operator_mistakes`, on a cluster of real processes.
"""

from __future__ import annotations

import sys
from typing import Final

from tests.operators_rest import ASKING, DAEMONS
from tests.operators_submit import SUBMITTING

__all__ = ["MISTAKES", "markdown"]

MISTAKES: Final = (*SUBMITTING, *ASKING, *DAEMONS)

_HEAD: Final = """\
# Mistakes

What can go wrong with a [cluster](cluster.md), what is said then, and what to do. In angle
brackets is what differs. A command ends with exit code 1 if the cluster cannot be reached or a
daemon could not be started, 2 if what was asked for cannot be, 3 if the cluster refuses it. A
submit that is refused leaves nothing behind, and what a killed one has uploaded is thrown away.

What goes wrong in user code while a topology runs is shown by `storm-py get-errors NAME` and
`storm-py logs NAME`.
"""
_SECTIONS: Final = (
    ("Submitting", SUBMITTING),
    ("Configuration, and topologies that run", ASKING),
    ("Daemons", DAEMONS),
)


def markdown() -> str:
    """The page."""
    lines = [_HEAD]
    for title, mistakes in _SECTIONS:
        lines += [
            f"## {title}",
            "",
            "| what happened | what it says | what to do |",
            "|---|---|---|",
        ]
        lines += [f"| {each.what} | {_code(each.says)} | {each.do} |" for each in mistakes]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _code(text: str) -> str:
    """Lines of a cell; text in backticks may be in them."""
    return "<br>".join(f"`` {line.strip()} ``" for line in text.splitlines()) or "nothing"


if __name__ == "__main__":
    sys.stdout.write(markdown())
