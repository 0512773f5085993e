"""TopologyDriver: a whole topology, or one component of it, in the hands of a test.

One thread and a fake clock: nothing sleeps, nothing happens between two calls of the test, and the
same calls give the same results every time. The engine is the real one (`storm_py.single`, as in
``storm-py local --inline``): grouping, acking, timeouts, pressure and the end of input are those of
a run in processes. What the driver sees comes from `storm_py.testing.spies`; the questions that a
test can ask are in `storm_py.testing.outcome`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from storm_py.api.component import BaseRichSpout, Bolt
from storm_py.api.spec import StormTopology
from storm_py.api.topology import TopologyBuilder
from storm_py.api.tuples import Tuple
from storm_py.constants import DEFAULT_STREAM_ID
from storm_py.engine.links import instance_peer
from storm_py.engine.tasks import SpoutTask, UserError
from storm_py.errors import TopologyFailed
from storm_py.run import ComponentFigures
from storm_py.single import SingleWorker
from storm_py.wire.acks import AckResults

from .batch_spies import BatchBoltSpy
from .blame import explain, users_own
from .clock import FakeClock, checked_secs
from .outcome import Outcome
from .spies import BoltSpy, Log, SpoutSpy, Spy, spy_on
from .start import MockSources, around_bolt, around_spout, resolved

_LOG: Final = logging.getLogger("storm_py.testing")

__all__ = ["MAX_CALLS", "TopologyDriver"]

#: A spout that still emits after so many calls of next_tuple in one run never gets quiet.
MAX_CALLS: Final = 100_000
#: A round is one turn of every executor; a spout needs at most one for each call.
_MAX_ROUNDS: Final = 2 * MAX_CALLS
#: A spout may skip something, an empty line say, and go on in its next call.
_IDLE_ROUNDS: Final = 10
_STEP_SECS: Final = 1.0


class TopologyDriver(Outcome):
    """Runs a topology step by step and shows what came of it.

    ``topology`` is a ``TopologyBuilder`` or ``StormTopology``, ``conf`` its configuration as far as
    it differs from the defaults. Spouts in ``mock_sources`` are replaced: named in a list, they
    emit only what is fed; with a list of tuples for each, these, until all are acked
    (``FixedTupleSpout``). ``clock`` is the clock to use, ``seed`` decides the ids that the engine
    draws.

    Everything is opened here; ``close``, or the end of a ``with`` block, closes it. An exception of
    user code comes out of the call during which it happens, as it is, with a note that says where.
    As in a real run it ends the executor, which starts again in the next call that runs.
    """

    def __init__(
        self,
        topology: TopologyBuilder | StormTopology,
        conf: Mapping[str, object] | None = None,
        *,
        mock_sources: MockSources = (),
        clock: FakeClock | None = None,
        seed: int = 0,
    ) -> None:
        """Open every component and activate the spouts; nothing has been emitted yet.

        Raises InvalidTopologyException for a topology or a mock source that cannot work,
        ConfigError for a configuration that is not valid.
        """
        found = resolved(topology, conf, mock_sources)
        #: The clock; ``clock.now`` are its seconds, which ``advance`` moves.
        self.clock = FakeClock() if clock is None else clock
        self._closed = False
        self._crashed: set[str] = set()
        self._spies: dict[int, Spy] = {}
        log = Log()

        def adapt(task: int, component: object) -> object:
            self._spies[task] = spy_on(component, log)
            return self._spies[task]

        self._worker = SingleWorker(
            found.topology_id,
            found.topology,
            found.conf,
            self.clock,
            self.clock,
            lambda name: random.Random(f"{seed} {name}"),
            lambda error: self.errors.append(error),
            lambda text: _LOG.info("%s", text),
            adapt,
        )
        super().__init__(self._worker.plan, log, [])
        try:
            for step in (self._worker.open, self._worker.link, self._worker.activate):
                self._guarded(step)
        except BaseException:
            self._closed = True
            self._worker.close()
            raise

    @classmethod
    def for_bolt(
        cls,
        bolt: Bolt,
        fields: str | Iterable[str] | Mapping[str, str | Iterable[str]],
        conf: Mapping[str, object] | None = None,
    ) -> Self:
        """Drive one bolt under the id "bolt", which receives what is fed to "input".

        ``fields`` are those of its input; for a bolt with several inputs a dict, the fields of
        each by the id to feed it with.
        """
        return cls(around_bolt(bolt, fields), conf)

    @classmethod
    def for_spout(cls, spout: BaseRichSpout, conf: Mapping[str, object] | None = None) -> Self:
        """Drive one spout under the id "spout"; nobody but the test acks or fails its tuples."""
        return cls(around_spout(spout), conf)

    # ---- the end -------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        if error is None:
            self.close()
        elif not self._closed:  # what fails now must not hide what failed first
            self._closed = True
            self._worker.close()

    def close(self) -> None:
        """Call close or cleanup of every task and raise what one raises; once is enough."""
        __tracebackhide__ = True
        if not self._closed:
            self._closed = True
            self._guarded(self._worker.close)

    # ---- input and time ------------------------------------------------------------------------

    def feed(
        self,
        component: str,
        values: Sequence[object],
        msg_id: object = None,
        stream: str = DEFAULT_STREAM_ID,
        *,
        task_index: int = 0,
        run: bool = True,
    ) -> None:
        """Emit ``values`` as if the spout ``component`` did, and ``run`` until all is quiet.

        With a ``msg_id`` the tuple is tracked and the spout's ``ack`` or ``fail`` is called for
        it. ``run=False`` only queues the tuple. It also waits while the spout is deactivated or
        has ``topology.max.spout.pending`` unfinished tuples. Raises ValueError for a component
        that cannot be fed, EmitError for values that do not fit the stream.
        """
        __tracebackhide__ = True
        self._must_be_open("feed")
        task = self._spout_task(component, task_index)
        if task.ended:
            raise ValueError(f"spout {component!r} has ended its input; it cannot be fed any more")
        self._spout_spy(task.task).fed.append((values, msg_id, stream))
        if run:
            self.run()

    def run(self, calls: int | None = None) -> None:
        """Run until all is quiet: nothing is on its way and no spout emits any more.

        Each spout task's ``next_tuple`` is called at most ``calls`` times, for spouts that never
        stop; with 0 only what was fed is emitted. Time does not pass. Raises what user code
        raises, and TopologyFailed if the topology never gets quiet.
        """
        __tracebackhide__ = True
        self._must_be_open("run")
        self._grant(calls)
        self._guarded(self._run, calls is None)

    def advance(self, secs: float, calls: int | None = None) -> None:
        """Let time pass, and all happen that becomes due on the way, timeouts for one.

        Time goes in steps of at most a second with a ``run`` after each; ``calls`` is as there,
        for all steps together. A tuple that is not finished fails between one and two message
        timeouts after it was emitted. Raises ValueError for less than 0 seconds.
        """
        __tracebackhide__ = True
        self._must_be_open("advance")
        end = self.clock.now + checked_secs(secs)
        self._grant(calls)
        while True:
            self.clock.advance(min(_STEP_SECS, end - self.clock.now))
            self._guarded(self._run, calls is None)
            if self.clock.now >= end:
                return
            if calls is None:
                self._grant(None)

    def end_of_input(self) -> None:
        """End every spout where it is and run: bolts get their ``end_of_input`` in order.

        They get it once no tracked tuple is pending; ``ended`` says whether they have.
        """
        __tracebackhide__ = True
        self._must_be_open("end_of_input")
        self._guarded(self._worker.drain)
        self.run()

    def deactivate(self) -> None:
        """Pause the spouts, as when an operator deactivates a topology."""
        __tracebackhide__ = True
        self._must_be_open("deactivate")
        self._guarded(self._worker.deactivate)

    def activate(self) -> None:
        """Let the spouts go on after ``deactivate``."""
        __tracebackhide__ = True
        self._must_be_open("activate")
        self._guarded(self._worker.activate)

    def ack(self, spout: str, msg_id: object) -> None:
        """Call the spout's ``ack`` for ``msg_id``, which must be pending, as if it was finished."""
        __tracebackhide__ = True
        self._must_be_open("ack")
        task, root = self._pending_tree(spout, msg_id)
        self._guarded(task.answered, AckResults(complete=[root]))

    def fail(self, spout: str, msg_id: object) -> None:
        """Call the spout's ``fail`` for ``msg_id``, which must be pending, as if a bolt failed."""
        __tracebackhide__ = True
        self._must_be_open("fail")
        task, root = self._pending_tree(spout, msg_id)
        self._guarded(task.answered, AckResults(failed=[root]))

    def kill(self, component: str, task_index: int = 0) -> None:
        """Let the executor of a task die and start again, as after a kill -9 of its process.

        The memory of its tasks is lost. What waited in it fails at once; what a dead spout had
        pending is neither acked nor failed.
        """
        __tracebackhide__ = True
        self._must_be_open("kill")
        [task] = self._tasks(component, task_index)
        self._crashed.add(self._peer(task))
        self._guarded(self._restart_crashed)

    # ---- looking in ----------------------------------------------------------------------------

    def component(self, component: str, task_index: int = 0) -> Any:
        """The object that a task runs: a copy of the one that the builder was given."""
        [task] = self._tasks(component, task_index)
        return self._spies[task].component

    def pending(self, spout: str | None = None) -> list[object]:
        """The message ids that are neither acked nor failed yet, of one spout or of all."""
        spouts = self.plan.topology.spouts if spout is None else [spout]
        return [id for each in spouts for t in self._spout_tasks(each) for id in _ids(t)]

    def unanswered(self, bolt: str, *, task_index: int | None = None) -> list[Tuple]:
        """The tracked tuples that a bolt was given and has neither acked nor failed."""
        spies = [self._spies[task] for task in self._tasks(bolt, task_index, "bolt")]
        return [
            tup
            for s in spies
            if isinstance(s, (BoltSpy, BatchBoltSpy))
            for tup in s.unanswered.values()
        ]

    @property
    def ended(self) -> bool:
        """Whether every spout has ended its input and every bolt had its ``end_of_input``."""
        return self._worker.done

    @property
    def unended(self) -> list[str]:
        """The components of which a task has not ended yet."""
        executors = self.plan.executors
        found = {e.component_id for e in executors if e.id not in self._worker.ended}
        return [id for id in self.plan.topology.components if id in found]

    def figures(self) -> tuple[ComponentFigures, ...]:
        """What each component has executed and emitted, and how many tuples wait for it."""
        return self._worker.figures()

    def clear(self) -> None:
        """Forget what was emitted, received, acked, failed and reported so far."""
        self._log.clear()
        self.errors.clear()

    # ---- inside --------------------------------------------------------------------------------

    def _must_be_open(self, what: str) -> None:
        __tracebackhide__ = True
        if self._closed:
            raise RuntimeError(f"{what} after the driver was closed; make a new TopologyDriver")

    def _peer(self, task: int) -> str:
        return instance_peer(self.plan.executor_of(task).instance)

    def _spout_tasks(self, component: str) -> Iterator[SpoutTask]:
        for task in self._tasks(component, None, "spout"):
            for running in self._worker.cores[self._peer(task)].tasks:
                if running.task == task and isinstance(running, SpoutTask):
                    yield running

    def _spout_task(self, component: str, task_index: int) -> SpoutTask:
        spec = self._spec(component)
        if spec.kind != "spout":
            raise ValueError(
                f"{component!r} is a bolt and receives what others emit; feed a spout "
                f"({', '.join(self.plan.topology.spouts)}), or test the bolt alone with "
                "TopologyDriver.for_bolt"
            )
        [number] = self._tasks(component, task_index)
        return next(task for task in self._spout_tasks(component) if task.task == number)

    def _spout_spies(self) -> list[SpoutSpy]:
        return [spy for spy in self._spies.values() if isinstance(spy, SpoutSpy)]

    def _spout_spy(self, task: int) -> SpoutSpy:
        return next(spy for spy in self._spout_spies() if spy.task == task)

    def _pending_tree(self, spout: str, msg_id: object) -> tuple[SpoutTask, int]:
        for task in self._spout_tasks(spout):
            root = task.pending.find(msg_id)
            if root is not None:
                return task, root
        pending = self.pending(spout)
        shown = ", ".join(map(repr, pending[:10])) + (", ..." if len(pending) > 10 else "")
        raise ValueError(
            f"message id {msg_id!r} of spout {spout!r} is not pending; pending: {shown or 'none'}"
        )

    def _grant(self, calls: int | None) -> None:
        if calls is not None and (not isinstance(calls, int) or calls < 0):
            raise ValueError(f"calls is {calls!r}; expected a number of at least 0, or None")
        for spy in self._spout_spies():
            spy.calls_left = MAX_CALLS if calls is None else calls

    def _run(self, must_get_quiet: bool) -> None:
        self._restart_crashed()
        idle = rounds = 0
        while idle < _IDLE_ROUNDS and not self._worker.done:
            idle = 0 if self._worker.round(self.clock.now) else idle + 1
            rounds += 1
            for spy in self._spout_spies():
                if spy.refused is not None:
                    refused, spy.refused = spy.refused, None
                    raise refused
                if must_get_quiet and spy.calls_left == 0:
                    raise TopologyFailed(
                        f"spout {spy.component_id!r} still emits after {MAX_CALLS:,} calls of "
                        "next_tuple; limit them with run(calls=...), or replace the spout with "
                        f"mock_sources=[{spy.component_id!r}]"
                    )
            if rounds == _MAX_ROUNDS:
                busy = ", ".join(self.plan.cyclic_components()) or "no cycle"
                raise TopologyFailed(f"never gets quiet; tuples may go in circles ({busy})")

    def _restart_crashed(self) -> None:
        while self._crashed:
            peer = min(self._crashed)
            self._worker.restart(peer)
            self._crashed.remove(peer)

    def _guarded(self, function: Callable[..., object], *args: object) -> None:
        """Call, and raise what user code raised instead of what the engine makes of it."""
        __tracebackhide__ = True
        raised: BaseException | None = None
        try:
            function(*args)
        except UserError as error:
            self._crashed.add(self._peer(error.task))
            raised = users_own(error, self._spies[error.task])
        if raised is None and self._log.raised:
            where, raised = self._log.raised[0]
            explain(raised, where)
        self._log.raised.clear()
        if raised is not None:
            raise raised


def _ids(task: SpoutTask) -> list[object]:
    return task.pending.message_ids()
