"""The queue of log records on their way to the operator: whoever logs wakes the loop."""

from __future__ import annotations

import logging
import threading

from storm_py.runtime.logs import RecordQueue


class Queue:
    """One, with a logger that writes into it."""

    def __init__(self) -> None:
        self.records = RecordQueue("count (task 1)")
        self.wakes = 0
        self.logger = logging.Logger("users")
        self.logger.addHandler(self.records)

    def wake(self) -> None:
        self.wakes += 1

    def taken(self) -> list[str]:
        return [record.text for record in self.records.take()]


def test_the_first_record_wakes_and_the_others_wait_with_it() -> None:
    queue = Queue()
    queue.records.wake_by(queue.wake)
    assert queue.wakes == 0
    for n in range(3):
        queue.logger.warning("%d", n)
    assert (queue.wakes, queue.taken()) == (1, ["0", "1", "2"])
    queue.logger.warning("3")
    assert (queue.wakes, queue.taken()) == (2, ["3"])
    assert (queue.wakes, queue.taken()) == (2, [])


def test_what_is_logged_before_there_is_a_loop_wakes_it_when_there_is() -> None:
    queue = Queue()
    queue.logger.warning("early")
    queue.logger.warning("as well")
    queue.records.wake_by(queue.wake)
    assert (queue.wakes, queue.taken()) == (1, ["early", "as well"])


def test_what_is_not_for_the_operator_wakes_nobody() -> None:
    queue = Queue()
    queue.records.wake_by(queue.wake)
    queue.logger.info("fine")
    queue.records.handle(
        logging.LogRecord("storm_py.instance", logging.ERROR, "", 0, "its own", None, None)
    )
    assert (queue.wakes, queue.taken()) == (0, [])


def test_any_thread_may_log() -> None:
    queue = Queue()
    queue.records.wake_by(queue.wake)
    threads = [threading.Thread(target=queue.logger.warning, args=("%d", n)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert queue.wakes == 1
    assert sorted(queue.taken()) == sorted(str(n) for n in range(20))
