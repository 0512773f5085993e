"""Charts as SVG, written by hand: bars of medians with their range, and lines over a knob. Pure.

Drawn on white, with text of its own size, so that a page may show them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH = 760
BAR = 22
ROW = 30
LEFT = 250
RIGHT = 120
TOP = 48
AXIS = 120
"""Where the vertical axis of lines stands."""
LEGEND = 200
"""From one curve's name to the next."""
FONT = 'font-family="sans-serif" font-size="13" fill="#222"'
OURS, OTHERS, RANGE = "#2563a8", "#9aa5b1", "#222"
STACK_LEFT = 190
"""Where stacked bars begin."""
STACK = (
    "#3b7d3b",
    "#2563a8",
    "#6fa3d8",
    "#c2571a",
    "#7a4fa0",
    "#b79ad0",
    "#d9a441",
    "#5d6b78",
    "#9aa5b1",
    "#d5dadf",
)
COLOURS = ("#2563a8", "#c2571a", "#3b7d3b", "#7a4fa0")


def bars(title: str, found: Mapping[str, Mapping[str, float]], highlight: str) -> str:
    """Horizontal bars of the medians, longest on top, with a line from minimum to maximum.

    Names that begin with `highlight` have a colour of their own.
    """
    rows = sorted(found.items(), key=lambda item: -item[1]["median"])
    height = TOP + ROW * len(rows) + 16
    most = max((one["max"] for one in found.values()), default=1.0) or 1.0
    scale = (WIDTH - LEFT - RIGHT) / most
    parts = []
    for i, (name, one) in enumerate(rows):
        y = TOP + i * ROW
        middle = y + BAR / 2
        colour = OURS if name.startswith(highlight) else OTHERS
        low, high = LEFT + one["min"] * scale, LEFT + one["max"] * scale
        parts += [
            text(LEFT - 8, middle + 4, name, "end"),
            f'<rect x="{LEFT}" y="{y}" width="{one["median"] * scale:.1f}" height="{BAR}" '
            f'fill="{colour}"/>',
            line(low, middle, high, middle, RANGE),
            text(high + 8, middle + 4, f"{one['median']:,.0f}"),
        ]
    return document(title, height, parts)


def stacked(
    title: str, unit: str, found: Mapping[str, Mapping[str, float]], parts: Sequence[str]
) -> str:
    """One horizontal bar for each name, made of its parts; what they add up to stands behind it."""
    shown = [part for part in parts if any(one.get(part) for one in found.values())]
    key = TOP + ROW * len(found) + 16
    per_row = 3
    height = key + 22 * -(-len(shown) // per_row) + 12
    most = max((sum(one.values()) for one in found.values()), default=1.0) or 1.0
    scale = (WIDTH - STACK_LEFT - RIGHT) / most
    drawn = []
    for i, (name, one) in enumerate(found.items()):
        y, x = TOP + i * ROW, float(STACK_LEFT)
        drawn.append(text(x - 8, y + BAR / 2 + 4, name, "end"))
        for part in shown:
            width = one.get(part, 0.0) * scale
            colour = STACK[shown.index(part) % len(STACK)]
            drawn.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'
            )
            x += width
        drawn.append(text(x + 8, y + BAR / 2 + 4, f"{sum(one.values()):.2f} {unit}"))
    for i, part in enumerate(shown):
        x, y = 16 + i % per_row * (WIDTH - 32) / per_row, key + 22 * (i // per_row)
        drawn += [
            f'<rect x="{x:.1f}" y="{y}" width="12" height="12" fill="{STACK[i % len(STACK)]}"/>',
            text(x + 18, y + 11, part),
        ]
    return document(title, height, drawn)


def lines(
    title: str, across: str, labels: Sequence[str], curves: Mapping[str, Sequence[float]]
) -> str:
    """One line per curve over the labels, which are evenly apart; the height is logarithmic."""
    height = 380
    low_y, high_y = height - 60, TOP + 24
    figures = [each for curve in curves.values() for each in curve if each > 0]
    least, most = decades(figures)
    step = (WIDTH - AXIS - RIGHT) / max(1, len(labels) - 1)

    def x_of(i: int) -> float:
        return AXIS + i * step

    def y_of(figure: float) -> float:
        return low_y - (math.log10(figure) - least) / (most - least) * (low_y - high_y)

    parts = []
    for decade in range(least, most + 1):
        y = y_of(10.0**decade)
        parts += [
            line(AXIS, y, WIDTH - RIGHT, y, "#ddd"),
            text(AXIS - 8, y + 4, si(10.0**decade), "end"),
        ]
    parts += [text(x_of(i), low_y + 20, label, "middle") for i, label in enumerate(labels)]
    parts.append(text((WIDTH - RIGHT + AXIS) / 2, height - 14, across, "middle"))
    for number, (name, curve) in enumerate(curves.items()):
        colour, x = COLOURS[number % len(COLOURS)], AXIS + number * LEGEND
        points = " ".join(
            f"{x_of(i):.1f},{y_of(figure):.1f}" for i, figure in enumerate(curve) if figure > 0
        )
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>',
            f'<rect x="{x}" y="{TOP - 8}" width="12" height="12" fill="{colour}"/>',
            text(x + 18, TOP + 3, name),
        ]
    return document(title, height, parts)


def decades(figures: Sequence[float]) -> tuple[int, int]:
    """The powers of ten that the figures lie between, at least one apart."""
    if not figures:
        return 0, 1
    least = math.floor(math.log10(min(figures)))
    return least, max(least + 1, math.ceil(math.log10(max(figures))))


def si(figure: float) -> str:
    """A power of ten in few letters."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if figure >= size:
            return f"{figure / size:g}{letter}"
    return f"{figure:g}"


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {FONT}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    """A thin line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def document(title: str, height: float, parts: Sequence[str]) -> str:
    """The whole picture."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            f'<text x="16" y="26" font-family="sans-serif" font-size="16" fill="#222">'
            f"{escape(title)}</text>",
            *parts,
            "</svg>",
            "",
        ]
    )
