"""DevZooKeeper: a real ZooKeeper on this machine, from the jars that PySpark brings.

One server, for development, tests and clusters of one machine. Theory of operation. What it stores
is synced to disk before it answers, and kept in a folder that a lock makes this process's alone, as
ZooKeeper itself does not notice a second server on its files. Its port is reserved before Java
starts, by a socket that is bound and does not listen: a port that is in use is found out at once,
and one that the kernel chose cannot be taken meanwhile. The server is a process group of its own,
out of reach of a Ctrl-C, and dies with the process that started it.

Nobody but the user of this machine is meant to reach it: it binds 127.0.0.1 unless it is told to do
otherwise, and asks nobody who he is. Clients are `storm_py.cluster.zookeeper`; the command is
`storm_py.cli.dev_zookeeper`.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from . import processes
from .errors import ZooKeeperFailed
from .java import Java

__all__ = ["READY_SECS", "DevZooKeeper", "serves"]

#: How long it may take to come up; usually two seconds.
READY_SECS: Final = 60.0
_POLL_SECS: Final = 0.02
#: How the answer to srvr begins, if it serves.
_SERVES: Final = b"Zookeeper version: "
_ANSWER_SECS: Final = 2.0
#: How much of the end of its log is shown of a server that died, in characters.
_LAST_CHARS: Final = 2000

_MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_JAVA_OPTIONS: Final = (
    "-Xmx128m",
    "-XX:+UseSerialGC",  # one small heap needs no threads for it
    "-XX:TieredStopAtLevel=1",  # up in 0.9 s instead of 1.4
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Dlog4j2.level=WARN",
    "-Dzookeeper.jmx.log4j.disable=true",
)
_SETTINGS: Final = {
    # In milliseconds: sessions time out in multiples of it, from 2 of them to 120.
    "tickTime": "500",
    "maxSessionTimeout": "60000",
    "maxClientCnxns": "0",
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "srvr",
    # Old snapshots are removed hourly; nothing else would keep the folder small.
    "autopurge.snapRetainCount": "3",
    "autopurge.purgeInterval": "1",
}


class DevZooKeeper:
    """One server; it can be started again after a stop, at the same port."""

    def __init__(
        self,
        java: Java,
        data: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Data goes to the folder `data`, what it says to the file `log`, by default in there.

        Port 0 is any that is free. `environ` is the environment of the server, by default that of
        this process.
        """
        self._java = java
        self._data = data
        self._host = host
        self._port = port
        self.log = log or data / "zookeeper.log"
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None
        self._locked: ExitStack | None = None
        #: Where in the log this life of the server begins, in bytes.
        self._log_start = 0

    @property
    def host(self) -> str:
        """The address that it binds."""
        return self._host

    @property
    def port(self) -> int:
        """The port that it listens on, 0 before the first start if that is to choose one."""
        return self._port

    @property
    def address(self) -> str:
        """host:port, for clients and messages."""
        return f"{self._host}:{self._port}"

    @property
    def pid(self) -> int | None:
        """The id of the process, None if there is none."""
        return None if self._process is None else self._process.pid

    def start(self, timeout_secs: float = READY_SECS) -> None:
        """Start the server and return once it answers; ZooKeeperFailed says why it does not.

        Call it on the main thread, or one that lives on: the server dies with the thread.
        """
        with ExitStack() as stack:
            reserved = stack.enter_context(self._reserve_port())
            self._lock_data(stack)
            try:
                self._process = self._spawn()
            except OSError as error:
                raise ZooKeeperFailed(f"ZooKeeper cannot be started: {error}") from error
            stack.callback(self._end, 0.0)
            self._wait_ready(timeout_secs)
            reserved.close()
            self._locked = stack.pop_all()

    def stop(self, timeout_secs: float = 10.0) -> None:
        """End the server, by force if it does not end in time; data stays."""
        if self._locked is not None:
            self._end(timeout_secs)
            self._locked.close()
            self._locked = None

    def kill(self) -> None:
        """End the server without a chance to tidy up, as a crash does."""
        self.stop(0.0)

    def died(self) -> str | None:
        """What the server died of, with its last words; None while it runs."""
        process = self._process
        if process is None or process.poll() is None:
            return None
        return (
            f"ZooKeeper at {self.address} {processes.describe_exit(process.returncode)}; "
            f"its log {self.log} ends with:\n{self._last_words()}"
        )

    # ---- starting ------------------------------------------------------------------------------

    def _reserve_port(self) -> socket.socket:
        reserved = socket.socket()
        try:
            # ZooKeeper sets it too: two may then bind what none listens on.
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            reserved.bind((self._host, self._port))
        except OSError as error:
            reserved.close()
            raise ZooKeeperFailed(
                f"ZooKeeper cannot listen on {self.address}: {error.strerror or error}; free "
                "it, or choose another port (--port, storm.zookeeper.port; 0 for any)"
            ) from error
        self._port = reserved.getsockname()[1]
        return reserved

    def _lock_data(self, stack: ExitStack) -> None:
        try:
            self._data.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((self._data / "lock").open("ab"))
        except OSError as error:
            raise ZooKeeperFailed(
                f"ZooKeeper cannot keep its data in {self._data}: {error.strerror or error}; "
                "choose another folder (--data, dev.zookeeper.path)"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ZooKeeperFailed(
                f"another ZooKeeper keeps its data in {self._data}: stop it, or choose another "
                "folder (--data, dev.zookeeper.path)"
            ) from None

    def _spawn(self) -> subprocess.Popen[bytes]:
        settings = {
            **_SETTINGS,
            "dataDir": str(self._data.absolute()),
            "clientPort": str(self._port),
            "clientPortAddress": self._host,
        }
        lines = [f"{name}={_escaped(value)}\n" for name, value in settings.items()]
        config = self._data / "zoo.cfg"
        config.write_text("".join(lines), "ascii")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            self._log_start = log.tell()
            return subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", processes.__file__, str(os.getpid())),
                    *(str(self._java.path), *_JAVA_OPTIONS, "-cp", _class_path(), _MAIN),
                    str(config.absolute()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Java reads names of files by it.
                env={
                    **(os.environ if self._environ is None else self._environ),
                    "LC_ALL": "C.UTF-8",
                },
                process_group=0,
            )

    def _wait_ready(self, timeout_secs: float) -> None:
        deadline = time.monotonic() + timeout_secs
        while not serves(self._host, self._port):
            reason = self.died()
            if reason is not None:
                raise ZooKeeperFailed(reason)
            if time.monotonic() > deadline:
                raise ZooKeeperFailed(
                    f"ZooKeeper does not answer at {self.address} within {timeout_secs:g} s; its "
                    f"log {self.log} ends with:\n{self._last_words()}"
                )
            time.sleep(_POLL_SECS)

    def _last_words(self) -> str:
        said = self.log.read_bytes()[self._log_start :].decode(errors="replace")
        return said[-_LAST_CHARS:].strip() or "(nothing)"

    # ---- ending --------------------------------------------------------------------------------

    def _end(self, timeout_secs: float) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None and timeout_secs > 0:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout_secs)
            except subprocess.TimeoutExpired:
                pass
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._process = None


def serves(host: str, port: int) -> bool:
    """Whether a ZooKeeper that was started here, or one that answers to srvr, serves there now."""
    try:
        with socket.create_connection((host, port), _ANSWER_SECS) as connection:
            # ruok is answered as soon as it listens, before it serves
            connection.sendall(b"srvr")
            return connection.recv(len(_SERVES)) == _SERVES
    except OSError:
        return False


def _class_path() -> str:
    """The jars of PySpark, found without importing it, which takes long."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ZooKeeperFailed("ZooKeeper comes with the package pyspark: pip install pyspark")
    jars = Path(spec.origin).parent / "jars"
    if not any(jars.glob("zookeeper-[0-9]*.jar")):
        raise ZooKeeperFailed(
            f"there is no ZooKeeper among the jars in {jars}: install pyspark with all of its parts"
        )
    return str(jars / "*")


def _escaped(value: str) -> str:
    """A value as files of Java properties hold it."""
    units = value.encode("utf-16-be")
    codes = [units[i] << 8 | units[i + 1] for i in range(0, len(units), 2)]
    return "".join(
        chr(code) if 0x20 < code < 0x7F and code != 0x5C else f"\\u{code:04x}" for code in codes
    )
