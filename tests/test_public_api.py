"""The names of `storm_py`: complete, each once, and cheap to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import storm_py

HEAVY = ["kazoo", "pyspark", "thriftpy2", "zmq"]
"""Packages that writing a topology does not need, so that importing storm_py must not load them."""


def test_import_loads_nothing_heavy() -> None:
    code = f"import sys, storm_py; print([name for name in {HEAVY} if name in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (process.stdout, process.stderr) == ("[]\n", "")


def test_numpy_is_loaded_by_those_only_who_use_it() -> None:
    code = "import sys, storm_py.inline; print('numpy' in sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (process.stdout, process.stderr) == ("False\n", "")


def test_tools_for_tests_are_loaded_on_request_and_load_no_sockets() -> None:
    code = (
        "import sys, storm_py; print('storm_py.testing' in sys.modules); import storm_py.testing; "
        f"print([name for name in {[*HEAVY, 'pytest', 'click']} if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (process.stdout, process.stderr) == ("False\n[]\n", "")


def test_each_public_name_is_listed_once() -> None:
    assert len(storm_py.__all__) == len(set(storm_py.__all__))


@pytest.mark.parametrize("name", sorted(set(storm_py.__all__)))
def test_public_name_resolves(name: str) -> None:
    assert getattr(storm_py, name) is not None


def test_no_public_name_is_unlisted() -> None:
    """A class or function in the namespace that `__all__` forgot would be public by accident."""
    unlisted = {
        name
        for name, value in vars(storm_py).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "").startswith("storm_py.")
        and name not in storm_py.__all__
    }
    assert unlisted == set()
