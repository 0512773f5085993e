"""Tables as text: aligned columns that nothing is cut off, for people, pipes and awk alike."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["table"]

_GAP = "  "


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lines of columns under their names and dashes; numbers stand to the right."""
    texts = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *texts, strict=True)]
    right = [all(isinstance(row[i], int | None) for row in rows) for i in range(len(head))]
    lines = [head, ["-" * width for width in widths], *texts]
    return "\n".join(
        _GAP.join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )
