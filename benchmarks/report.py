"""What a run of the suite leaves: tables for people, `results.json`, charts for the pages."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks import chart
from benchmarks.bench import Part, Table
from benchmarks.sampling import PARTS

COLUMNS = 140
RESULTS, TABLES = "results.json", "tables.txt"


def rendered(tables: Iterable[Table]) -> str:
    """The tables as text, as wide as they need."""
    console = Console(file=io.StringIO(), width=COLUMNS, highlight=False)
    for table in tables:
        shown = RichTable(
            title=escape(table.title), title_justify="left", caption=escape(table.note) or None
        )
        words = 2 if table.head[:2] in (("", ""), ("", "process")) else 1
        for i, column in enumerate(table.head):
            shown.add_column(escape(column), justify="left" if i < words else "right")
        for row in table.rows:
            shown.add_row(*map(escape, row))
        console.print(shown)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def charts(parts: Mapping[str, Any]) -> dict[str, str]:
    """The charts that the data of these parts can give, by file name."""
    found = {}
    if "throughput" in parts:
        words_s = parts["throughput"]["words_s"]
        found["throughput.svg"] = chart.bars(
            "words per second, on this machine", words_s, "storm-py"
        )
    if "where" in parts:
        bars = {
            f"{role}, {name}": one
            for name, by_role in parts["where"].items()
            for role, one in by_role.items()
        }
        title = "where the time goes: CPU microseconds per word and process"
        found["where.svg"] = chart.stacked(title, "us", bars, PARTS)
    for knob, measured in parts.get("curve", {}).items():
        names = [name.partition(": ") for name in measured if name != "not_run"]
        labels = list(dict.fromkeys(label for label, _, _ in names))
        columns = list(dict.fromkeys(column for _, _, column in names))
        curves = {
            column: [
                measured.get(f"{label}: {column}", {"median": 0})["median"] for label in labels
            ]
            for column in columns
        }
        for kind, chosen in by_kind(curves).items():
            title = f"{kind} against {knob}"
            name = f"{kind.replace(' ', '-')}-{knob.rpartition('batch.')[2].replace('.', '-')}.svg"
            found[name] = chart.lines(title, knob, labels, chosen)
    return found


def by_kind(curves: Mapping[str, list[float]]) -> dict[str, dict[str, list[float]]]:
    """Throughput and latency apart: they share no axis."""
    kinds: dict[str, dict[str, list[float]]] = {}
    for column, curve in curves.items():
        kind = "latency" if " ms " in column else "throughput"
        kinds.setdefault(kind, {})[column] = curve
    return kinds


def write(folder: Path, about: Mapping[str, Any], parts: Mapping[str, Part]) -> None:
    """Leave everything in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {name: part.data for name, part in parts.items()}
    (folder / RESULTS).write_text(json.dumps({**about, "parts": data}, indent=2) + "\n")
    tables = [table for part in parts.values() for table in part.tables]
    (folder / TABLES).write_text(rendered(tables))
    for name, drawing in charts(data).items():
        (folder / name).write_text(drawing)
