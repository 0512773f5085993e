"""complete_topology: run a topology to its end and read what every component emitted.

In the spirit of Storm's ``Testing.completeTopology`` and ``Testing.readTuples``. By default on a
`TopologyDriver`, so without a process and on a fake clock; the way through real processes is
`storm_py.testing.in_processes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from storm_py.api.spec import StormTopology
from storm_py.api.topology import TopologyBuilder
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.errors import TopologyFailed

from .driver import TopologyDriver
from .outcome import Outcome
from .spouts import FixedTupleSpout
from .start import MockSources, resolved

__all__ = ["complete_topology", "read_tuples"]

#: How many tuples a message shows before it goes on with dots.
_SHOWN: Final = 3


def complete_topology(
    topology: TopologyBuilder | StormTopology,
    mock_sources: MockSources = (),
    conf: Mapping[str, object] | None = None,
    *,
    timeout_secs: float = 10.0,
    processes: bool = False,
) -> Outcome:
    """Run until the input has ended and every bolt had its ``end_of_input``.

    ``mock_sources`` gives the tuples to emit in place of spouts, by id: each is emitted again when
    it fails, and the spout ends when all are acked. Other spouts must end their input themselves.
    ``timeout_secs`` are seconds of a fake clock, or real ones with ``processes``; that runs the
    topology as ``storm-py local`` does, in processes of its own, and has to be called on the main
    thread.

    Raises TopologyFailed that says what is unfinished and where, if the topology does not
    complete; in one thread what user code raises, as it is.
    """
    if processes:
        from .in_processes import complete_in_processes  # loads sockets, which nothing else needs

        outcome, problem = complete_in_processes(
            resolved(topology, conf, mock_sources), timeout_secs
        )
        if problem:
            raise TopologyFailed("\n- ".join([problem, *_unacked(outcome)]))
        return outcome
    with TopologyDriver(topology, conf, mock_sources=mock_sources) as driver:
        try:
            driver.run()
            while not driver.ended and driver.clock.now < timeout_secs:
                driver.advance(min(1.0, timeout_secs - driver.clock.now))
        except TopologyFailed as error:
            raise TopologyFailed("\n- ".join([str(error), *_unfinished(driver)])) from None
        if not driver.ended:
            problem = f"the topology is not complete after {timeout_secs:g} s of its clock"
            raise TopologyFailed("\n- ".join([problem, *_unfinished(driver)]))
    return driver


def read_tuples(
    outcome: Outcome, component: str, stream: str = DEFAULT_STREAM_ID
) -> list[list[Any]]:
    """The values that ``component`` emitted on ``stream``; Storm's name for ``outputs``."""
    return outcome.outputs(component, stream)


def _unacked(outcome: Outcome) -> Iterator[str]:
    """One line for each spout that waits for an answer."""
    for id in outcome.plan.topology.spouts:
        values = {
            repr(each.msg_id): each.values
            for each in outcome.emitted(id)
            if each.msg_id is not None
        }
        for msg_id in map(repr, outcome.acked(id)):
            values.pop(msg_id, None)
        if values:
            fails = Counter(map(repr, outcome.failed(id)))
            text = f"spout {id!r}: {_shown(list(values.values()))} not acked"
            worst = max(values, key=lambda each: fails[each])
            if fails[worst]:
                text += f"; {values[worst]!r} failed {fails[worst]:,} times"
            yield text


def _unfinished(driver: TopologyDriver) -> Iterator[str]:
    """One line for each task that somebody waits for."""
    yield from _unacked(driver)
    for id in driver.plan.topology.bolts:
        held = driver.unanswered(id)
        if held:
            shown = _shown([tup.values for tup in held])
            yield f"bolt {id!r} was given {shown} and has neither acked nor failed it"
    for figures in driver.figures():
        if figures.queued:
            yield f"{figures.queued:,} tuple(s) wait for {figures.kind} {figures.component_id!r}"
    for id in driver.plan.topology.spouts:
        if id in driver.unended and not isinstance(driver.component(id), FixedTupleSpout):
            yield (
                f"spout {id!r} has not called end_of_input; let it, or replace it: "
                f"mock_sources={{{id!r}: [...]}}"
            )


def _shown(values: list[list[Any]]) -> str:
    more = f", ... ({len(values):,} tuples)" if len(values) > _SHOWN else ""
    return ", ".join(map(repr, values[:_SHOWN])) + more
