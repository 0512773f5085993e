"""Metrics of user code: what each kind says of a bucket, and how buckets reach consumers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_py import (
    Config,
    ConfigError,
    Counter,
    CountMetric,
    DataPoint,
    Histogram,
    MeanReducer,
    Metric,
    MetricsConsumer,
    MultiCountMetric,
    ReducedMetric,
    TaskInfo,
    Tuple,
)
from storm_py.core.plan import PhysicalPlan, dump_plan, load_plan, make_plan
from storm_py.engine.system import MetricsConsumerBolt, system_topology, users_part
from storm_py.engine.tasks import UserError
from storm_py.wire import frames
from storm_py.wire.control import Pressure
from tests.builders import Data, End, Rows, bolt, plan_of, rows, settings_of, spout
from tests.instance import Act, Instance, ScriptedBolt, ScriptedSpout, nothing

numbers = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-12)


class TestKinds:
    def test_count(self) -> None:
        metric = CountMetric()
        metric.incr()
        metric.incr_by(4)
        assert [metric.get_value_and_reset(), metric.get_value_and_reset()] == [5, 0]

    def test_counts_by_key(self) -> None:
        metric = MultiCountMetric()
        metric.scope("a").incr()
        metric.scope("b").incr_by(2)
        metric.scope("a").incr()
        assert metric.get_value_and_reset() == {"a": 2, "b": 2}
        assert metric.get_value_and_reset() == {"a": 0, "b": 0}

    def test_mean(self) -> None:
        metric = ReducedMetric(MeanReducer())
        assert metric.get_value_and_reset() is None
        for value in (1, 2, 6):
            metric.update(value)
        assert [metric.get_value_and_reset(), metric.get_value_and_reset()] == [3.0, None]

    def test_a_counter_goes_on(self) -> None:
        counter = Counter()
        counter.inc()
        counter.inc(5)
        counter.dec(2)
        assert [counter.get_value_and_reset(), counter.count] == [4, 4]

    def test_a_histogram_says_none_of_nothing(self) -> None:
        histogram = Histogram()
        assert (histogram.get_value_and_reset(), histogram.percentile(0.5)) == (None, 0.0)
        with pytest.raises(ValueError, match=r"got nan; expected a finite number"):
            histogram.update(math.nan)

    @given(st.lists(numbers, min_size=1, max_size=200), st.sampled_from([0.0, 0.5, 0.95, 0.99, 1]))
    def test_percentiles_are_within_a_hundredth(self, given: list[float], share: float) -> None:
        histogram = Histogram()
        for value in given:
            histogram.update(value)
        exact = sorted(given)[max(1, math.ceil(share * len(given))) - 1]
        assert math.isclose(histogram.percentile(share), exact, rel_tol=0.0101)
        found = histogram.get_value_and_reset()
        assert found is not None
        assert (found["count"], found["min"], found["max"]) == (len(given), min(given), max(given))
        assert math.isclose(found["mean"], sum(given) / len(given), rel_tol=1e-9, abs_tol=1e-3)
        assert histogram.get_value_and_reset() is None

    @pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, -1.7976931348623157e308])
    def test_the_ends_of_the_range(self, value: float) -> None:
        histogram = Histogram()
        histogram.update(value)
        assert histogram.percentile(0.5) == value

    def test_memory_does_not_grow_with_the_number_of_values(self) -> None:
        histogram = Histogram()
        for i in range(1, 20_000):
            histogram.update(i)
        assert len(histogram._classes) < 600


# ---- from a task to the consumers --------------------------------------------------------------

CONSUMER = f"{__name__}:Consumer"
STREAM = 1  # __metrics comes behind the declared one


def metered_plan(*consumers: dict[str, object], workers: int = 1, **keys: object) -> PhysicalPlan:
    """count (task 1), lines (task 2), and the consumers behind them."""
    plan = plan_of(spout("lines", "word"), bolt("count", "lines", "word"))
    conf: dict[str, Any] = {**plan.conf, **keys}
    conf[Config.TOPOLOGY_METRICS_CONSUMER_REGISTER] = list(consumers)
    topology = system_topology(plan.topology, conf)
    return make_plan(plan.topology_id, topology, conf, workers)


ONE = metered_plan({"class": CONSUMER})


class MeteredBolt(ScriptedBolt):
    """Counts its tuples in a bucket of 10 s."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        self.counted = context.register_metric("tuples", CountMetric(), 10)

    def execute(self, tup: Tuple) -> None:
        self.counted.incr()
        super().execute(tup)


def metered(plan: PhysicalPlan = ONE, on_end: Act = nothing) -> Instance:
    return Instance(plan, 1, lambda recorder: MeteredBolt(recorder, nothing, on_end)).open()


def at(instance: Instance, now: float) -> list[Rows | End]:
    """What goes out after a tick of the core at this time."""
    instance.clock.now = now
    instance.core.tick(now)
    return contents(instance.flushes())


def contents(messages: list[Any]) -> list[Rows | End]:
    return [frame for each in messages if isinstance(each, Data) for frame in each.frames]


def points(value: object, dest: int = 3, secs: float = 10) -> Rows:
    return rows(1, dest, [[6700, "count", 1, 0, secs], [["tuples", value]]], stream=STREAM)


def works(instance: Instance, seq: int, *words: str) -> None:
    instance.gets(11, seq, rows(2, 1, *[[word] for word in words]))
    instance.works()


class TestBuckets:
    def test_each_bucket_is_read_once_and_sent(self) -> None:
        instance = metered()
        works(instance, 1, "a", "b")
        assert at(instance, 9.9) == []
        assert instance.due == 10.0
        assert at(instance, 10.0) == [points(2)]
        works(instance, 2, "c")
        assert at(instance, 20.0) == [points(1)]

    def test_data_points_are_not_counted_as_emitted(self) -> None:
        instance = metered()
        at(instance, 10.0)
        assert instance.core.statistics().emitted == 0

    def test_every_length_has_its_own_bucket(self) -> None:
        class Two(MeteredBolt):
            def prepare(self, conf: Any, context: Any, collector: Any) -> None:
                super().prepare(conf, context, collector)
                context.register_gauge("seven", lambda: 7)

        instance = Instance(ONE, 1, Two).open()
        assert at(instance, 10.0) == [points(0)]
        at(instance, 59.0)
        seven = rows(1, 3, [[6700, "count", 1, 0, 60], [["seven", 7]]], stream=STREAM)
        assert at(instance, 60.0) == [seven]

    def test_none_is_no_value(self) -> None:
        class Silent(ScriptedBolt):
            def prepare(self, conf: Any, context: Any, collector: Any) -> None:
                super().prepare(conf, context, collector)
                context.register_histogram("sizes")

        assert at(Instance(ONE, 1, Silent).open(), 60.0) == []

    def test_tasks_of_a_consumer_take_turns_and_every_consumer_hears(self) -> None:
        plan = metered_plan(
            {"class": CONSUMER, "parallelism.hint": 2}, {"class": CONSUMER, "argument": "b"}
        )
        assert list(plan.topology.components)[2:] == [
            "__metrics_tests.unit.test_metrics.Consumer",
            "__metrics_tests.unit.test_metrics.Consumer#2",
        ]
        instance = metered(plan)
        assert at(instance, 10.0) == [points(0, dest=3), points(0, dest=5)]
        assert at(instance, 20.0) == [points(0, dest=4), points(0, dest=5)]

    def test_without_a_consumer_nothing_is_read(self) -> None:
        plan = plan_of(spout("lines", "word"), bolt("count", "lines", "word"))
        instance = metered(plan)
        works(instance, 1, "a")
        assert (at(instance, 100.0), instance.due) == ([], None)
        assert instance.only.counted.get_value_and_reset() == 1

    def test_a_consumer_that_cannot_follow_makes_buckets_longer_and_stops_nobody(self) -> None:
        instance = metered()
        instance.hears(11, Pressure(3, True, 64))
        works(instance, 1, "a", "b")
        assert len(instance.done()) == 2
        assert (at(instance, 25.0), instance.due) == ([], None)
        instance.hears(11, Pressure(3, False, 64))
        assert at(instance, 26.0) == [points(2)]

    def test_the_last_bucket_goes_ahead_of_the_end(self) -> None:
        instance = metered(on_end=lambda component: component.counted.incr_by(10))
        instance.gets(11, 1, rows(2, 1, ["a"]), End(2, 1, 1))
        assert contents(instance.works()) == [points(11), End(1, 3, 1)]
        assert instance.due is None

    def test_the_last_bucket_of_a_spout(self) -> None:
        def opened(component: Any) -> None:
            component.counter = component.context.register_counter("calls")

        def act(component: Any) -> None:
            component.counter.inc()
            component.collector.end_of_input()

        instance = Instance(ONE, 2, lambda log: ScriptedSpout(log, act, opened)).open()
        row = [[6700, "lines", 2, 0, 60], [["calls", 1]]]
        sent = contents(instance.spins())
        assert rows(2, 3, row, stream=STREAM) in sent
        assert sent[-2:] == [End(2, 1, 1), End(2, 3, 1)]


class TestMistakes:
    def registering(self, call: Act) -> str:
        [task] = Instance(ONE, 1, ScriptedBolt).core.tasks
        with pytest.raises((TypeError, ValueError)) as raised:
            call(task.context)
        return str(raised.value)

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (("", CountMetric(), 1), " got the name ''; expected a str that is not empty"),
            (("n", 3, 1), ": 'n' is an int; expected a Metric, which has get_value_and_reset()"),
            (("n", CountMetric(), 0), ": 'n' has a bucket of 0 s; expected a number above 0"),
            (("n", CountMetric(), "1"), ": 'n' has a bucket of '1' s; expected a number above 0"),
        ],
    )
    def test_what_cannot_be_registered(self, args: tuple[Any, ...], message: str) -> None:
        found = self.registering(lambda context: context.register_metric(*args))
        assert found == f"register_metric of 'count'{message}"

    def test_a_name_twice(self) -> None:
        def twice(context: Any) -> None:
            context.register_counter("n")
            context.register_gauge("n", lambda: 1)

        assert "there is a metric 'n' already" in self.registering(twice)

    def test_too_late(self) -> None:
        context = metered().only.context
        with pytest.raises(RuntimeError, match=r"'count' registers metric 'n' too late: metrics a"):
            context.register_counter("n")

    @pytest.mark.parametrize(
        ("value", "where", "message"),
        [
            (lambda: [][0], "metric 'gauge'", "IndexError: list index out of range"),
            (object, "metrics", "ValueError: the values of gauge cannot be serialised"),
            (lambda: "x" * 9_000_000, "metrics", "ValueError: the values of gauge are 9000"),
        ],
    )
    def test_a_metric_that_cannot_be_read(self, value: Act, where: str, message: str) -> None:
        class Gauging(ScriptedBolt):
            def prepare(self, conf: Any, context: Any, collector: Any) -> None:
                context.register_gauge("gauge", value)

        instance = Instance(ONE, 1, Gauging).open()
        with pytest.raises(UserError) as raised:
            at(instance, 60.0)
        assert str(raised.value).startswith(f"count (task 1), {where}: {message}")

    def test_a_value_may_be_whatever_can_be_emitted(self) -> None:
        class Gauging(ScriptedBolt):
            def prepare(self, conf: Any, context: Any, collector: Any) -> None:
                context.register_gauge("gauge", lambda: Fraction(1, 3))

        plan = metered_plan({"class": CONSUMER}, **{Config.STORM_PY_FALL_BACK_ON_PICKLE: True})
        instance = Instance(plan, 1, Gauging).open()
        instance.clock.now = 60.0
        instance.core.tick(60.0)
        instance.core.flush()
        found = [
            settings_of(plan).codec.unpack_rows(frames.decode_data(message, frame)[1])
            for data, message in instance.port.sent
            if data
            for frame in frames.frames(message)
        ]
        assert found == [[[[6700, "count", 1, 0, 60], [["gauge", Fraction(1, 3)]]]]]

    def test_what_the_base_class_leaves_open(self) -> None:
        with pytest.raises(NotImplementedError, match="Metric does not define get_value_and_reset"):
            Metric().get_value_and_reset()


class TestSystemTopology:
    def test_users_see_what_they_built(self) -> None:
        instance = metered()
        context = instance.only.context
        assert context.component_ids == ("lines", "count")
        assert context.this_streams == ("default",)
        assert context.targets("count") == {}

    def test_users_cannot_emit_on_the_systems_stream(self) -> None:
        instance = metered()
        with pytest.raises(Exception, match=r"emits on stream '__metrics', which it has not decl"):
            instance.only.collector.emit([1, 2], stream="__metrics")

    def test_it_is_added_once_and_survives_a_file(self) -> None:
        assert system_topology(ONE.topology, ONE.conf) is ONE.topology
        assert load_plan(dump_plan(ONE)).targets("count") == ONE.targets("count")
        assert set(users_part(ONE.topology).components) == {"lines", "count"}

    def test_the_systems_tasks_come_last(self) -> None:
        assert ONE.tasks_of("__metrics_tests.unit.test_metrics.Consumer") == (3,)

    def test_a_consumer_hears_the_points_as_objects(self) -> None:
        def made(recorder: Any) -> MetricsConsumerBolt:
            return MetricsConsumerBolt(CONSUMER, {"to": "here"})

        Consumer.heard.clear()
        instance = Instance(ONE, 3, made).open()
        instance.gets(11, 1, points({"a": 1}))
        instance.works()
        instance.core.close()
        assert Consumer.heard == [
            ("prepare", {"to": "here"}),
            ("count", 1, 10, "tuples", {"a": 1}),
            ("cleanup",),
        ]

    def test_a_consumer_that_is_none(self) -> None:
        instance = Instance(
            ONE, 3, lambda recorder: MetricsConsumerBolt(f"{__name__}:MeteredBolt", None)
        )
        with pytest.raises(UserError, match=r"the class MeteredBolt; expected a MetricsConsumer"):
            instance.core.open()


class Consumer(MetricsConsumer):
    heard: list[tuple[object, ...]] = []  # noqa: RUF012 - read by the test above

    def prepare(self, conf: Any, registration_argument: Any, context: Any) -> None:
        self.heard.append(("prepare", registration_argument))

    def handle_data_points(self, task_info: TaskInfo, data_points: Sequence[DataPoint]) -> None:
        for point in data_points:
            self.heard.append(
                (
                    task_info.src_component_id,
                    task_info.src_task_id,
                    task_info.update_interval_secs,
                    point.name,
                    point.value,
                )
            )

    def cleanup(self) -> None:
        self.heard.append(("cleanup",))


def test_registering_a_consumer() -> None:
    conf = Config()
    conf.register_metrics_consumer(Consumer, {"a": 1}, 2)
    conf.register_metrics_consumer("package.module:Other")
    assert conf[Config.TOPOLOGY_METRICS_CONSUMER_REGISTER] == [
        {"class": CONSUMER, "argument": {"a": 1}, "parallelism.hint": 2},
        {"class": "package.module:Other", "argument": None, "parallelism.hint": 1},
    ]


def test_a_consumer_that_no_other_process_finds_is_refused() -> None:
    class Local(MetricsConsumer):
        pass

    with pytest.raises(ConfigError, match=r"^register_metrics_consumer: .*Local is defined inside"):
        Config().register_metrics_consumer(Local)
