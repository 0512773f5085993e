"""Announcements: what a stream manager says to senders about the tasks that they send to.

For each task and sender there is a last word, which holds until the next: *on*, send nothing;
*off*, send what you like; or a *grant* of so many rows. A link begins with a grant of `START_ROWS`
that nobody has to say. Of a task of this worker its queue decides; of any other the last word of
the stream manager that hosts it, as long as the link to that one is open and not congested.

Who waits for a grant sends nothing, and nothing else reminds us of it. So that a sender has *spent*
something is forgotten only when a word renews it, or when our session to it ends, since the next
one begins with a new grant. Wherever nobody knows what it has used or heard - a message may be
lost, or refused, or was not counted because the task had no limit - it counts as spent. A grant too
many costs a few rows in a queue, one too few stops a sender for ever.

Pure, and without links: `storm_py.engine.stream_manager_core` turns words into messages. The other
half, which heeds them, is `storm_py.engine.allowances`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from storm_py.core.plan import ExecutorPlan, PhysicalPlan
from storm_py.core.pressure import START_FRAME_ROWS, START_ROWS, TaskQueue
from storm_py.wire import control


class _Word(Enum):
    """The last thing a sender has heard of a task."""

    ON = 1
    OFF = 2
    GRANT = 3


@dataclass(slots=True)
class _Remote:
    """What the host of a task said last; a `fresh` grant has not been passed on yet."""

    frame_rows: int
    word: _Word = _Word.GRANT
    rows: int = START_ROWS
    fresh: bool = True


class Announcements:
    """Last words about every task of a plan, to every sender this stream manager speaks to.

    `queues` are those of the tasks of this worker; `route` says which peer leads to a task;
    `reachable` whether the link to a peer that hosts tasks is open and not congested.
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        worker: int,
        queues: Mapping[int, TaskQueue],
        route: Mapping[int, str],
        frame_rows: int,
        reachable: Callable[[str], bool],
    ) -> None:
        self._queues = queues
        self._route = route
        self._reachable = reachable
        self._frame_rows = frame_rows
        self._senders: dict[int, tuple[str, ...]] = {}
        self._sharing: dict[int, int] = {}
        senders: dict[int, list[ExecutorPlan]] = {task: [] for task in route}
        for executor in plan.executors:
            for task in plan.receivers(executor):
                senders[task].append(executor)
        for task, executors in senders.items():
            told = [e for e in executors if task in queues or e.worker == worker]
            self._senders[task] = tuple(dict.fromkeys(route[e.tasks[0]] for e in told))
            self._sharing[task] = len({e.instance for e in executors})
        self._remote = {task: self._unheard() for task in route if task not in queues}
        self._words: dict[tuple[int, str], _Word] = {}
        #: senders that have used something of their grant, or may have
        self._spent: set[tuple[int, str]] = set()
        #: tasks whose senders live on grants
        self.limited = {task for task in route if self._senders[task]}
        for task in queues:
            self.measured(task)

    def _unheard(self) -> _Remote:
        return _Remote(min(START_FRAME_ROWS, self._frame_rows))

    def tasks_heard_by(self, peer: str) -> Iterator[int]:
        """The tasks about which a peer is told."""
        return (task for task, senders in self._senders.items() if peer in senders)

    # ---- events --------------------------------------------------------------------------------

    def used(self, task: int, src: int) -> None:
        """Rows of task `src` came for `task`, which is limited."""
        peer = self._route.get(src)
        if peer is not None:
            self._spent.add((task, peer))

    def may_have_used(self, peer: str) -> Iterator[int]:
        """Something that a sender had sent in a session now over is lost. The tasks it sends to."""
        for task in self.tasks_heard_by(peer):
            self._spent.add((task, peer))
            if task in self._remote:
                self._remote[task].fresh = True  # its host has not heard of what was lost here
            yield task

    def sent_in_vain(self, peer: str) -> None:
        """Our session to a host is over: what we passed on in it may not have come to its ears."""
        for task in self.hosted(peer):
            self._remote[task].fresh = True

    def measured(self, task: int) -> bool:
        """A task of this worker has finished something: whether that may be news to its senders."""
        before = task in self.limited
        if not self._queues[task].limited:
            self.limited.discard(task)
        else:
            self._limit(task)
        return before or task in self.limited

    def _limit(self, task: int) -> None:
        """A task is limited: who has not heard that it was not has used its grant uncounted."""
        if task not in self.limited and self._senders[task]:
            self.limited.add(task)
            for peer in self._senders[task]:
                if self._words.get((task, peer)) is not _Word.OFF:
                    self._spent.add((task, peer))

    def heard(self, peer: str, record: control.Pressure | control.Grant) -> bool:
        """The host of a task announces it; False if `peer` is not its host."""
        task = record.task
        if task not in self._remote or self._route[task] != peer:
            return False
        remote = self._remote[task]
        remote.frame_rows = record.frame_rows
        if isinstance(record, control.Grant):
            remote.word, remote.rows, remote.fresh = _Word.GRANT, record.rows, True
            self._limit(task)
        else:
            remote.word = _Word.ON if record.on else _Word.OFF
            if not record.on:
                self.limited.discard(task)
        return True

    def host_is_new(self, peer: str) -> Collection[int]:
        """A peer's session ended or begins: what it said before is void. The tasks it hosts."""
        tasks = self.hosted(peer)
        for task in tasks:
            self._remote[task] = self._unheard()
            self._limit(task)
        return tasks

    def hosted(self, peer: str) -> Collection[int]:
        """The tasks of other workers that a peer leads to."""
        return [task for task in self._remote if self._route[task] == peer]

    def forget(self, peer: str) -> None:
        """Our session to a sender ended: the next one has heard nothing, and used nothing."""
        self._unsay(peer)
        self._spent = {key for key in self._spent if key[1] != peer}

    def may_not_have_heard(self, peer: str) -> Iterator[int]:
        """A sender may have refused what was said in our session, which goes on, or may have heard
        and used it. The tasks it sends to.
        """
        self._unsay(peer)
        return self.may_have_used(peer)

    def _unsay(self, peer: str) -> None:
        for key in [key for key in self._words if key[1] == peer]:
            del self._words[key]

    # ---- words ---------------------------------------------------------------------------------

    def news(
        self, task: int, is_open: Callable[[str], bool]
    ) -> Iterator[tuple[str, control.Control]]:
        """For each sender with an open link, the word on `task` that it lacks."""
        senders = self._senders[task]
        if not senders:
            return
        word, frame_rows, rows, fresh = self._now(task)
        missed = False
        for peer in senders:
            key = (task, peer)
            if not is_open(peer):
                missed |= key in self._spent
                continue
            last = self._words.get(key, _Word.GRANT)
            if word is _Word.GRANT:
                if rows and (last is not _Word.GRANT or (fresh and key in self._spent)):
                    self._words[key] = _Word.GRANT
                    self._spent.discard(key)
                    yield peer, control.Grant(task, rows, frame_rows)
                elif not rows and last is _Word.OFF:
                    self._words[key] = _Word.ON
                    yield peer, control.Pressure(task, True, frame_rows)
            elif last is not word:
                # The frame size alone is no news: it travels with the words.
                self._words[key] = word
                self._spent.discard(key)
                yield peer, control.Pressure(task, word is _Word.ON, frame_rows)
        if task in self._remote:
            self._remote[task].fresh &= missed

    def _now(self, task: int) -> tuple[_Word, int, int, bool]:
        """How a task fares: word, largest frame and, for a grant, its rows, and if it is new."""
        queue = self._queues.get(task)
        if queue is not None:
            if queue.pressured:
                return _Word.ON, queue.frame_rows, 0, False
            if queue.limited:
                return _Word.GRANT, queue.frame_rows, queue.grant(self._sharing[task]), True
            return _Word.OFF, queue.frame_rows, 0, False
        remote = self._remote[task]
        if not self._reachable(self._route[task]):
            return _Word.ON, remote.frame_rows, 0, False
        return remote.word, remote.frame_rows, remote.rows, remote.fresh

    def check(self) -> None:
        """Assert that everybody who is told something is a sender."""
        for task, peer in (*self._words, *self._spent):
            assert peer in self._senders[task]
