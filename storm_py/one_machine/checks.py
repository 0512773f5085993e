"""What has to be so before a cluster of one machine starts: its folder its own, its ports free.

Whatever is not is one ClusterFailed that names the thing, who has it, and what to set. Nothing has
been started then, and nothing removed. The data of an earlier cluster, and what still runs of it,
is the business of `storm_py.one_machine.leftovers`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from storm_py.config import Config
from storm_py.errors import ClusterFailed
from storm_py.files import make_folder

from .plan import Port

__all__ = ["check_ports", "locked", "locked_by_others"]


@contextmanager
def locked(local_dir: Path) -> Iterator[None]:
    """Have the folder for this cluster alone; the kernel gives it back whatever happens."""
    path = local_dir / "cluster.lock"
    advice = f"set {Config.STORM_LOCAL_DIR} to another folder"
    try:
        make_folder(local_dir)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ClusterFailed(
            f"a cluster cannot keep its data in {local_dir}: {error.strerror}; {advice}"
        ) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterFailed(
                f"another cluster runs in {local_dir}{_process(_read(fd))}: stop it, or {advice}"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        os.close(fd)


def locked_by_others(path: Path) -> bool:
    """Whether another process holds the lock that is this file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def check_ports(ports: Iterable[Port]) -> None:
    """Raise ClusterFailed that names all ports that cannot be listened on."""
    taken = [reason for port in ports if (reason := _reason(port)) is not None]
    if taken:
        raise ClusterFailed("; ".join(taken))


def _reason(port: Port) -> str | None:
    place = f"{port.owner} cannot listen on {port.host}:{port.number}"
    try:
        family, _, _, _, address = socket.getaddrinfo(
            port.host, port.number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As the daemon itself does: what an earlier one has left behind is in nobody's way.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except socket.gaierror as error:
        return f"{place}: {error.strerror}; set {Config.STORM_LOCAL_HOSTNAME} to a host of here"
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return f"{place}: {error.strerror}; choose another port: -c {port.key}=..."
        return (
            f"{place}: {_holder(port.number)} listens there; stop it, or choose another port: "
            f"-c {port.key}=..."
        )
    return None


def _holder(number: int) -> str:
    """Who listens on a port, as far as this user may know."""
    import psutil  # takes its time, and nobody needs it as a rule

    for connection in psutil.net_connections("tcp"):
        listens = connection.status == psutil.CONN_LISTEN
        if listens and connection.laddr[1:] == (number,) and connection.pid is not None:
            return f"process {connection.pid} ({_command(connection.pid)})"
    return "a process of another user"


def _process(text: str) -> str:
    return f", process {text}" if text.isdecimal() else ""


def _read(fd: int) -> str:
    return os.pread(fd, 20, 0).decode("ascii", "replace").strip()


def _command(pid: int) -> str:
    import psutil

    try:
        return " ".join(psutil.Process(pid).cmdline())[:100] or psutil.Process(pid).name()
    except psutil.Error:
        return "which has ended by now"
