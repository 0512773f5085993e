"""Runs commands and measures: what they print, and, with `Sampler`, what their processes need.

A run that is timed is not sampled, since looking at processes costs time; what processes need comes
from runs of its own. Every command of a benchmark goes through `run`: it must exit with 0 and print
a JSON object, which may stand behind other words on its line.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from benchmarks.processes import Life, Sample
from benchmarks.text import SENTENCES, check_counts

ROOT = Path(__file__).parent.parent
SAMPLE_SECS = 0.05
PSS_EVERY = 10
"""Samples from one look at memory to the next, which costs far more than one at CPU times."""


class RunFailed(Exception):
    """Raised when a command failed, hung, or printed nothing to go by."""


def last_object(text: str) -> dict[str, Any] | None:
    """The JSON object that the text is, or else the one on the last line that ends with one."""
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict):
        return whole
    for line in reversed(text.splitlines()):
        _, brace, rest = line.partition("{")
        if brace:
            try:
                found = json.loads(brace + rest)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
    return None


def figures_of(command: str, returncode: int, output: str, errors: str) -> dict[str, Any]:
    """What a command printed; raises RunFailed if that is no result."""
    found = last_object(output)
    if returncode == 0 and found is not None and found.get("ok", True):
        return found
    why = f"exited with {returncode}" if returncode else "printed no result"
    if found is not None and not found.get("ok", True):
        why = "says that its counts are wrong"
    said = f"{output}\n{errors}".strip()[-2000:]
    raise RunFailed(f"{command} {why}:\n{said}")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables a command runs under: this tree first on the path of imports."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **(more or {})}
    variables.pop("PYTHONHOME", None)
    return variables


def run(
    command: list[str],
    variables: Mapping[str, str] | None = None,
    timeout_secs: float = 300.0,
    sampler: Sampler | None = None,
) -> dict[str, Any]:
    """Run a command to its end, from the top of the repository; the figures that it printed."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(variables),
        start_new_session=True,
    ) as process:
        if sampler is not None:
            sampler.start(process.pid)
        try:
            output, errors = process.communicate(timeout=timeout_secs)
        except subprocess.TimeoutExpired as error:
            raise RunFailed(
                f"{shlex.join(command)} did not end within {timeout_secs:g} s"
            ) from error
        finally:
            if sampler is not None:
                sampler.stop()
            end_group(process)
    return figures_of(shlex.join(command), process.returncode, output, errors)


def end_group(process: subprocess.Popen[str]) -> None:
    """Nothing of a command may disturb the next one."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def plain_loop(sentences: int) -> dict[str, Any]:
    """The same count by one Python loop: what no engine can reach on one core."""
    counts: Counter[str] = Counter()
    began = time.perf_counter()
    for i in range(sentences):
        for word in SENTENCES[i % 10].split():
            counts[word] += 1
    secs = time.perf_counter() - began
    words = check_counts(counts, sentences)
    return {"words": words, "words_s": round(words / secs)}


class Sampler:
    """Looks at a process and all that come from it, until told to stop; then `lives` has them."""

    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        self._stopped = threading.Event()
        self._looks = 0

    def start(self, pid: int) -> None:
        """Begin to look at the process `pid` and its descendants."""
        self._thread = threading.Thread(target=self._run, args=(pid,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no longer."""
        self._stopped.set()
        self._thread.join()

    def _run(self, pid: int) -> None:
        try:
            root = psutil.Process(pid)
        except psutil.NoSuchProcess:
            return
        while not self._stopped.wait(SAMPLE_SECS):
            self.look(root)

    def look(self, root: psutil.Process) -> None:
        """One look at all of them."""
        with_memory = self._looks % PSS_EVERY == PSS_EVERY - 1
        self._looks += 1
        try:
            processes = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return
        for process in processes:
            try:
                self._look_at(process, with_memory)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue  # it ended meanwhile

    def _look_at(self, process: psutil.Process, with_memory: bool) -> None:
        times = process.cpu_times()
        life = self.lives.get(process.pid)
        if life is None:
            life = self.lives[process.pid] = Life(process.pid, process.ppid())
        if with_memory:
            life.command = tuple(process.cmdline()) or life.command
            life.pss_bytes = max(life.pss_bytes, process.memory_full_info().pss)
        life.samples.append(Sample(time.time(), times.user + times.system))
