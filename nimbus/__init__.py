"""Nimbus: what the master of a cluster decides, and the daemon that acts on it.

The pure cores are `lifecycle` (what may happen to a topology), `executors` and `scheduler` (what
runs where), `rebalance` (what a request changes), `liveness` (who is silent) and `names`. They are
acted on by `service` (the loop) with `term` (a leader's time) and `rounds` (assignments); clients
are answered by `handler`; on the disk are `blobstore` and `inbox`; `main` is the daemon. Nimbus is
a leaf: nothing but the command that starts it imports this package, and it never imports what runs
in a worker or a supervisor.

This folder is the package `storm_py.nimbus`; the link of that name in `storm_py/` leads here.
"""

if __name__ != "storm_py.nimbus":  # a second name would mean a second copy of every class
    raise ImportError(f"import storm_py.nimbus, not {__name__}: the folder is part of storm_py")
