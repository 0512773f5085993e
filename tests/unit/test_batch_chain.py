"""Batch bolts inside of one instance: they hand rows over, and are handed some, in batches."""

from __future__ import annotations

from typing import Any

import pytest

from storm_py import Batch
from storm_py.core.plan import PhysicalPlan
from storm_py.engine.tasks import UserError
from tests.builders import LOCAL, Data, FakeClock, bolt, plan_of, rows, spout
from tests.instance import Instance
from tests.unit.test_batch_bolts import Act, Scripted


def plan(*more: Any, tasks: int = 1, **conf: Any) -> PhysicalPlan:
    """x and y in one instance, behind a spout."""
    return plan_of(
        spout("a", "n"),
        bolt("x", "a", "n", tasks=tasks, executors=1),
        bolt("y", {"x": LOCAL}, "n", tasks=tasks, executors=1),
        *more,
        fuse=True,
        **conf,
    )


def go_on(bolt: Scripted, rows: list[list[Any]], batch: Batch) -> None:
    bolt.collector.emit_batch(rows, range(len(rows)))


def emits(*values: Any) -> Act:
    return lambda bolt, rows, batch: bolt.collector.emit_batch([[value] for value in values])


class Chained:
    """x does `act`, y and z do `then`; x is given one row from outside."""

    def __init__(
        self,
        plan: PhysicalPlan,
        act: Act,
        then: Act = lambda *_: None,
        clock: FakeClock | None = None,
    ) -> None:
        executor = plan.executor_of(plan.tasks_of("x")[0])
        self.instance = Instance(
            plan,
            executor.instance,
            {
                "x": lambda recorder: Scripted(act),
                "y": lambda recorder: Scripted(then),
                "z": lambda recorder: Scripted(then),
            },
            clock,
        ).open()
        self.plan = plan

    def works(self) -> list[Any]:
        """A row comes in, and all that comes of it is done; what is sent."""
        (task, *_), (source,) = self.plan.tasks_of("x"), self.plan.tasks_of("a")
        self.instance.gets(11, 1, rows(source, task, ["in"]))
        return [*self.instance.works(), *self.instance.flushes()]

    def seen(self, component: str) -> list[list[list[list[Any]]]]:
        """The batches that each task of a component was given."""
        return [self.instance.components[task].seen for task in self.plan.tasks_of(component)]  # type: ignore[attr-defined]


class TestHandingOver:
    def test_rows_of_one_call_are_executed_in_one_call_and_not_sent(self) -> None:
        chained = Chained(plan(), emits(1, 2, 3))
        sent = chained.works()
        assert chained.seen("y") == [[[[1], [2], [3]]]]
        assert [data for data in sent if isinstance(data, Data)] == []

    def test_whoever_is_at_the_end_sends(self) -> None:
        chained = Chained(plan(bolt("~", "y")), emits(1, 2), go_on)
        sent = [data for data in chained.works() if isinstance(data, Data)]
        (last,), (elsewhere,) = chained.plan.tasks_of("y"), chained.plan.tasks_of("~")
        assert [data.frames for data in sent] == [[rows(last, elsewhere, [1], [2])]]

    def test_one_row_at_a_time(self) -> None:
        def act(bolt: Scripted, rows: object, batch: Batch) -> None:
            assert bolt.collector.emit([1], 0) == tuple(chained.plan.tasks_of("y"))
            bolt.collector.emit([2])

        chained = Chained(plan(), act)
        chained.works()
        assert chained.seen("y") == [[[[1], [2]]]]

    @pytest.mark.parametrize("row", [[1], (1,)])
    def test_lists_that_are_used_again_change_nothing(self, row: Any) -> None:
        def act(bolt: Scripted, rows: object, batch: Batch) -> None:
            given = [row, row]
            bolt.collector.emit_batch(given)
            given.clear()
            if isinstance(row, list):
                row[0] = 5

        chained = Chained(plan(), act)
        chained.works()
        assert chained.seen("y") == [[[[1], [1]]]]

    def test_each_of_two_bolts_gets_lists_of_its_own(self) -> None:
        def change(bolt: Scripted, rows: list[list[Any]], batch: Batch) -> None:
            for row in rows:
                row.append("mine")

        chained = Chained(plan(bolt("z", {"x": LOCAL})), emits(1), change)
        chained.works()
        assert chained.seen("y") == chained.seen("z") == [[[[1, "mine"]]]]

    def test_what_the_values_hold_is_shared(self) -> None:
        thing = object()
        chained = Chained(plan(), emits(thing))
        chained.works()
        assert chained.seen("y") == [[[[thing]]]]

    def test_a_bolt_elsewhere_gets_the_rows_packed(self) -> None:
        chained = Chained(plan(bolt("~", "x")), emits(1, 2))
        sent = [data for data in chained.works() if isinstance(data, Data)]
        (elsewhere,) = chained.plan.tasks_of("~")
        (x,) = chained.plan.tasks_of("x")
        assert [data.frames for data in sent] == [[rows(x, elsewhere, [1], [2])]]
        assert chained.seen("y") == [[[[1], [2]]]]

    def test_what_cannot_travel_is_handed_to_nobody_if_somebody_is_elsewhere(self) -> None:
        chained = Chained(plan(bolt("~", "x")), emits(1, object()))
        with pytest.raises(UserError, match=r"row 1 of the batch: .* field 'n': value\[0\]"):
            chained.works()
        assert chained.instance.core.statistics("y").queued == 0

    @pytest.mark.parametrize("row", [[1, 2], 5])
    def test_a_row_of_another_width_is_refused(self, row: Any) -> None:
        chained = Chained(plan(), lambda bolt, *_: bolt.collector.emit_batch([[1], row]))
        with pytest.raises(UserError, match=r"row 1 of the batch: .*expected (a list of )?1"):
            chained.works()
        assert chained.instance.core.statistics("y").queued == 0

    def test_every_row_is_packed_if_that_is_asked_for(self) -> None:
        value = {"a": [1]}
        packing = plan(topology_testing_always_try_serialize=True)
        chained = Chained(packing, emits(value))
        chained.works()
        assert chained.seen("y") == [[[[value]]]]
        assert chained.seen("y")[0][0][0][0] is not value
        chained = Chained(packing, emits(object()))
        with pytest.raises(UserError, match=r"row 0 of the batch: .* field 'n': value\[0\]"):
            chained.works()

    def test_rows_go_to_the_tasks_of_the_executor_in_turn(self) -> None:
        found: list[list[tuple[int, ...]]] = []

        def act(bolt: Scripted, rows: object, batch: Batch) -> None:
            found.append(list(bolt.collector.emit_batch([[1], [2], [3]])))

        chained = Chained(plan(tasks=2), act)
        chained.works()
        first, second = chained.plan.tasks_of("y")
        seen = dict(zip((first, second), chained.seen("y"), strict=True))
        (answer,) = found
        assert answer in ([(first,), (second,), (first,)], [(second,), (first,), (second,)])
        for task in (first, second):
            assert seen[task] == [[[n] for n, to in enumerate(answer, 1) if to == (task,)]]

    def test_streams_keep_their_names_and_order(self) -> None:
        def act(bolt: Scripted, rows: object, batch: Batch) -> None:
            bolt.collector.emit_batch([[1], [2]])
            bolt.collector.emit_batch([[3]], stream="side")
            bolt.collector.emit_batch([[4]])

        found: list[tuple[str, list[list[Any]]]] = []
        chained = Chained(
            plan_of(
                spout("a", "n"),
                bolt("x", "a", "n; side: m"),
                bolt("y", {"x": LOCAL, "x:side": LOCAL}),
                fuse=True,
            ),
            act,
            lambda bolt, rows, batch: found.append((batch.source_stream_id, rows)),
        )
        chained.works()
        assert found == [("default", [[1], [2]]), ("side", [[3]]), ("default", [[4]])]


class TestSizes:
    def test_a_batch_has_at_most_as_many_rows_as_a_frame(self) -> None:
        chained = Chained(plan(batch_rows=100), emits(*range(250)))
        chained.works()
        assert [[len(batch) for batch in seen] for seen in chained.seen("y")] == [[100, 100, 50]]

    def test_however_long_the_last_one_took(self) -> None:
        clock = FakeClock()

        def slow(bolt: Scripted, rows: object, batch: Batch) -> None:
            clock.now += 5

        chained = Chained(plan(batch_rows=100), emits(*range(250)), slow, clock)
        chained.works()
        while chained.instance.core.has_work:
            chained.instance.works()
        assert [[len(batch) for batch in seen] for seen in chained.seen("y")] == [[100, 100, 50]]
