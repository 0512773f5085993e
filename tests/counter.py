"""The bolt that the tests of the instance core are about: x-count, between words and y-show."""

from __future__ import annotations

from typing import Any

from storm_py import Tuple
from storm_py.wire.control import Control
from tests.builders import FakeClock, Rows, Said, bolt, by, plan_of, rows, spout
from tests.instance import Act, Instance, ScriptedBolt, nothing

#: words is task 1 (i1) and 2 (i2), x-count task 3 (i3), y-show tasks 4 and 5 (i4 and i5)
PLAN = plan_of(
    spout("words", "word; side: a b", tasks=2),
    bolt("x-count", {"words": by("word"), "words:side": by("a")}, "word n"),
    bolt("y-show", "x-count", tasks=2),
)
#: the same with both tasks of x-count (3 and 4) in executor 3
PAIR = plan_of(
    spout("words", "word", tasks=2),
    bolt("x-count", {"words": by("word")}, "word n", tasks=2, executors=1),
    bolt("y-show", "x-count"),
)


def emit(bolt: Any, tup: Tuple) -> None:
    bolt.collector.emit([tup[0], 1], anchors=tup)


def counter(
    act: Act = nothing, on_end: Act = nothing, clock: FakeClock | None = None, plan: Any = PLAN
) -> Instance:
    """The executor of x-count, open and linked."""
    return Instance(plan, 3, lambda log: ScriptedBolt(log, act, on_end), clock).open()


def word(*some: str, src: int = 1, dest: int = 3) -> Rows:
    return rows(src, dest, *([each] for each in some))


def said(session: int, record: Control) -> Said:
    return Said(session, record)
