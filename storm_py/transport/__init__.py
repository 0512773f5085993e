"""Moves lists of bytes between processes; knows addresses and sessions, but no tuple.

What the bytes mean is the business of `storm_py.wire`, which this package may not import. Each
implementation (ZeroMQ, and a deterministic one in memory that can lose, repeat and delay) obeys
the same protocol and passes the same contract tests. Its only user is `storm_py.runtime`.
"""
