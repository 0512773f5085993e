"""The cluster of one machine: ZooKeeper, nimbus and supervisors as children of one terminal.

What is started with which arguments is said in `storm_py.one_machine.plan`, when in
`storm_py.one_machine.keeper` (both pure); `storm_py.one_machine.run` does it. Nothing here is part
of a cluster of several machines, and no daemon imports it. The command is `storm_py.cli.cluster`.
"""
