"""The words that every contender counts: ten fixed sentences, and what the counts must be.

Nothing but the standard library, since the programs of the peers import it as well, each in an
environment that holds that peer and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

SENTENCES = [
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago our fathers",
    "snow white and the seven dwarfs slept",
    "i am at two with nature today",
    "the quick brown fox jumps over the lazy dog",
    "to be or not to be that is",
    "all that glitters is not gold",
    "a stitch in time saves nine they say",
    "never put off till tomorrow what you can",
]


class WrongCounts(Exception):
    """Raised when words were lost, doubled or made up."""


def expected_counts(sentences: int) -> Counter[str]:
    """The counts after this many sentences, round and round."""
    whole, rest = divmod(sentences, len(SENTENCES))
    counts: Counter[str] = Counter()
    for i, sentence in enumerate(SENTENCES):
        for word in sentence.split():
            counts[word] += whole + (i < rest)
    return +counts


def check_counts(counts: Mapping[str, int], sentences: int) -> int:
    """The number of words, if each was counted as often as it was said."""
    expected = expected_counts(sentences)
    if dict(counts) != dict(expected):
        raise WrongCounts(
            f"counted {sum(counts.values()):,} words, expected {expected.total():,} "
            f"in {sentences:,} sentences"
        )
    return expected.total()
