"""Processes of the data plane: worker, stream manager and instance, each a thin driver.

A driver owns the sockets, timers, signals and children of its process, feeds events to a core of
`storm_py.engine` and carries out the actions that come back. It decides nothing that a core could
decide. Processes meet through messages only: no driver imports another one to reach into it, and
nothing in here may know the command line (`storm_py.cli`).
"""
