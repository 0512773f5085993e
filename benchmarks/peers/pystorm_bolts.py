"""Storm's multilang bolts as pystorm runs them, fed over a pipe: what a JVM cannot make faster.

A bolt process gets messages that were encoded before, and its answers are read without being
parsed, so all that is measured is the bolt itself; its CPU seconds per word are what `cpu_us` says.
Afterwards every answer is parsed and counted. No Storm runs: its JVM would come on top.

With `--bolt` this program is the bolt.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pystorm import Bolt

from benchmarks.text import SENTENCES, check_counts

TICK_SECS = 1 / os.sysconf("SC_CLK_TCK")
END = b"\nend\n"
CHUNK_BYTES = 1 << 16


class Split(Bolt):  # type: ignore[misc]  # the peer ships no types
    """One tuple per word; anchored and acked by pystorm, as is its default."""

    def process(self, tup: Any) -> None:
        for word in tup.values[0].split():
            self.emit([word, 1])


class Count(Bolt):  # type: ignore[misc]
    """Counts, and emits each new count."""

    def initialize(self, conf: Any, context: Any) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> None:
        word, count = tup.values
        count += self.counts.get(word, 0)
        self.counts[word] = count
        self.emit([word, count])


BOLTS: dict[str, Any] = {"split": Split, "count": Count}


def message(content: object) -> bytes:
    """A message of the multilang protocol."""
    return json.dumps(content).encode() + END


def tuples(values: Iterable[list[object]]) -> list[bytes]:
    """Messages of tuples that come from another component."""
    return [
        message({"id": str(i), "comp": "source", "stream": "default", "task": 1, "tuple": row})
        for i, row in enumerate(values)
    ]


def cpu_secs(pid: int) -> float:
    """User and system time of a process until now."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_SECS


class Fed:
    """A bolt process, from the handshake until it has answered everything."""

    def __init__(self, bolt: str, messages: list[bytes], folder: str) -> None:
        command = [sys.executable, "-m", "benchmarks.peers.pystorm_bolts", "--bolt", bolt]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
            assert process.stdin
            assert process.stdout
            self.pid = process.pid
            fd = process.stdout.fileno()
            context = {"taskid": 2, "componentid": bolt, "task->component": {"2": bolt}}
            process.stdin.write(message({"conf": {}, "pidDir": folder, "context": context}))
            process.stdin.flush()
            output = bytearray()
            while END not in output:  # the pid: it has started
                output += self._read(fd)
            self.began, cpu = time.time(), cpu_secs(process.pid)
            feeder = threading.Thread(target=self._feed, args=(process.stdin, messages))
            feeder.start()
            acks = 0
            while acks < len(messages):
                chunk = self._read(fd)
                # A word that the border between two chunks cuts through counts in the second.
                acks += (bytes(output[-4:]) + chunk).count(b'"ack"')
                output += chunk
            self.ended = time.time()
            self.cpu = cpu_secs(process.pid) - cpu
            feeder.join()
            process.kill()
        self.output = bytes(output)

    @staticmethod
    def _feed(stdin: Any, messages: list[bytes]) -> None:
        for i in range(0, len(messages), 100):
            stdin.write(b"".join(messages[i : i + 100]))
        stdin.flush()

    def _read(self, fd: int) -> bytes:
        chunk = os.read(fd, CHUNK_BYTES)
        if not chunk:
            sys.exit("a pystorm bolt ended by itself")
        return chunk

    def emitted(self) -> list[list[Any]]:
        """The values of every tuple that the bolt emitted."""
        found = map(json.loads, self.output.decode().split(END.decode())[:-1])
        return [answer["tuple"] for answer in found if answer.get("command") == "emit"]


def run(bolt: str, sentences: int, judge: Callable[[list[list[Any]]], dict[str, int]]) -> Any:
    """Feed one kind of bolt; its figures, once its words are counted."""
    texts = [SENTENCES[i % 10] for i in range(sentences)]
    values: list[list[object]] = [[text] for text in texts]
    if bolt == "count":
        values = [[word, 1] for text in texts for word in text.split()]
    with tempfile.TemporaryDirectory() as folder:
        fed = Fed(bolt, tuples(values), folder)
    words = check_counts(judge(fed.emitted()), sentences)
    return {
        "pid": fed.pid,
        "cpu_us": round(fed.cpu / words * 1e6, 2),
        "words_s": round(words / (fed.ended - fed.began)),
        "began": fed.began,
        "ended": fed.ended,
    }


def main() -> None:
    """Run both bolts, one after the other, and print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--bolt", choices=list(BOLTS))
    options = parser.parse_args()
    if options.bolt:
        BOLTS[options.bolt]().run()
        return
    split = run("split", options.sentences, lambda rows: Counter(word for word, _ in rows))
    count = run("count", options.sentences, lambda rows: dict(map(tuple, rows)))
    bound = options.cores / (split["cpu_us"] + count["cpu_us"]) * 1e6
    figures = {
        "words_s": round(bound),
        "cores": options.cores,
        "split": split,
        "count": count,
        "pids": {"split": [split["pid"]], "count": [count["pid"]]},
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
