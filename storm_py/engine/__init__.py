"""Instance and stream manager: two protocol cores that compose `storm_py.core` and `storm_py.wire`.

Pure like their parts: bytes, commands and the current time go in, a list of actions comes out, so
that both can be wired to each other in memory and every failure is a test with a hand-driven
clock. Nothing here may touch a socket, a process, a clock or a log; the drivers that do so, one
for each of the two, are in `storm_py.runtime`.
"""
