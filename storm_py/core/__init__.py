"""Data-plane decisions, each one a small pure state machine: routing, batching, pressure.

A core gets values and the current time as arguments and returns what is to be done; it reads no
clock, opens no socket, draws no random number and writes no log. It does not know the bytes of a
frame (`storm_py.wire`) nor its neighbours: `storm_py.engine` composes cores, and
`storm_py.runtime` acts on what they return.
"""
