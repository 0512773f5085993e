"""Tails: what instances print, read from the files that their standard output goes to.

Read by whoever runs the workers (`storm_py.local`); `storm_py.runtime.folder` names the files.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from storm_py.core.plan import PhysicalPlan

from .folder import instance_logs
from .slot import local_logs


class OutputTails:
    """Hands each line that an instance has printed to `show`, with the instance's label."""

    def __init__(self, logs: Path, plan: PhysicalPlan, show: Callable[[str, str], object]) -> None:
        self._show = show
        self._paths = {
            plan.label(id_): instance_logs(
                local_logs(logs, members[0].worker), plan, id_, rotated=False
            ).out
            for id_, members in plan.instances.items()
        }
        # A folder given with --log-dir may hold the output of an earlier run.
        self._offsets = {
            source: path.stat().st_size if path.exists() else 0
            for source, path in self._paths.items()
        }
        self._partial: dict[str, bytes] = {}
        self._files: dict[str, io.BufferedReader] = {}

    def read(self, last: bool = False) -> bool:
        """Hand on every whole line written since the last call; with `last` the rest as well.

        Returns whether anything was written since.
        """
        found = False
        for source, path in self._paths.items():
            file = self._files.get(source)
            if file is None:
                if not path.exists():
                    continue
                file = self._files[source] = path.open("rb")
                file.seek(self._offsets[source])
            data = file.read()
            if data:
                found = True
                *lines, rest = (self._partial.get(source, b"") + data).split(b"\n")
                self._partial[source] = rest
                for line in lines:
                    self._show(source, line.decode("utf-8", "replace"))
            if last and self._partial.get(source):
                self._show(source, self._partial.pop(source).decode("utf-8", "replace"))
        return found

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
