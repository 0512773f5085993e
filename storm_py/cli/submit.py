"""`storm-py submit`: check a topology, pack its project, and send both to the cluster.

Everything that can be checked is checked before anything is sent. The archive is a temporary file
without a name: whatever ends the command, nothing of it is left. What nimbus has of an upload that
does not become a topology expires there.

What is sent is made in `storm_py.submit`; `storm_py.client` finds whom to send it to.
"""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import click

from storm_py import __version__
from storm_py.config import Config, configuration
from storm_py.errors import RpcError, StormPyError

from .arguments import ARGS, TopologyCommand, command_line, workers_option
from .calls import connection, note, refusals
from .exits import ClusterRefused, Interrupted, Refused
from .settings import Settings, config_option, settings_option, storm_yaml

if TYPE_CHECKING:  # slow to import, and `storm-py --help` needs none of it
    from storm_py.archive import Packed
    from storm_py.client import NimbusClient
    from storm_py.loader import LoadedTopology
    from storm_py.rpc.definitions import StormTopology as ThriftTopology
    from storm_py.rpc.definitions import SubmitOptions
    from storm_py.rpc.interface import Nimbus
    from storm_py.submit.prepared import Prepared

__all__ = ["submit"]

#: As Storm's clients send it; a frame must hold it with some room to spare.
_CHUNK_BYTES: Final = 300 * 1024
#: Longer than any location of an upload.
_ANY_LOCATION: Final = "x" * 4096


@click.command(cls=TopologyCommand)
@click.argument("topology")
@click.argument("name")
@config_option()
@settings_option()
@workers_option()
@click.option("--inactive", is_flag=True, help="Do not emit before `storm-py activate NAME`.")
@click.option(
    "--include",
    multiple=True,
    metavar="PATH",
    help="Pack this too, though it would be left out, or is elsewhere. May be repeated.",
)
@click.pass_context
def submit(
    ctx: click.Context,
    topology: str,
    name: str,
    config: str | None,
    settings: Settings,
    workers: int | None,
    inactive: bool,
    include: tuple[str, ...],
) -> None:
    """Run TOPOLOGY on the cluster, under NAME.

    TOPOLOGY is what `storm-py local` takes, and ARGS go to it. Its project comes along: the folder
    around it with a pyproject.toml, setup.cfg or .git, without what git ignores. The id of what
    runs then is printed.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, or a topology that cannot run,
    3 refused by the cluster, 130 interrupted.
    """
    from storm_py.nimbus.names import validate_topology_name

    validate_topology_name(name)
    from_command_line = command_line(settings, workers)
    from_file = storm_yaml(config)
    cluster = configuration(None, from_command_line, from_file)
    with _ended_in_order(), closing(connection(cluster)) as client:
        with refusals(client):
            _check_version(client.nimbus)
            _check_name(client.nimbus, name)
        loaded = _loaded(topology, ctx.meta[ARGS])
        conf = configuration(loaded.conf, from_command_line, from_file)
        conf[Config.TOPOLOGY_NAME] = name
        prepared = _prepared(loaded, conf, include)
        request = _request(client, name, prepared, conf, inactive)
        with _temporary_file() as file:
            packed = prepared.pack(file)
            note(f"packed {_packed_words(prepared, packed)}")
            file.seek(0)
            with refusals(client):
                location = _upload(client.nimbus, file, packed.size_bytes, cluster)
                request.submit(client.nimbus, location)
        note(f"{name} is submitted{' and inactive' if inactive else ''}")
        _print_id(client.nimbus, name)


# ---- before anything is sent -------------------------------------------------------------------


def _check_version(nimbus: Nimbus) -> None:
    from storm_py.rpc.connection import place

    leader = nimbus.getLeader()
    if leader.version != __version__:
        raise ClusterRefused(
            f"nimbus at {place(leader.host, leader.port)} runs storm-py {leader.version}, and this "
            f"is {__version__}; use the same version here, there and on the nodes"
        )


def _check_name(nimbus: Nimbus, name: str) -> None:
    if nimbus.isTopologyNameAllowed(name):
        return
    same = [summary for summary in nimbus.getTopologySummaries() if summary.name == name]
    if not same:
        raise ClusterRefused(f"nimbus does not allow the name {name!r}; choose another one")
    if same[0].status == "KILLED":
        raise ClusterRefused(
            f"the name {name!r} is taken by {same[0].id}, which is being killed: wait until "
            "`storm-py list` shows it no more, or choose another name"
        )
    raise ClusterRefused(
        f"the name {name!r} is taken by {same[0].id}, which is {same[0].status}; end that with "
        f"`storm-py kill {name}`, or choose another name"
    )


def _loaded(topology: str, args: list[str]) -> LoadedTopology:
    from storm_py.loader import load

    return load(topology, args)


def _prepared(
    loaded: LoadedTopology, conf: Mapping[str, Any], include: tuple[str, ...]
) -> Prepared:
    from storm_py.api.registered import check_registered
    from storm_py.api.spec import apply_limits
    from storm_py.submit.prepared import prepare

    limited = apply_limits(loaded.topology, conf)
    check_registered(conf)
    return prepare(loaded, limited, conf, include, __version__)


@dataclass(frozen=True, slots=True)
class _Request:
    """All that nimbus is told of a topology, but for where its archive is."""

    name: str
    conf: str
    topology: ThriftTopology
    options: SubmitOptions

    def arguments(self, location: str) -> tuple[str, str, str, ThriftTopology, SubmitOptions]:
        """The arguments of the call."""
        return self.name, location, self.conf, self.topology, self.options

    def submit(self, nimbus: Nimbus, location: str) -> None:
        """Make the call."""
        try:
            nimbus.submitTopologyWithOpts(*self.arguments(location))
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted before nimbus had answered: `storm-py list` shows whether {self.name}"
                " runs"
            ) from None


def _request(
    client: NimbusClient, name: str, prepared: Prepared, conf: Mapping[str, Any], inactive: bool
) -> _Request:
    """What will be sent; Refused if it cannot be, as it is too large."""
    from storm_py.bundle import load_code
    from storm_py.rpc.definitions import SubmitOptions, TopologyInitialStatus
    from storm_py.thrift_topology import to_thrift

    status = TopologyInitialStatus.INACTIVE if inactive else TopologyInitialStatus.ACTIVE
    topology = to_thrift(load_code(prepared.code, name))
    options = SubmitOptions(initial_status=status)
    request = _Request(name, json.dumps(conf), topology, options)
    try:
        client.check("submitTopologyWithOpts", *request.arguments(_ANY_LOCATION))
    except RpcError as error:
        raise Refused(f"{error}; large data belongs into a file, not into a component") from error
    return request


@contextmanager
def _temporary_file() -> Iterator[BinaryIO]:
    """A file without a name."""
    try:
        file = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed below
    except OSError as error:
        raise Refused(
            f"no temporary file can be made for the archive: {error.strerror}; TMPDIR names the "
            "folder for them"
        ) from error
    try:
        yield file
    finally:
        with suppress(OSError):  # what a full disk did not take is no matter any more
            file.close()


def _packed_words(prepared: Prepared, packed: Packed) -> str:
    from storm_py.archive import size_words

    files = "1 file" if packed.files == 1 else f"{packed.files} files"
    of = "" if prepared.project.root is None else f" of {prepared.project.root}"
    return f"{files}{of}: {size_words(packed.size_bytes)}"


# ---- sending -----------------------------------------------------------------------------------


def _upload(nimbus: Nimbus, file: BinaryIO, size: int, conf: Mapping[str, Any]) -> str:
    """Send the archive; where it is, for nimbus."""
    chunk_bytes = min(_CHUNK_BYTES, conf[Config.NIMBUS_THRIFT_MAX_BUFFER_SIZE] // 2)
    location = nimbus.beginFileUpload()
    with _progress(size) as advance:
        while chunk := file.read(chunk_bytes):
            nimbus.uploadChunk(location, chunk)
            advance(len(chunk))
    nimbus.finishFileUpload(location)
    return location


@contextmanager
def _progress(size: int) -> Iterator[Callable[[int], object]]:
    """Show how much has been sent, where something may move; call what is given with each part."""
    from .display import StderrConsole, stderr_is_terminal

    if not stderr_is_terminal():
        yield lambda part: None
        return

    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("sending"), BarColumn(), DownloadColumn(True), TransferSpeedColumn())
    with Progress(*columns, console=StderrConsole(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=size)
        yield lambda part: progress.advance(task, part)


def _print_id(nimbus: Nimbus, name: str) -> None:
    try:
        click.echo(nimbus.getTopologySummaryByName(name).id)
    except StormPyError as error:  # it was submitted all the same
        note(f"its id is not known: {error}")


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let what ends the command end it as Ctrl-C does: with nothing left behind."""
    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted: nothing is submitted") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
