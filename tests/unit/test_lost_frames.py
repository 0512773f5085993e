"""What a task's queue hands back when its process dies: the frames it never credited, no others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from storm_py.core.pressure import Limits, TaskQueue

WIDE = Limits(window_secs=1000.0, high_bytes=1 << 30, low_ratio=0.5, frame_rows=256)


@given(
    st.lists(st.integers(1, 20), max_size=12),
    st.lists(st.integers(0, 3), max_size=8),
    st.integers(0, 12),
)
def test_lost_are_the_frames_sent_and_not_credited(
    sizes: list[int], credits: list[int], later: int
) -> None:
    made = [bytes([i]) * size for i, size in enumerate(sizes)]
    queue = TaskQueue(WIDE)
    queue.connect(0.0)
    sent = [frame for frame in made[:later] if queue.offer(frame, 1, 0.0)]
    done = 0
    for finished in credits:
        done = min(len(sent), done + finished)
        released = queue.credit(done, sum(map(len, sent[:done])), 0.0)
        sent += released
        queue.check()
    sent += [frame for frame in made[later:] if queue.offer(frame, 1, 0.0)]
    assert queue.disconnect() == sent[done:]
    queue.check()
    assert queue.disconnect() == []
    assert list(queue.connect(1.0)) == made[len(sent) :]  # what had waited goes to the successor
