"""Instances that are stuck are named: what the core notes, what the page keeps, what is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storm_py.engine.statistics import InstanceStatistics
from storm_py.engine.stuck import Activity, StuckWatch
from storm_py.runtime.page import Counters, PageWriter, read_page
from tests.builders import End, bolt, plan_of, rows, spout
from tests.instance import Instance, ScriptedBolt, ScriptedSpout, nothing

COMPONENTS = {3: "split", 5: "count"}
EXECUTING = Activity(100.0, "execute", 5, 3, "default", 12, 40)


class TestWords:
    @pytest.mark.parametrize(
        ("activity", "words"),
        [
            (EXECUTING, "execute, rows 12..40 of a frame from split (task 3)"),
            (replace(EXECUTING, last=12), "execute, row 12 of a frame from split (task 3)"),
            (
                replace(EXECUTING, stream="side"),
                "execute, rows 12..40 of a frame from split (task 3), stream 'side'",
            ),
            (Activity(1.0, "next_tuple", 3, 0, "", 0, 0), "next_tuple"),
        ],
    )
    def test_what_it_is_in(self, activity: Activity, words: str) -> None:
        assert activity.words(COMPONENTS) == words


class TestWatch:
    def said(self, watch: StuckWatch, now: float, activity: Activity | None = EXECUTING) -> bool:
        return watch.look(1, activity, now) is not None

    def test_a_sentence_once_the_limit_is_over(self) -> None:
        watch = StuckWatch(COMPONENTS, 30)
        assert not self.said(watch, 129.9)
        assert watch.look(1, EXECUTING, 131.0) == (
            "count (task 5) has been in execute, rows 12..40 of a frame from split (task 3) for "
            "31 s (storm_py.stuck.secs: 30)"
        )

    def test_it_comes_again_when_the_time_has_doubled(self) -> None:
        watch = StuckWatch(COMPONENTS, 30)
        assert [now for now in range(100, 400) if self.said(watch, now)] == [130, 160, 220, 340]

    def test_what_goes_on_is_not_stuck(self) -> None:
        watch = StuckWatch(COMPONENTS, 30)
        assert self.said(watch, 130.0)
        assert not self.said(watch, 131.0, replace(EXECUTING, since=130.5))
        assert self.said(watch, 160.5, replace(EXECUTING, since=130.5))
        assert not self.said(watch, 200.0, None)
        assert not self.said(watch, 229.0, replace(EXECUTING, since=199.5))

    def test_executors_are_judged_apart(self) -> None:
        watch = StuckWatch(COMPONENTS, 30)
        assert watch.look(1, EXECUTING, 130.0)
        assert watch.look(2, EXECUTING, 130.0)


class TestPage:
    def test_nothing_written_is_nothing_done(self, tmp_path: Path) -> None:
        found = read_page(tmp_path / "none")
        assert (found.counters, found.busy_since, found.activity) == ((), 0.0, None)

    def test_counters_and_activity_side_by_side(self, tmp_path: Path) -> None:
        page = PageWriter(tmp_path / "page", 7, executors=2)
        page.entered(100.0, "execute", 5, 3, "default", 12, 40)
        assert read_page(tmp_path / "page").activity == EXECUTING
        one = InstanceStatistics(1, 2, 3, queued=4, acked=5, failed=6)
        page.write([one, InstanceStatistics(7, 8, 9, queued=10)])
        found = read_page(tmp_path / "page")
        assert (found.incarnation, found.loops) == (7, 1)
        assert found.counters == (Counters((1, 2, 3, 5, 6), 4), Counters((7, 8, 9, 0, 0), 10))
        assert (found.busy_since, found.activity) == (0.0, None)

    def test_a_chain_may_be_of_any_length(self, tmp_path: Path) -> None:
        page = PageWriter(tmp_path / "page", 1, executors=500)
        page.write([InstanceStatistics(n, 0, 0, queued=0) for n in range(500)])
        found = read_page(tmp_path / "page").counters
        assert [counters.totals[0] for counters in found] == list(range(500))

    def test_a_wait_that_is_not_the_users_does_not_count(self, tmp_path: Path) -> None:
        page = PageWriter(tmp_path / "page", 1, executors=1)
        page.entered(100.0, "execute", 5, 3, "default", 12, 40)
        assert page.busy(0.0) == 100.0
        assert read_page(tmp_path / "page").activity is None
        page.busy(150.0)
        assert read_page(tmp_path / "page").activity == replace(EXECUTING, since=150.0)

    def test_names_of_any_length_and_alphabet(self, tmp_path: Path) -> None:
        page = PageWriter(tmp_path / "page", 1, executors=1)
        page.entered(100.0, "execute", 5, 3, "größe" * 30, 0, 0)
        found = read_page(tmp_path / "page").activity
        assert found is not None
        assert ("größe" * 30).startswith(found.stream.rstrip("\ufffd"))
        assert len(found.stream) > 40


class TestCore:
    def test_each_entry_into_user_code_is_noted(self) -> None:
        plan = plan_of(spout("lines", "word; side: n"), bolt("count", "lines lines:side"))
        instance = Instance(plan, 1, ScriptedBolt).open()
        assert instance.watch.seen == [("prepare", 1)]
        instance.watch.seen.clear()
        instance.gets(11, 1, rows(2, 1, ["a"], ["b"], stream=1), End(2, 1, 1))
        instance.works()
        instance.core.close()
        assert instance.watch.seen == [
            ("execute", 1, 2, "side", 0, 0),
            ("execute", 1, 2, "side", 1, 1),
            ("end_of_input", 1),
            ("cleanup", 1),
        ]

    def test_slices_grow_and_so_do_the_ranges(self) -> None:
        plan = plan_of(spout("lines", "word"), bolt("count", "lines"))
        instance = Instance(plan, 1, ScriptedBolt).open()
        instance.watch.seen.clear()
        instance.gets(11, 1, rows(2, 1, *[["a"]] * 7))
        instance.works()
        assert [seen[4:] for seen in instance.watch.seen] == [(0, 0), (1, 2), (3, 6)]

    def test_a_spout(self) -> None:
        plan = plan_of(spout("lines", "word"), bolt("count", "lines"))
        instance = Instance(plan, 2, ScriptedSpout).open()
        instance.spins()
        instance.core.deactivate()
        instance.core.close()
        methods = ["open", "activate", "next_tuple", "deactivate", "close"]
        assert instance.watch.seen == [(method, 2) for method in methods]

    def test_what_runs_by_the_clock(self) -> None:
        plan = plan_of(
            spout("lines", "word"), bolt("count", "lines"), topology_tick_tuple_freq_secs=5
        )
        instance = Instance(plan, 1, ScriptedBolt).open()
        instance.watch.seen.clear()
        instance.only.context.call_soon(nothing)
        instance.core.tick(5.0)
        assert instance.watch.seen == [("call_soon", 1), ("execute (tick)", 1)]
