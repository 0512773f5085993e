"""InstanceSpec: what a process that was forked is told about the instance that it becomes.

A module of its own, so that the worker, which starts instances, need not import what they consist
of: that takes longer than anything else of its start.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """Which instance a forked process becomes."""

    folder: str
    worker: int
    worker_incarnation: int
    instance: int
    incarnation: int
    plan_version: int
    #: Of the worker's slot.
    port: int
    #: The file of its log, which it rotates; None for its standard error.
    log: str | None = None
