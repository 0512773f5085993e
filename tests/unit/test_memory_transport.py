"""MemoryTransport: everything arrives once, in order; control overtakes data."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from storm_py.transport.memory import MemoryTransport, Parcel

parcels = st.builds(
    Parcel, st.sampled_from("ab"), st.sampled_from("ab"), st.booleans(), st.binary(max_size=2)
)


def test_a_dialogue() -> None:
    transport = MemoryTransport()
    assert transport.receive() is None
    transport.send("i1", "s0", True, b"first")
    transport.send("s0", "i1", True, b"second")
    transport.send("s0", "i1", False, b"urgent")
    assert transport.receive() == Parcel("s0", "i1", False, b"urgent")
    assert transport.receive() == Parcel("i1", "s0", True, b"first")
    transport.send("i1", "s0", False, b"urgent too")
    assert transport.receive() == Parcel("i1", "s0", False, b"urgent too")
    assert transport.receive() == Parcel("s0", "i1", True, b"second")
    assert transport.receive() is None


@settings(max_examples=50)
@given(st.lists(st.one_of(parcels, st.none()), max_size=30))
def test_nothing_is_lost_doubled_or_reordered(steps: list[Parcel | None]) -> None:
    """Each step sends a parcel or, for None, receives one."""
    transport = MemoryTransport()
    waiting: list[Parcel] = []
    for step in steps + [None] * len(steps):
        if step is not None:
            transport.send(step.source, step.dest, step.data, step.message)
            waiting.append(step)
            continue
        received = transport.receive()
        if received is None:
            assert waiting == []
        else:
            first = next((p for p in waiting if not p.data), waiting[0])
            assert received == first
            waiting.remove(first)
    assert waiting == []
