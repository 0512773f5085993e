"""A spout and a bolt to subscribe to and to be refused: what the tests of validation build with."""

from __future__ import annotations

from storm_py import BaseRichBolt, BaseRichSpout, OutputFieldsDeclarer


class Lines(BaseRichSpout):
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("line", "number")
        declarer.declare_stream("errors", "text")
        declarer.declare_stream("chosen", "line", direct=True)

    def next_tuple(self) -> None:
        pass


class Sink(BaseRichBolt):
    def execute(self, tup: object) -> None:
        pass
