"""Example topologies: small programs that use nothing but the public names of `storm_py`.

Run one with `storm-py local topologies/word_count.py`. Each file works when copied anywhere else:
it imports from `storm_py` only, and not from its neighbours. `tests/test_topologies.py` runs all.

This folder is the package `storm_py.topologies`; the link of that name in `storm_py/` leads here.
"""

if __name__ != "storm_py.topologies":  # a second name would mean a second copy of every class
    raise ImportError(f"import storm_py.topologies, not {__name__}: the folder is part of storm_py")
