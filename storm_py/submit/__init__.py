"""What `storm-py submit` makes of the user's project: which files go to the cluster.

`project` finds the folder, `ignored` knows git's rules, `listing` walks, `sizes` sets the limit,
and `prepared` puts all of it together. `storm_py.archive` makes the archive of what is listed,
`storm_py.bundle` the other two blobs of a topology: who only reads them needs nothing from here.
"""
