"""What a death takes with it: worded for the summary of a run.

Memory is gone in any case. Tuples in flight are lost where nobody tracks them; a tracked one fails,
and its spout hears of that and may emit it again. Pure.
"""

from __future__ import annotations

from typing import Final

from .worker_children import STREAM_MANAGER

_REPLAYED: Final = "; tracked ones failed, for their spouts to emit again"


def of_process(role: str, is_spout: bool, acking: bool, fused: bool = False) -> str:
    """What went with a process of a worker; `is_spout` if it ran tasks of a spout.

    `fused` says that it ran tasks of several components.
    """
    if is_spout and fused:
        return f"its memory and {_tuples('in it', acking)}"
    if is_spout:
        return "its memory is lost, what it had pending included"
    before = "" if role == STREAM_MANAGER else "its memory and "
    where = "on their way through it" if role == STREAM_MANAGER else "sent to it"
    return f"{before}{_tuples(where, acking)}"


def of_worker(acking: bool) -> str:
    """What went with a worker and all of its processes."""
    return f"the memory of its tasks and {_tuples('in it', acking)}"


def _tuples(where: str, acking: bool) -> str:
    if acking:
        return f"untracked tuples {where} are lost{_REPLAYED}"
    return f"the tuples {where} are lost"
