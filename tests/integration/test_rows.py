"""Rows over real sockets: large ones arrive intact, too large ones are refused where they arise."""

from __future__ import annotations

from typing import Any

import pytest

from storm_py import Config
from tests.integration.harness import Outcome, reports_in, run_inline, run_local
from tests.integration.topologies_for_tests.rows import VALUES, every_type, large, too_large
from tests.value_types import Cash

pytestmark = pytest.mark.variants

KIB = 1024
MIB = 1024 * KIB


@pytest.mark.parametrize("workers", [1, 2])
def test_large_rows_arrive_intact(workers: int) -> None:
    sizes = [MIB, 0, 64 * KIB, 1, 3 * MIB, MIB - 1, 255, 256, 64 * KIB - 1, 8 * MIB - 200] * 3
    outcome = run_local(large(sizes), workers)
    outcome.check_clean()
    [report] = outcome.reports("sizes")
    assert sorted(report["sizes"]) == sorted(2 * sizes)


def test_many_rows_of_a_mebibyte() -> None:
    outcome = run_local(large([MIB] * 60), workers=2)
    outcome.check_clean()
    [report] = outcome.reports("sizes")
    assert report["sizes"] == [MIB] * 120


def test_a_row_over_the_limit_is_an_error_at_emit() -> None:
    limit = 100 * KIB
    outcome = run_local(too_large(limit, heed=True), conf={"storm_py.frame.max.bytes": limit})
    outcome.check_clean()
    [refused] = outcome.reports("refused")
    assert "component 'source', stream 'big ones'" in refused["text"]
    size = limit + 6  # what the text itself takes, its length, and the row of one value
    assert f"a tuple of {size} bytes is above the limit of {limit}" in refused["text"]
    assert "storm_py.frame.max.bytes" in refused["text"]
    [report] = outcome.reports("lengths")
    assert report["lengths"] == [10, 20]


def test_a_row_just_under_the_limit_passes() -> None:
    limit = 100 * KIB
    outcome = run_local(too_large(limit - 6, heed=True), conf={"storm_py.frame.max.bytes": limit})
    outcome.check_clean()
    [report] = outcome.reports("lengths")
    assert report["lengths"] == [10, limit - 6, 20]


def test_an_error_at_emit_that_nobody_heeds_ends_the_instance() -> None:
    """The spout comes back and fails again and again; whoever watches is told, and can stop it."""
    limit = 100 * KIB
    outcome = run_local(
        too_large(limit, heed=False), conf={"storm_py.frame.max.bytes": limit}, ttl_secs=0.5
    )
    assert outcome.result.failed
    assert not outcome.result.forced
    assert len(outcome.seen.errors) > 1
    for error in outcome.seen.errors:
        assert (error.component, error.where) == ("source", "next_tuple")
        assert error.message.startswith("EmitError: component 'source', stream 'big ones'")
        assert "self.collector.emit(" in error.traceback


def everything() -> Config:
    """A class with a serializer, and the rest pickled."""
    conf = Config({Config.STORM_PY_FALL_BACK_ON_PICKLE: True})
    conf.register_serialization(Cash, Cash.to_bytes, Cash.from_bytes)
    return conf


def check_every_type(outcome: Outcome, reports: list[dict[str, Any]]) -> None:
    outcome.check_clean()
    reports = sorted(reports, key=lambda report: int(report["index"]))
    assert [report["index"] for report in reports] == list(range(len(VALUES)))
    assert [report["shown"] for report in reports if not report["same"]] == []


def test_values_of_every_type() -> None:
    outcome = run_local(every_type(), workers=2, conf=everything())
    check_every_type(outcome, outcome.reports("value"))


def test_values_of_every_type_in_one_thread(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run_inline(every_type(), everything())
    check_every_type(outcome, reports_in(iter(capsys.readouterr().out.splitlines()), "value"))
