"""An active topology whose spout has nothing: the share of one core that each process takes."""

from __future__ import annotations

import time

from benchmarks.bench import Options, Part, Table, say
from benchmarks.commands import storm_py
from benchmarks.measuring import Sampler
from benchmarks.measuring import run as run_command
from benchmarks.parts.throughput import MIB
from benchmarks.processes import needs

SETTLE_SECS = 5
"""From the start until it is idle, generously."""


def run(options: Options) -> Part:
    """A minute of silence."""
    secs = options.few(60, 10)
    say(f"idle for {secs} s")
    sampler = Sampler()
    command = storm_py(
        options.word_count(acks=True), "--ttl", str(secs + SETTLE_SECS), "--json", "-", idle=True
    )
    # The first process is there before the first sample; the run takes its end from this.
    started = time.time()
    run_command(command, timeout_secs=secs + 60, sampler=sampler)
    began = started + SETTLE_SECS
    found = needs(sampler.lives.values(), {}, began, began + secs)
    share = {role: need.cpu_secs / secs for role, need in found.items()}
    processes = sum(need.processes for need in found.values())
    total = sum(share.values())
    data = {
        "secs": secs,
        "processes": processes,
        "core_share": {role: round(one, 5) for role, one in share.items()},
        "core_share_total": round(total, 5),
        "pss_mib": {role: round(need.pss_bytes / MIB, 1) for role, need in found.items()},
    }
    rows = [
        [role, str(need.processes), f"{share[role]:.2%}", f"{need.pss_bytes / MIB:.1f}"]
        for role, need in found.items()
    ]
    pss = sum(need.pss_bytes for need in found.values()) / MIB
    rows.append(["all", str(processes), f"{total:.2%}", f"{pss:.1f}"])
    title = f"idle: an active topology without data, over {secs} s"
    return Part(data, [Table(title, ("process", "number", "of one core", "PSS MiB"), rows)])
