"""What users get wrong about ticks, hooks, metrics and threads, and what they are told."""

from __future__ import annotations

import json

import pytest

from tests.mistakes import BASE, FILE, Mistake, check_mistake, emitting

pytestmark = pytest.mark.usefixtures("own_folder")


def opening(*lines: str) -> str:
    """A topology file whose spout does this in `open`."""
    return emitting("self.collector.end_of_input()", "").replace(
        "class Guilty(Numbers):",
        "\n".join(
            [
                "class Guilty(Numbers):",
                "    def open(self, conf, context, collector):",
                "        super().open(conf, context, collector)",
                "        self.context = context",
                *(f"        {line}" for line in lines),
                "",
            ]
        ),
    )


CONSUMERS = "topology.metrics.consumer.register"
HOOKS = "topology.auto.task.hooks"


def with_conf(key: str, value: object) -> tuple[str, ...]:
    return (FILE, "--inline", "-c", f"{key}={json.dumps(value)}")


def consumer(path: str, **other: object) -> tuple[str, ...]:
    return with_conf(CONSUMERS, [{"class": path, **other}])


CONSUMING = (
    "class Deaf(MetricsConsumer):\n"
    "    def handle_data_points(self, info, points):\n"
    "        raise OSError('nobody listens')\n\n"
)

MISTAKES = [
    # configuration
    Mistake(
        "ticks without pause",
        ("topology.tick.tuple.freq.secs is 0 (int)", "expected a number of at least 0.001"),
        args=with_conf("topology.tick.tuple.freq.secs", 0),
    ),
    Mistake(
        "a hook that is not in a list",
        (f"{HOOKS} is 'flow:Hook' (str)", "expected a list of names, each package.module:Class"),
        args=with_conf(HOOKS, "flow:Hook"),
    ),
    Mistake(
        "misspelt hook",
        (f"{HOOKS} names 'flow:Eco', but the module flow has no Eco", "did you mean 'Echo'?"),
        args=with_conf(HOOKS, ["flow:Eco"]),
    ),
    Mistake(
        "a hook without a colon",
        (f"{HOOKS} is ['flow.Echo'] (list)", "'flow.Echo' has no colon: did you mean 'flow:Echo'?"),
        args=with_conf(HOOKS, ["flow.Echo"]),
    ),
    Mistake(
        "a hook that is no name",
        (f"{HOOKS} is ['flow:Echo', 3] (list)", "3 is an int"),
        args=with_conf(HOOKS, ["flow:Echo", 3]),
    ),
    Mistake(
        "a hook that is a bolt",
        (f"{HOOKS} names 'flow:Echo', the class Echo; expected a BaseTaskHook",),
        args=with_conf(HOOKS, ["flow:Echo"]),
    ),
    Mistake(
        "consumer in no module",
        (f"{CONSUMERS} names 'flows:Deaf', but the module flows cannot be imported (Modul",),
        args=consumer("flows:Deaf"),
    ),
    Mistake(
        "consumer with an unknown setting",
        (
            f"{CONSUMERS} is [",
            'expected a list of {"class": "package.module:Class"',
            "; it has a 'paralelism.hint', did you mean 'parallelism.hint'?",
        ),
        args=consumer("flow:Deaf", **{"paralelism.hint": 2}),
    ),
    Mistake(
        "consumer with a setting of nobody's",
        ("; it has a 'x', which is no setting of a consumer",),
        args=consumer("flow:Deaf", x=2),
    ),
    Mistake(
        "consumer without a class",
        ("; {'argument': 3} has no 'class'",),
        args=with_conf(CONSUMERS, [{"argument": 3}]),
    ),
    Mistake(
        "consumer without a colon",
        ("; 'flow.Deaf' has no colon: did you mean 'flow:Deaf'?",),
        args=consumer("flow.Deaf"),
    ),
    Mistake(
        "consumer with half a task",
        ("; its 'parallelism.hint' is 0.5",),
        args=consumer("flow:Deaf", **{"parallelism.hint": 0.5}),
    ),
    Mistake(
        "consumer that is not in a list",
        (f"{CONSUMERS} is {{'class'", "; put it into a list"),
        args=with_conf(CONSUMERS, {"class": "flow:Deaf"}),
    ),
    Mistake(
        "consumer that is a bolt",
        (f"{CONSUMERS} names 'flow:Echo', the class Echo; expected a MetricsConsumer",),
        args=consumer("flow:Echo"),
    ),
    # hooks
    Mistake(
        "hook that raises",
        ("ERROR numbers (task 2), hook Bad.emit: ValueError: no", "raise ValueError('no')"),
        text=opening("context.add_task_hook(Bad())", "collector.emit([1, 'odd'])")
        + "\nclass Bad(BaseTaskHook):\n    def emit(self, info):\n        raise ValueError('no')\n",
        code=1,
        traceback=True,
    ),
    Mistake(
        "hook class instead of an object",
        (
            "ERROR numbers (task 2), open: TypeError",
            "add_task_hook got the class BaseTaskHook",
        ),
        text=opening("context.add_task_hook(BaseTaskHook)"),
        code=1,
        traceback=True,
    ),
    # metrics
    Mistake(
        "metric with a name that is taken",
        ("ERROR numbers (task 2), open: ValueError", "there is a metric 'n' already"),
        text=opening("context.register_counter('n')", "context.register_histogram('n')"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "metric that is a number",
        ("'n' is an int; expected a Metric, which has get_value_and_reset()",),
        text=opening("context.register_metric('n', 3, 60)"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "metric without time",
        ("'n' has a bucket of -1 s; expected a number above 0",),
        text=opening("context.register_metric('n', CountMetric(), -1)"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "metric registered too late",
        ("ERROR numbers (task 2), next_tuple: RuntimeError", "are registered in open or prepare"),
        text=opening("").replace(
            "self.collector.end_of_input()", "self.context.register_counter('n')"
        ),
        code=1,
        traceback=True,
    ),
    Mistake(
        "gauge that raises",
        ("ERROR numbers (task 2), metric 'ratio': ZeroDivisionError: division by zero", "1 / 0"),
        text=opening("context.register_gauge('ratio', lambda: 1 / 0)"),
        args=consumer("storm_py:LoggingMetricsConsumer"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "consumer that raises",
        ("ERROR __metrics_flow.Deaf (task 3), execute: OSError: nobody listens",),
        text=opening("context.register_gauge('one', lambda: 1)").replace(BASE, BASE + CONSUMING),
        args=consumer("flow:Deaf"),
        code=1,
        traceback=True,
    ),
    # threads
    Mistake(
        "call_soon of a result",
        ("ERROR numbers (task 2), open: TypeError", "call_soon got None; expected a function"),
        text=opening("context.call_soon(collector.report_error(ValueError('first')))"),
        code=1,
        traceback=True,
    ),
    Mistake(
        "call_soon of something that raises",
        ("ERROR numbers (task 2), call_soon: ZeroDivisionError", "1 / 0"),
        text=opening("context.call_soon(lambda: 1 / 0)"),
        code=1,
        traceback=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.id)
def test_mistake_gets_a_clear_message(mistake: Mistake) -> None:
    check_mistake(mistake)
