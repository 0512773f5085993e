"""RunCore: a run is deactivated and activated from outside, whatever dies meanwhile."""

from __future__ import annotations

from storm_py.engine.run_core import Note, TellWorker
from storm_py.wire.control import Activate, Deactivate
from tests.runs import Run, both, running


class TestActivation:
    PAUSED, ON = Note("deactivated: spouts pause"), Note("activated: spouts go on")

    def test_spouts_are_told_when_the_state_turns(self) -> None:
        run = running()
        assert run.core.activate(True) == []
        assert run.core.activate(False) == [self.PAUSED, *both(Deactivate())]
        assert run.core.activate(False) == []
        assert run.core.activate(True) == [self.ON, *both(Activate())]

    def test_a_worker_that_comes_back_is_not_activated_while_paused(self) -> None:
        run = running()
        run.core.activate(False)
        run.died(1)
        run.up(1, incarnation=2)
        assert TellWorker(1, Activate()) not in run.ready(1, incarnation=2)
        assert run.core.activate(True) == [self.ON, *both(Activate())]

    def test_a_run_that_is_deactivated_before_it_starts_waits(self) -> None:
        run = Run()
        run.start()
        assert run.core.activate(False) == [self.PAUSED]
        run.up(0)
        run.up(1)
        run.ready(0)
        assert (run.ready(1), run.phase) == ([], "running")
        assert run.core.activate(True) == [self.ON, *both(Activate())]

    def test_once_it_ends_there_is_nothing_to_activate(self) -> None:
        run = running()
        run.core.activate(False)
        run.core.drain()
        assert run.core.activate(True) == []
