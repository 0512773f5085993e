"""Answers: what became of their trees, told to the spouts of one worker.

A spout's instance hears it over the link to it. Between two sessions of that link - one broke, or
the instance has not welcomed the first one yet - the spout lives and goes on emitting, so what is
to be told waits for the welcome. A spout whose process is dead has no link, and no use for any of
it: its successor has other roots.

What waits is bounded by what the spout itself keeps: one word for each tree, the last one, and no
longer than the tree can be pending, two message timeouts. Pure: `Trees` finds out what became of
trees, `storm_py.engine.stream_manager_core` owns the links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from storm_py.wire import control
from storm_py.wire.acks import AckResults, encode_acks

from .links import OutboundLink, Send
from .trees import Results

#: Of the last two whole message timeouts, and of the current one.
_PERIODS: Final = 3
#: By root the number of its column in `AckResults`.
_LastWords: TypeAlias = dict[int, int]


class Answers:
    """Towards the spout tasks that `route` leads to, over whatever `links` there are just now."""

    def __init__(self, route: Mapping[int, str], links: Mapping[str, OutboundLink]) -> None:
        self._route = route
        self._links = links
        #: by spout task, what waits; newest period first
        self._waiting: list[dict[int, _LastWords]] = [{} for _ in range(_PERIODS)]
        #: peers that have to hear that all they wait for is lost
        self._failing: set[str] = set()
        self._dropped = 0

    def tell(self, results: Results) -> list[tuple[str, bytes]]:
        """What became of the trees of each spout task: the frames to send now, by peer.

        What is for a peer whose link is not open is kept for its next session.
        """
        found_now: list[tuple[str, bytes]] = []
        for task, found in results.items():
            peer = self._route[task]
            link = self._links.get(peer)
            if link is None:
                self._dropped += 1
            elif link.open:
                found_now.append((peer, encode_acks(0, task, task, 0, found)))
            else:
                words = self._waiting[0].setdefault(task, {})
                for column, roots in enumerate((found.complete, found.failed, found.renewed)):
                    words.update(dict.fromkeys(roots, column))
        return found_now

    def send(self, results: Results) -> list[Send]:
        """The same, as messages that leave at once."""
        told = self.tell(results)
        return [(True, peer, self._links[peer].data(frame)) for peer, frame in told]

    def fail_pending(self, tasks: Iterable[int]) -> list[Send]:
        """Have these spout tasks fail all that is pending, now or with the next session."""
        sends: list[Send] = []
        for peer in dict.fromkeys(self._route[task] for task in tasks):
            link = self._links.get(peer)
            if link is not None and link.open:
                sends.append((False, peer, link.control(control.FailPending())))
            elif link is not None:
                self._failing.add(peer)
        return sends

    def welcomed(self, peer: str) -> list[Send]:
        """The link to a peer has just opened: tell it what has waited for that."""
        sends: list[Send] = []
        if peer in self._failing:
            self._failing.discard(peer)
            sends.append((False, peer, self._links[peer].control(control.FailPending())))
        for period in reversed(self._waiting):
            for task in self._tasks_of(peer, period):
                columns: tuple[list[int], list[int], list[int]] = ([], [], [])
                for root, column in period.pop(task).items():
                    columns[column].append(root)
                sends += self.send({task: AckResults(*columns)})
        return sends

    def gone(self, peer: str) -> None:
        """The process of a peer is dead: nobody waits for what waits."""
        self._failing.discard(peer)
        for period in self._waiting:
            for task in self._tasks_of(peer, period):
                del period[task]

    def rotate(self) -> None:
        """A message timeout has passed: forget what spouts have failed for time by now."""
        self._waiting.pop()
        self._waiting.insert(0, {})

    def _tasks_of(self, peer: str, period: Mapping[int, _LastWords]) -> list[int]:
        return [task for task in period if self._route[task] == peer]

    @property
    def dropped(self) -> int:
        """Results for spouts that are dead."""
        return self._dropped

    def check(self) -> None:
        """Assert that something waits only for links that have not opened yet."""
        waiting = {self._route[task] for period in self._waiting for task in period}
        for peer in waiting | self._failing:
            assert peer in self._links
            assert not self._links[peer].open
