"""`storm-py monitor`: what a topology does, a line for each interval.

Counts are those that nimbus has of all executors that run now. An executor that starts again begins
at 0, so that a total may fall; what it falls by is no rate.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import click

from storm_py.errors import NotAliveException, RpcError, did_you_mean

from .arguments import name_argument, seconds, whole_number
from .calls import nimbus_of, note
from .exits import INTERRUPTED, ClusterRefused
from .settings import cluster_options

if TYPE_CHECKING:  # slow to import
    from storm_py.rpc.summaries import ExecutorSummary, TopologyInfo

__all__ = ["monitor"]

#: The window of statistics that never ends, as Storm calls it.
_ALL_TIME: Final = ":all-time"
#: Time between two lines, as Storm has it.
_INTERVAL_SECS: Final = "4"
#: Name and width of each column; text stands to the left, numbers to the right.
_COLUMNS: Final = (
    ("time", -8),
    ("status", -11),
    ("slots", 5),
    ("executors", 9),
    ("up", 5),
    ("emitted", 12),
    ("transferred", 12),
    ("secs", 6),
    ("emitted/s", 10),
    ("transferred/s", 13),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What there is to say of a topology, or of one of its components, at one time."""

    id: str
    status: str
    #: Workers that have some of it.
    slots: int
    executors: int
    #: Executors that run, as far as nimbus has heard.
    up: int
    emitted: int
    transferred: int

    @classmethod
    def of(cls, info: TopologyInfo, component: str | None) -> Self:
        """Those of one component, or of all."""
        found = [e for e in info.executors if component in (None, e.component_id)]
        return cls(
            id=info.id,
            status=info.status,
            slots=len({(e.host, e.port) for e in found}),
            executors=len(found),
            up=sum(e.uptime_secs > 0 for e in found),
            emitted=sum(_emitted(e) for e in found),
            transferred=sum(_transferred(e) for e in found),
        )


def check_component(info: TopologyInfo, component: str | None) -> None:
    """Raise ClusterRefused if there is no such component.

    A topology that is not assigned has no executors, and nobody knows its components here.
    """
    known = sorted({executor.component_id for executor in info.executors})
    if component is not None and known and component not in known:
        raise ClusterRefused(
            f"topology {info.name!r} has no component {component!r}, but {', '.join(known)}"
            f"{did_you_mean(component, known)}"
        )


def _emitted(executor: ExecutorSummary) -> int:
    if executor.stats is None:
        return 0
    return sum(executor.stats.emitted.get(_ALL_TIME, {}).values())


def _transferred(executor: ExecutorSummary) -> int:
    if executor.stats is None:
        return 0
    return sum(executor.stats.transferred.get(_ALL_TIME, {}).values())


@dataclass(frozen=True, slots=True)
class Sample:
    """A line: figures, and how they have changed since those of the line before."""

    #: Seconds since 1970.
    time_secs: float
    figures: Figures
    #: Seconds since the line before; None for the first.
    secs: float | None = None
    emitted_per_sec: float | None = None
    transferred_per_sec: float | None = None

    @classmethod
    def after(cls, before: Figures | None, now: Figures, secs: float, time_secs: float) -> Self:
        """The next line, `secs` after the figures `before`."""
        if before is None:
            return cls(time_secs, now)
        return cls(
            time_secs,
            now,
            secs,
            max(0, now.emitted - before.emitted) / secs,
            max(0, now.transferred - before.transferred) / secs,
        )

    def text(self) -> str:
        """As a line under the head."""
        figures = self.figures
        return _aligned(
            (
                time.strftime("%H:%M:%S", time.localtime(self.time_secs)),
                figures.status,
                str(figures.slots),
                str(figures.executors),
                str(figures.up),
                str(figures.emitted),
                str(figures.transferred),
                "-" if self.secs is None else f"{self.secs:.1f}",
                "-" if self.emitted_per_sec is None else f"{self.emitted_per_sec:.0f}",
                "-" if self.transferred_per_sec is None else f"{self.transferred_per_sec:.0f}",
            )
        )

    def json(self, name: str, component: str | None) -> str:
        """As a line of JSON."""
        figures = self.figures
        plain = {
            "time_secs": round(self.time_secs, 3),
            "topology": name,
            "id": figures.id,
            "component": component,
            "status": figures.status,
            "slots": figures.slots,
            "executors": figures.executors,
            "executors_up": figures.up,
            "emitted": figures.emitted,
            "transferred": figures.transferred,
            "secs": None if self.secs is None else round(self.secs, 3),
            "emitted_per_sec": self.emitted_per_sec,
            "transferred_per_sec": self.transferred_per_sec,
        }
        return json.dumps(plain)


def _aligned(cells: tuple[str, ...]) -> str:
    return "  ".join(
        cell.ljust(-width) if width < 0 else cell.rjust(width)
        for cell, (_, width) in zip(cells, _COLUMNS, strict=True)
    )


@click.command()
@name_argument()
@click.option(
    "-i",
    "--interval",
    "interval_secs",
    callback=seconds,
    default=_INTERVAL_SECS,
    metavar="SECS",
    help=f"Time between two lines; {_INTERVAL_SECS} by default.",
)
@click.option("-m", "--component", metavar="COMPONENT", help="Count this component alone.")
@click.option(
    "-n", "--times", callback=whole_number(1), metavar="TIMES", help="End after so many lines."
)
@click.option("--once", is_flag=True, help="End after one line.")
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON instead of each line.")
@cluster_options
@click.pass_context
def monitor(
    ctx: click.Context,
    name: str,
    interval_secs: float,
    component: str | None,
    times: int | None,
    once: bool,
    as_json: bool,
    conf: dict[str, Any],
) -> None:
    """Show what the topology NAME does, a line for each interval, until Ctrl-C.

    Slots are the workers that it uses; "up" are the executors that run. Counts are of tuples.

    Exit code: 1 the cluster cannot be reached, 2 wrong usage, 3 refused by the cluster, 130
    interrupted.
    """
    left = 1 if once else times
    watch = _Watch(name, component, as_json, conf)
    try:
        while watch.line():
            left = None if left is None else left - 1
            if left == 0:
                return
            time.sleep(interval_secs)
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED)


class _Watch:
    """One run of the command: what is asked, and the figures of the line before."""

    def __init__(
        self, name: str, component: str | None, as_json: bool, conf: dict[str, Any]
    ) -> None:
        self._name = name
        self._component = component
        self._as_json = as_json
        self._conf = conf
        self._before: Figures | None = None
        self._then = 0.0

    def line(self) -> bool:
        """Print a line, or why there is none; False if the topology is gone.

        What goes wrong before the first line is raised; later it may pass, as when another nimbus
        leads.
        """
        try:
            info = self._ask()
        except (ClusterRefused, RpcError) as error:
            if self._before is None:
                raise
            if isinstance(error.__cause__, NotAliveException):
                note(f"{self._name} runs no more")
                return False
            reason = str(error).partition("\n")[0].removesuffix(":")
            note(f"{reason}; trying again")
            return True
        if self._before is None:
            check_component(info, self._component)
        self._print(Figures.of(info, self._component))
        return True

    def _ask(self) -> TopologyInfo:
        from storm_py.rpc.definitions import GetInfoOptions, NumErrorsChoice

        no_errors = GetInfoOptions(num_err_choice=NumErrorsChoice.NONE)
        with nimbus_of(self._conf, self._name) as nimbus:  # each time, as another one may lead
            return nimbus.getTopologyInfoByNameWithOpts(self._name, no_errors)

    def _print(self, figures: Figures) -> None:
        now = time.monotonic()
        sample = Sample.after(self._before, figures, now - self._then, time.time())
        if self._before is None and not self._as_json:
            click.echo(_aligned(tuple(column for column, _ in _COLUMNS)))
        click.echo(sample.json(self._name, self._component) if self._as_json else sample.text())
        self._before, self._then = figures, now
