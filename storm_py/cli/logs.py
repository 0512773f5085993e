"""`storm-py logs`: what the workers of a topology that are on this machine have logged.

Nimbus says which topology has a name, and which of its workers are elsewhere. Without nimbus the
folders of this machine have to do, and so have they for a topology that runs no more, whose logs
stay. Files are found and read in `storm_py.cli.log_files`.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from storm_py.config import Config, configuration, local_dir
from storm_py.errors import NotAliveException, StormPyError, did_you_mean

from .arguments import name_argument, whole_number
from .calls import note
from .exits import INTERRUPTED, Failed
from .log_files import Follower, LogFolder, components, last_lines, log_files, log_folders
from .settings import Settings, config_option, home, parse_settings, storm_yaml

__all__ = ["logs"]

#: Lines of each file with which -f begins, as tail has it.
_FOLLOWED_LINES: Final = 10
_POLL_SECS: Final = 0.25
_CHUNK_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class _Topology:
    """A topology whose logs are asked for."""

    id: str
    #: Whether it runs now, as far as is known.
    alive: bool
    #: Hosts and ports of its workers now.
    workers: tuple[tuple[str, int], ...] = ()


def _component_or_setting(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[str | None, Settings]:
    """Both that -c may be: a setting, as everywhere, and the component whose logs are shown."""
    names = [text for text in value if "=" not in text]
    if len(names) > 1:
        raise click.BadParameter(f"more than one component: {', '.join(names)}", ctx, param)
    settings = parse_settings(ctx, param, tuple(text for text in value if "=" in text))
    return names[0] if names else None, settings


@click.command()
@name_argument()
@click.option("-f", "--follow", is_flag=True, help="Go on with what is logged, until Ctrl-C.")
@click.option("--component", metavar="COMPONENT", help="Only of instances of this component.")
@click.option(
    "-c",
    "both",
    multiple=True,
    callback=_component_or_setting,
    metavar="COMPONENT|KEY=VALUE",
    help="The same; or, with = in it, set a configuration key.",
)
@click.option(
    "--worker", "port", callback=whole_number(1), metavar="PORT", help="Only of this worker."
)
@click.option(
    "-n",
    "--lines",
    "count",
    callback=whole_number(0),
    metavar="N",
    help=f"Begin with the last N lines of each file; all by default, {_FOLLOWED_LINES} with -f.",
)
@config_option()
@click.pass_context
def logs(
    ctx: click.Context,
    name: str,
    follow: bool,
    component: str | None,
    both: tuple[str | None, Settings],
    port: int | None,
    count: int | None,
    config: str | None,
) -> None:
    """Show the logs of workers of the topology NAME that are on this machine.

    NAME may be a topology id, too: logs stay when a topology is gone.

    Exit code: 1 there are no such logs here, 2 wrong usage, 130 interrupted.
    """
    conf = configuration(None, dict(both[1]), storm_yaml(config))
    folder = local_dir(conf, home())
    topology = _find(name, folder, conf)
    view = _View(folder, topology, component or both[0], port)
    elsewhere = _elsewhere(topology, conf)
    if elsewhere:
        note(
            f"workers on other machines, whose logs are there, in logs/{topology.id}/PORT below "
            f"storm.local.dir: {', '.join(elsewhere)}"
        )
    try:
        if not view.files():
            reason = view.why_empty()
            if not (follow and topology.alive) or (elsewhere and not view.folders()):
                raise Failed(reason)
            note(f"{reason}; waiting for them")
        if follow:
            _follow(view, _FOLLOWED_LINES if count is None else count)
        else:
            _show(view.files(), count)
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED)


class _View:
    """The files that are asked for, as they are at each moment."""

    def __init__(
        self, local: Path, topology: _Topology, component: str | None, port: int | None
    ) -> None:
        self._local = local
        self._topology = topology
        self._component = component
        self._port = port

    def folders(self) -> list[LogFolder]:
        """Of all workers of the topology that are, or were, on this machine."""
        return [one for one in log_folders(self._local) if one.topology_id == self._topology.id]

    def files(self) -> list[Path]:
        """In the order to show them."""
        return [
            path
            for one in self.folders()
            if self._port in (None, one.port)
            for path in log_files(one.path, self._component)
        ]

    def why_empty(self) -> str:
        """The sentence for no files."""
        folders = self.folders()
        what = f"{self._topology.id} has"
        if not folders:
            return f"{what} no logs on this machine, in {self._local}"
        ports = sorted({one.port for one in folders})
        if self._port is not None and self._port not in ports:
            known = ", ".join(map(str, ports))
            return f"{what} no logs of a worker on port {self._port} here, but of {known}"
        if self._component is None:
            return f"{what} no log files yet in {', '.join(str(one.path) for one in folders)}"
        names = components(folders)
        known = f", but of {', '.join(names)}" if names else ""
        hint = did_you_mean(self._component, names)
        return f"{what} no logs of component {self._component!r} here{known}{hint}"


# ---- which topology ----------------------------------------------------------------------------


def _find(name: str, local: Path, conf: Mapping[str, Any]) -> _Topology:
    """The topology of a name or an id: one that runs, or else the last one with logs here."""
    running: Mapping[str, str] | None = None
    try:
        found, running = _running(name, conf)
    except StormPyError as error:
        reason = str(error).partition("\n")[0].removesuffix(":")
        note(f"{reason}; only what is on this machine is known")
        found = None
    if found is not None:
        return found
    ids = {one.topology_id for one in log_folders(local)}
    if name in ids:
        return _Topology(name, alive=False)
    same = [id_ for id_ in ids if _name_of(id_) == name]
    if same:
        last = max(same, key=lambda id_: int(id_.rpartition("-")[2]))
        if running is not None:
            note(f"{name} does not run; these are the logs of {last}, which did")
        return _Topology(last, alive=False)
    known = sorted({*(running or ()), *ids})
    has = f"; there are: {', '.join(known)}" if known else f", nor of any other, in {local}"
    hint = did_you_mean(name, [*known, *filter(None, map(_name_of, ids))])
    raise Failed(
        f"no topology {name!r} runs, and there are no logs of one on this machine{has}{hint}"
    )


def _running(name: str, conf: Mapping[str, Any]) -> tuple[_Topology | None, Mapping[str, str]]:
    """The topology of this name or id, if it runs, and names and ids of all that run."""
    from storm_py.client import NimbusClient
    from storm_py.rpc.definitions import GetInfoOptions, NumErrorsChoice

    options = GetInfoOptions(num_err_choice=NumErrorsChoice.NONE)
    with NimbusClient.of(conf, note, leader_secs=0) as client:
        running = {summary.name: summary.id for summary in client.nimbus.getTopologySummaries()}
        for each, id_ in running.items():
            if name in (each, id_):
                with contextlib.suppress(NotAliveException):  # it was killed in this moment
                    info = client.nimbus.getTopologyInfoByNameWithOpts(each, options)
                    workers = {(e.host, e.port) for e in info.executors}
                    return _Topology(info.id, True, tuple(sorted(workers))), running
    return None, running


def _name_of(topology_id: str) -> str | None:
    from storm_py.nimbus.names import topology_name

    try:
        return topology_name(topology_id)
    except ValueError:
        return None


def _elsewhere(topology: _Topology, conf: Mapping[str, Any]) -> list[str]:
    """The workers that are not on this machine, by what nimbus calls theirs."""
    own = {conf[Config.STORM_LOCAL_HOSTNAME], socket.gethostname(), "localhost", "127.0.0.1"}
    return [f"{host}:{port}" for host, port in topology.workers if host not in own]


# ---- output ------------------------------------------------------------------------------------


def _show(files: Sequence[Path], count: int | None) -> None:
    """Each file under its name, as it is."""
    shown = False
    for path in files:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            if count is not None:
                last_lines(file, count)
            if not (chunk := file.read(_CHUNK_BYTES)):
                continue
            click.echo(f"==> {path} <==")
            shown = ended = True
            while chunk:
                click.echo(chunk, nl=False)
                ended = chunk.endswith(b"\n")
                chunk = file.read(_CHUNK_BYTES)
            click.echo("" if ended else "\n")
    if not shown and count != 0:
        note(f"there is nothing in {', '.join(map(str, files))}")


def _follow(view: _View, count: int) -> None:
    """Each line as it comes, behind port and file."""
    with contextlib.closing(Follower(view.files, count)) as follower:
        while True:
            for path, line in follower.read():
                prefix = click.style(f"{path.parent.name}/{path.name}", dim=True)
                click.echo(f"{prefix} {line.decode('utf-8', 'replace')}")
            time.sleep(_POLL_SECS)
