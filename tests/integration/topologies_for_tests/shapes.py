"""Graphs of many shapes, all made of the components of flows.py."""

from __future__ import annotations

from storm_py import TopologyBuilder

from .flows import EmptySpout, NumberSpout, Relay, Sink

TOTAL = 1000


def chain(length: int) -> TopologyBuilder:
    """A spout and bolts in a row, the last of them a sink."""
    builder = TopologyBuilder()
    builder.set_spout("bolt0", NumberSpout(TOTAL), 2)
    for i in range(1, length):
        builder.set_bolt(f"bolt{i}", Relay(), 2).shuffle_grouping(f"bolt{i - 1}")
    builder.set_bolt("sink", Sink(), 2).fields_grouping(f"bolt{length - 1}", ["key"])
    return builder


def diamond() -> TopologyBuilder:
    """Two ways of different length from a spout to a sink."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL), 2)
    builder.set_bolt("short", Relay(), 2).shuffle_grouping("numbers")
    builder.set_bolt("long", Relay(), 2).fields_grouping("numbers", ["key"])
    builder.set_bolt("longer", Relay()).shuffle_grouping("long")
    sink = builder.set_bolt("sink", Sink(), 2)
    sink.shuffle_grouping("short").fields_grouping("longer", ["key"]).all_grouping("numbers")
    return builder


def two_streams() -> TopologyBuilder:
    """A bolt that subscribes to two streams of one component, each grouped in its own way."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL, ("even", "odd", "unread")), 2)
    sink = builder.set_bolt("sink", Sink(), 3)
    sink.shuffle_grouping("numbers", "even").all_grouping("numbers", "odd")
    return builder


def many_tasks() -> TopologyBuilder:
    """More tasks than executors, of spouts and of bolts."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL), 2).set_num_tasks(5)
    builder.set_bolt("relay", Relay(), 2).set_num_tasks(7).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink(), 3).set_num_tasks(8).fields_grouping("relay", ["key"])
    return builder


def one_executor_with_many_tasks(tasks: int) -> TopologyBuilder:
    """One executor each, with very many tasks."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL)).set_num_tasks(tasks)
    builder.set_bolt("relay", Relay()).set_num_tasks(tasks).shuffle_grouping("numbers")
    builder.set_bolt("sink", Sink()).set_num_tasks(tasks).fields_grouping("relay", ["key"])
    return builder


def empty() -> TopologyBuilder:
    """Nothing to do at all."""
    builder = TopologyBuilder()
    builder.set_spout("nothing", EmptySpout(), 2)
    builder.set_bolt("relay", Relay(), 2).shuffle_grouping("nothing")
    builder.set_bolt("sink", Sink(), 2).fields_grouping("relay", ["key"])
    return builder


def partly_empty() -> TopologyBuilder:
    """Of two spouts one has nothing; a third that nobody reads has something."""
    builder = TopologyBuilder()
    builder.set_spout("nothing", EmptySpout())
    builder.set_spout("numbers", NumberSpout(TOTAL))
    builder.set_spout("unread", NumberSpout(TOTAL))
    builder.set_bolt("sink", Sink(), 2).shuffle_grouping("nothing").shuffle_grouping("numbers")
    return builder


def lonely_spout() -> TopologyBuilder:
    """No bolt at all."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", NumberSpout(TOTAL), 2)
    return builder


def named(spout: str, relay: str, sink: str, stream: str) -> TopologyBuilder:
    """Components and a stream of these names."""
    builder = TopologyBuilder()
    builder.set_spout(spout, NumberSpout(TOTAL, (stream,)), 2)
    builder.set_bolt(relay, Relay((stream,)), 2).shuffle_grouping(spout, stream)
    builder.set_bolt(sink, Sink(), 2).fields_grouping(relay, ["key"], stream)
    return builder
