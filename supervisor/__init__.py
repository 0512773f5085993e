"""The daemon of one node: takes assignments for its slots, and runs a worker for each of them.

It executes workers and never imports what they run: a worker outlives its supervisor, and the next
one finds it again. What is decided is pure, in `storm_py.supervisor.slot`; processes, files and
downloads are in the modules beside it. Where all lies on the disk: `storm_py.supervisor.folders`.

This folder is the package `storm_py.supervisor`; the link of that name in `storm_py/` leads here.
"""

if __name__ != "storm_py.supervisor":  # a second name would mean a second copy of every class
    raise ImportError(f"import storm_py.supervisor, not {__name__}: the folder is part of storm_py")
