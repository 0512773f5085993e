"""What the benchmarks make of figures: spreads, ratios within rounds, percentiles, needs."""

from __future__ import annotations

import pytest

from benchmarks.figures import (
    confidence,
    histogram,
    percentiles,
    ratios,
    rounded,
    spread,
    warm_rate,
)
from benchmarks.processes import Life, Need, Sample, needs, role_of
from benchmarks.text import WrongCounts, check_counts, expected_counts


class TestSpread:
    def test_it_is_median_minimum_and_maximum(self) -> None:
        assert spread([3, 1, 2]) == {"median": 2, "min": 1, "max": 3}

    def test_of_an_even_number_the_median_is_between_the_middle_ones(self) -> None:
        assert spread([1, 2, 4, 8])["median"] == 3

    @pytest.mark.parametrize(
        ("figure", "shown"),
        [
            (1234567.8, 1234568),
            (1000.4, 1000),
            (999.96, 1000),
            (12.3456, 12.35),
            (0.0123456, 0.01235),
        ],
    )
    def test_four_digits_count(self, figure: float, shown: float) -> None:
        assert rounded(figure) == shown

    def test_ratios_are_taken_within_rounds(self) -> None:
        """A machine that slows down between two rounds changes no ratio."""
        assert ratios([100, 10], [50, 5]) == {"median": 2, "min": 2, "max": 2}

    def test_rounds_that_do_not_match_are_an_error(self) -> None:
        with pytest.raises(ValueError, match="shorter"):
            ratios([1, 2], [1])


class TestPercentiles:
    def test_a_histogram_has_steps_of_ten_microseconds(self) -> None:
        assert histogram([0.0, 0.000004, 0.00001, 0.001]) == {0: 2, 1: 1, 100: 1}

    def test_percentiles_are_in_milliseconds(self) -> None:
        found = {100: 980, 200: 10, 300: 9, 1000: 1}
        assert percentiles(found) == {"50": 1.0, "90": 1.0, "99": 2.0, "99.9": 3.0}

    def test_few_latencies_have_percentiles_too(self) -> None:
        assert percentiles({7: 1}) == {"50": 0.07, "90": 0.07, "99": 0.07, "99.9": 0.07}


class TestCounts:
    def test_ten_sentences_are_75_words_of_which_61_differ(self) -> None:
        counts = expected_counts(10)
        assert (counts.total(), len(counts)) == (75, 61)

    def test_a_part_of_a_round_counts(self) -> None:
        assert expected_counts(11) - expected_counts(10) == expected_counts(1)

    def test_right_counts_give_their_number(self) -> None:
        assert check_counts(expected_counts(25), 25) == expected_counts(25).total()

    @pytest.mark.parametrize("word", ["moon", "sun"])
    def test_a_word_too_many_is_an_error(self, word: str) -> None:
        counts = expected_counts(10)
        counts[word] += 1
        with pytest.raises(WrongCounts, match="counted 76 words, expected 75 in 10 sentences"):
            check_counts(counts, 10)


class TestRoles:
    @pytest.mark.parametrize(
        ("command", "role"),
        [
            (["python", "-P", "-m", "storm_py.runtime.stream_manager", "x"], "stream manager"),
            (["python", "-m", "storm_py", "local", "x.py"], "storm-py local"),
            (["/usr/lib/jvm/bin/java", "-cp", "x"], "JVM"),
            (["python", "some/where/count.py", "n=1"], "count.py"),
            (["/bin/bash", "/x/pyflink-udf-runner.sh"], "pyflink-udf-runner.sh"),
            (["/usr/bin/tee", "log"], "tee"),
            ([], "unknown"),
        ],
    )
    def test_the_command_line_names_the_role(self, command: list[str], role: str) -> None:
        assert role_of(command) == role


def life(pid: int, parent: int, *cpu: float, pss: int = 10, module: str = "x") -> Life:
    """A process that had used so many CPU seconds at 1, 2, 3 ..."""
    samples = [Sample(float(at), secs) for at, secs in enumerate(cpu, 1)]
    return Life(pid, parent, ("python", "-m", module), samples, pss)


class TestNeeds:
    def test_cpu_time_between_two_samples_is_interpolated(self) -> None:
        one = life(1, 0, 1.0, 3.0, 4.0)
        assert [one.cpu_at(at) for at in (1, 1.5, 2, 3, 9)] == [1, 2, 3, 4, 4]

    def test_before_it_was_seen_a_process_had_used_nothing(self) -> None:
        assert life(1, 0, 1.0).cpu_at(0.5) == 0

    def test_processes_of_one_role_are_added_up(self) -> None:
        lives = [life(1, 0, 1, 2), life(2, 1, 1, 4), life(3, 1, 0, 9, module="y")]
        assert needs(lives, {"count": [1, 2]}, began=1, ended=2) == {
            "y": Need(1, 9, 10),
            "count": Need(2, 4, 20),
        }

    def test_what_a_fork_server_made_is_an_instance_or_what_it_says(self) -> None:
        server = life(1, 0, 1, module="storm_py.runtime.fork_server")
        forked = [life(pid, 1, 1, module="storm_py.runtime.fork_server") for pid in (2, 3)]
        assert set(needs([server, *forked], {"split": [3]})) == {"fork server", "instance", "split"}

    def test_processes_that_were_gone_at_once_do_not_count(self) -> None:
        assert needs([life(1, 0, 1, pss=0)], {}) == {}


class TestWarmRate:
    def test_the_first_half_is_warm_up(self) -> None:
        """Slow at first: 300 words in 10 s, then 600 in 2 s."""
        marks = [(0.0, 1), (10.0, 300), (11.0, 600), (12.0, 900)]
        assert warm_rate([marks], 900) == (300, 10.0, 12.0)

    def test_tasks_are_added_up(self) -> None:
        """Together they have less than half of all words at 4, and more at 5."""
        one = [(2.0, 100), (4.0, 200), (6.0, 300)]
        other = [(3.0, 100), (5.0, 400), (7.0, 600)]
        assert warm_rate([one, other], 900) == (600 / 3, 4.0, 7.0)

    def test_a_mark_without_words_does_not_count(self) -> None:
        marks = [(0.0, 1), (10.0, 300), (12.0, 900), (99.0, 900)]
        assert warm_rate([marks], 900) == (300, 10.0, 12.0)


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(1, 1, 1), (5, 1, 5), (6, 1, 6), (10, 2, 9), (30, 10, 21)],  # as in tables of ranks
)
def test_the_confidence_range_of_a_median(count: int, low: int, high: int) -> None:
    assert confidence(list(range(count, 0, -1))) == (low, high)
