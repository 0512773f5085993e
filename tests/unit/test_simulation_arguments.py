"""Arguments of a simulation that cannot be are refused, with words that help."""

from __future__ import annotations

from typing import Any

import pytest

from storm_py import TopologyBuilder
from storm_py.errors import ConfigError
from storm_py.testing import Faults, Simulation
from tests.unit.test_simulation import counted

FAULTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"count": -1},
        ValueError,
        "count of Faults is -1; expected at least 0, 0 for a calm run",
    ),
    (
        {"count": 2.5},
        TypeError,
        "count of Faults is 2.5, a float; expected an int of at least 0, 0 for a calm run",
    ),
    (
        {"gap_steps": 0},
        ValueError,
        "gap_steps of Faults is 0; expected at least 1, the steps from fault to fault",
    ),
    (
        {"stray_odds": 30},
        ValueError,
        "stray_odds of Faults is 30; expected a number from 0 to 1, a probability",
    ),
    (
        {"stray_odds": None},
        TypeError,
        "stray_odds of Faults is None; expected a number from 0 to 1, a probability",
    ),
    (
        {"kinds": "delay"},
        TypeError,
        "kinds of Faults is 'delay', a str; expected a tuple of some of: kill instance, ",
    ),
    (
        {"kinds": ("dely",)},
        ValueError,
        "'dely' is no fault; there are: kill instance, ",
    ),
    (
        {"count": 3, "kinds": ()},
        ValueError,
        "3 faults of no kind; name some, or count=0 for none",
    ),
]


@pytest.mark.parametrize(("given", "kind", "words"), FAULTS)
def test_faults_that_cannot_be_are_refused(
    given: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        Faults(**given)
    assert str(caught.value).startswith(words)


def test_a_misspelt_fault_is_recognised() -> None:
    with pytest.raises(ValueError, match="; did you mean 'delay'"):
        Faults(kinds=("dely",))


def test_kinds_of_faults_may_come_in_any_collection() -> None:
    assert Faults(kinds=["delay", "stop"]).kinds == ("delay", "stop")  # type: ignore[arg-type]


ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    (
        {"seed": "7"},
        TypeError,
        "seed is '7', a str; expected an int of at least 0, each of which is a run of its own",
    ),
    (
        {"seed": -7},
        ValueError,
        "seed is -7; expected at least 0, each of which is a run of its own",
    ),
    (
        {"workers": 0},
        ValueError,
        "workers is 0; expected at least 1, or leave it out for 2",
    ),
    (
        {"workers": True},
        TypeError,
        "workers is True, a bool; expected an int of at least 1, or leave it out for 2",
    ),
    (
        {"faults": 10},
        TypeError,
        "faults is 10, an int; expected Faults(...), as in Faults(count=0) for a calm run, or None "
        "to let the seed say it",
    ),
    (
        {"faults": Faults},
        TypeError,
        "faults is the class Faults; expected Faults(...), as in Faults(count=0) for a calm run, "
        "or None to let the seed say it",
    ),
    (
        {"drain_after": -1},
        ValueError,
        "drain_after is -1; expected a number of at least 0, in seconds",
    ),
    (
        {"drain_after": "soon"},
        TypeError,
        "drain_after is 'soon', a str; expected a number of at least 0, in seconds",
    ),
    (
        {"row_secs": 0.5},
        TypeError,
        "row_secs is 0.5, a float; expected a dict, component to seconds",
    ),
    (
        {"row_secs": {"colect": 0.5}},
        ValueError,
        "row_secs names 'colect', which is no component; there are: numbers, collect; did you mean "
        "'collect'?",
    ),
    (
        {"row_secs": {"collect": float("nan")}},
        ValueError,
        "row_secs of 'collect' is nan; expected a number of at least 0, the seconds that a row "
        "takes",
    ),
    (
        {"conf": ["topology.debug"]},
        TypeError,
        "conf is ['topology.debug'], a list; expected a dict, configuration key to value",
    ),
    (
        {"expected_errors": "KeyError"},
        TypeError,
        "expected_errors holds 'KeyError', a str; expected classes of exceptions that user code "
        "may raise, as in (ValueError, KeyError)",
    ),
    (
        {"expected_errors": (KeyError, KeyError("x"))},
        TypeError,
        "expected_errors holds KeyError('x'), a KeyError; expected classes of exceptions that user "
        "code may raise, as in (ValueError, KeyError)",
    ),
]


@pytest.mark.parametrize(("given", "kind", "words"), ARGUMENTS)
def test_arguments_that_cannot_be_are_refused(
    given: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        Simulation(**{"seed": 1, "topology": counted(), **given})
    assert str(caught.value) == words


def test_what_is_no_topology_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got a tuple as topology; expected a TopologyBuilder or"):
        Simulation(1, (TopologyBuilder(), {}))  # type: ignore[arg-type]


def test_a_configuration_that_cannot_be_is_refused_as_anywhere() -> None:
    with pytest.raises(ConfigError):
        Simulation(1, counted(), conf={"topology.max.spout.pending": "many"})
