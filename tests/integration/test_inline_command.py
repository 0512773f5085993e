"""`storm-py local --inline` as a process of its own: a debugger, a failure, Ctrl-C.

What needs no process is in tests/unit/test_inline.py.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT_SECS = 60

FLOW = """\
from storm_py import *

class Numbers(BaseRichSpout):
    def declare_output_fields(self, declarer):
        declarer.declare("number")

    def open(self, conf, context, collector):
        self.collector = collector
        self.number = 0

    def next_tuple(self):
        self.number += 1
        if self.number == LIMIT:
            self.collector.end_of_input()
        else:
            self.collector.emit([self.number])

class Look(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.count = 0

    def execute(self, tup):
        self.count += 1
        if tup["number"] == 1:
            FIRST

    def end_of_input(self):
        print(self.count, "numbers")

def topology(args):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("look", Look()).shuffle_grouping("numbers")
    return builder
"""


def command(folder: Path, limit: int | None, first: str, *args: str) -> list[str]:
    """The command line that runs FLOW, which does `first` with its first tuple."""
    text = FLOW.replace("LIMIT", str(limit)).replace("FIRST", first)
    (folder / "flow.py").write_text(text, encoding="utf-8")
    return [sys.executable, "-m", "storm_py", "local", str(folder / "flow.py"), "--inline", *args]


def finished(args: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        args, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_SECS, check=False
    )


def test_breakpoint_in_a_bolt(tmp_path: Path) -> None:
    process = finished(
        command(tmp_path, 4, "breakpoint()"), stdin="p tup.values\np self.count * 111\nwhere\nc\n"
    )
    assert process.returncode == 0, process.stderr
    assert "(Pdb) [1]\n" in process.stdout
    assert "(Pdb) 111\n" in process.stdout
    assert "flow.py" in process.stdout
    assert process.stdout.endswith("3 numbers\n")
    assert "done after" in process.stderr


def test_leaving_the_debugger(tmp_path: Path) -> None:
    process = finished(command(tmp_path, 4, "breakpoint()"), stdin="q\n")
    assert process.returncode == 130
    assert "numbers\n" not in process.stdout
    assert "note: stopped from the debugger" in process.stderr
    assert "ERROR" not in process.stderr


def test_an_exception_in_a_bolt(tmp_path: Path) -> None:
    process = finished(command(tmp_path, 4, "raise ValueError('no ones')"))
    assert process.returncode == 1
    assert process.stdout == ""
    lines = process.stderr.splitlines()
    assert lines[:4] == [
        "ERROR look (task 1), execute: ValueError: no ones",
        "    Traceback (most recent call last):",
        f'      File "{tmp_path}/flow.py", line 25, in execute',
        "        raise ValueError('no ones')",
    ]
    assert "failed after" in process.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains(tmp_path: Path, number: signal.Signals) -> None:
    args = command(tmp_path, None, "print('running', flush=True)")
    with subprocess.Popen(
        args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT_SECS)
    assert process.returncode == 130
    assert out.endswith(" numbers\n")
    assert "storm-py: interrupted: draining (interrupt again to stop at once)\n" in err
    assert "stopped and drained after" in err
    assert "lost" not in err
    assert "Traceback" not in err


def test_a_second_signal_stops_user_code_that_hangs(tmp_path: Path) -> None:
    hang = "import threading; print('running', flush=True); threading.Event().wait()"
    with subprocess.Popen(
        command(tmp_path, None, hang), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        # Two kinds: two of one kind may become one while the first is not taken yet.
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=TIMEOUT_SECS)
    assert (process.returncode, out) == (130, "")
    assert "note: stopped at once in execute of look (task 1), row 0 of a frame from numbers" in err
    assert "Traceback" not in err


def test_help_imports_nothing_slow() -> None:
    slow = [
        *("cloudpickle", "kazoo", "msgpack", "rich", "storm_py.engine", "storm_py.loader"),
        *("storm_py.rpc", "thriftpy2", "yaml", "zmq"),
    ]
    code = (
        "import sys\n"
        "from storm_py.cli import main\n"
        "main(['local', '--help'], standalone_mode=False)\n"
        f"print([name for name in {slow} if name in sys.modules])\n"
    )
    process = finished([sys.executable, "-c", code])
    assert (process.stdout.splitlines()[-1], process.stderr) == ("[]", "")


def test_a_pipe_that_is_closed_early(tmp_path: Path) -> None:
    """As `storm-py --help | head -1` does it: no traceback of ours."""
    args = [sys.executable, "-m", "storm_py", "local", "--help"]
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(TIMEOUT_SECS)
