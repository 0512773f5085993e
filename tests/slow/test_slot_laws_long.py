"""The laws of a slot, for long enough to find what few examples do not."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.test_slot_laws import AnySlot


@pytest.mark.slow
def test_a_slot_keeps_its_laws_for_long() -> None:
    run_state_machine_as_test(
        AnySlot, settings=settings(max_examples=4000, stateful_step_count=60, deadline=None)
    )
