"""How user code of these tests answers: one line of JSON on standard output for each report."""

from __future__ import annotations

import json
import os
import sys

from storm_py import TopologyContext


def report(name: str, **values: object) -> None:
    """Print a report in one write, so that reports of several tasks cannot mix."""
    sys.stdout.write(json.dumps({"report": name, **values}) + "\n")
    sys.stdout.flush()


def whereabouts(context: TopologyContext) -> dict[str, object]:
    """Where a task runs, and the seed of its process's hashes as far as it can be seen."""
    return {
        "task": context.this_task_id,
        "component": context.this_component_id,
        "port": context.this_worker_port,
        "pid": os.getpid(),
        "hash": hash("x"),
    }
