"""TopologyDriver when user code raises, when executors die, and when it is closed."""

from __future__ import annotations

import traceback

import pytest

from storm_py import FailedException, TopologyBuilder
from storm_py.testing import TopologyDriver
from tests.driven import Count, Grumble, Late, Sentences, Split, word_count

CALLS: list[str] = []
"""What the component below was asked to do, in whichever copy."""


class Closing(Split):
    """Tells when it is closed."""

    def cleanup(self) -> None:
        CALLS.append("cleanup")


@pytest.fixture(autouse=True)
def clean_slate() -> None:
    CALLS.clear()


class TestErrorsOfUserCode:
    def test_they_come_out_as_they_are_and_say_where(self) -> None:
        with TopologyDriver(word_count(), mock_sources="sentences") as driver:
            with pytest.raises(KeyError, match="as told") as raised:
                driver.feed("sentences", ["a raise"])
            [note] = raised.value.__notes__
            assert note == (
                "in 'split' (task 5), execute of "
                "Tuple(source=sentences:default[4], values=['a raise'])"
            )

    def test_the_traceback_leads_from_the_test_to_the_users_line(self) -> None:
        with TopologyDriver.for_bolt(Split(), "sentence") as driver:
            with pytest.raises(KeyError) as raised:
                driver.feed("input", ["raise"])
            frames = traceback.extract_tb(raised.tb)
            ours = [frame for frame in frames if "/storm_py/engine/" in frame.filename]
            assert (ours, frames[-1].line) == ([], 'raise KeyError("as told")')

    def test_they_end_the_executor_which_starts_again(self) -> None:
        with TopologyDriver.for_bolt(Split(), "sentence") as driver:
            before = driver.component("bolt")
            with pytest.raises(KeyError):
                driver.feed("input", ["raise"], 1)
            driver.run()
            assert driver.failed() == [1]
            driver.feed("input", ["a"], 2)
            assert driver.acked() == [2]
            assert driver.component("bolt") is not before

    @pytest.mark.parametrize("hook", ["ack", "fail", "next_tuple", "activate", "deactivate"])
    def test_hooks_of_a_spout(self, hook: str) -> None:
        with TopologyDriver.for_spout(Sentences("a", "b", ends=False)) as driver:
            driver.run()
            if hook == "activate":
                driver.deactivate()
            setattr(driver.component("spout"), hook, _raise)
            acts = {
                "ack": lambda: driver.ack("spout", 0),
                "fail": lambda: driver.fail("spout", 0),
                "next_tuple": driver.run,
                "activate": driver.activate,
                "deactivate": driver.deactivate,
            }
            with pytest.raises(OSError, match="gone") as raised:
                acts[hook]()
            assert raised.value.__notes__ == [f"in 'spout' (task 2), {hook}"]

    @pytest.mark.parametrize("hook", ["open", "prepare"])
    def test_a_component_that_cannot_start(self, hook: str) -> None:
        spout, bolt = Sentences(), Late()
        setattr(spout if hook == "open" else bolt, hook, _raise)
        builder = TopologyBuilder()
        builder.set_bolt("first", Closing()).shuffle_grouping("x")
        builder.set_bolt("second", bolt).shuffle_grouping("x")
        builder.set_spout("x", spout)
        with pytest.raises(OSError, match="gone"):
            TopologyDriver(builder)
        assert CALLS == ["cleanup"]

    def test_errors_at_the_end_of_the_input(self) -> None:
        class Judge(Count):
            def end_of_input(self) -> None:
                raise FailedException("3 words differ")

        with TopologyDriver.for_bolt(Judge(), "word") as driver:
            with pytest.raises(FailedException, match="3 words differ") as raised:
                driver.end_of_input()
            assert raised.value.__notes__ == ["in 'bolt' (task 1), end_of_input"]
            assert driver.ended

    def test_errors_of_closing(self) -> None:
        driver = TopologyDriver.for_bolt(Late(), "word")
        driver.component("bolt").cleanup = _raise
        with pytest.raises(OSError, match="gone"):
            driver.close()
        driver.close()

    def test_errors_of_closing_do_not_hide_an_earlier_one(self) -> None:
        def test() -> None:
            with TopologyDriver.for_bolt(Late(), "word") as driver:
                driver.component("bolt").cleanup = _raise
                raise AssertionError("first")

        with pytest.raises(AssertionError, match="first"):
            test()

    def test_what_is_reported_is_kept(self) -> None:
        with TopologyDriver.for_bolt(Grumble(), "what") as driver:
            driver.feed("input", ["report"], 1)
            assert [(e.component, e.message) for e in driver.errors] == [
                ("bolt", "ValueError: odd")
            ]
            assert driver.acked() == [1]

    def test_sys_exit_is_an_error_too(self) -> None:
        with TopologyDriver.for_bolt(Grumble(), "what") as driver, pytest.raises(SystemExit):
            driver.feed("input", ["exit"])


def _raise(*args: object) -> None:
    raise OSError("gone")


class TestDeaths:
    def test_a_bolt_loses_its_memory_and_what_it_held_fails_at_once(self) -> None:
        with TopologyDriver.for_bolt(Late(), "word") as driver:
            driver.feed("input", ["held"], 1)
            driver.kill("bolt")
            driver.run()
            assert (driver.failed(), driver.unanswered("bolt")) == ([], [])
            driver.advance(60)
            assert driver.failed() == [1]

    def test_what_waits_in_a_dead_bolt_fails_at_once(self) -> None:
        with TopologyDriver.for_bolt(Split(), "sentence") as driver:
            for i in range(2):
                driver.feed("input", ["raise"], i, run=False)
            with pytest.raises(KeyError):
                driver.run()
            driver.run()
            assert (driver.failed(), driver.pending()) == ([0, 1], [])

    def test_only_the_tasks_of_that_executor_die(self) -> None:
        with TopologyDriver(word_count(["a b c d e f"])) as driver:
            driver.run(calls=1)
            counts = [driver.component("count", i).counts for i in range(3)]
            driver.kill("count", 1)
            after = [driver.component("count", i).counts for i in range(3)]
            assert after == [counts[0], {}, counts[2]]
            assert counts[1]

    def test_a_dead_spout_hears_of_nothing_it_had_pending(self) -> None:
        with TopologyDriver.for_spout(Sentences("a")) as driver:
            driver.run()
            driver.kill("spout")
            assert driver.pending() == []
            driver.run()
            assert (driver.outputs("spout"), driver.pending()) == ([["a"], ["a"]], [0])
            assert driver.failed() == []

    @pytest.mark.parametrize("victim", ["sentences", "split", "count"])
    def test_after_the_end_the_dead_end_once_more(self, victim: str) -> None:
        with TopologyDriver(word_count(["a b"])) as driver:
            driver.run()
            assert driver.ended
            driver.kill(victim)
            assert victim in driver.unended
            driver.run()
            assert driver.ended

    def test_deaths_while_draining_end_as_well(self) -> None:
        with TopologyDriver(word_count(["a"], ends=False)) as driver:
            driver.end_of_input()
            driver.kill("sentences")
            driver.run()
            assert driver.ended
            assert driver.outputs("sentences") == []


def test_closing_calls_close_and_cleanup_once() -> None:
    driver = TopologyDriver.for_bolt(Closing(), "sentence")
    driver.close()
    driver.close()
    assert CALLS == ["cleanup"]
