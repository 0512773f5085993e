"""What the processes of a cluster share: layout, records and rules of the nodes in ZooKeeper.

`paths` says where things are and `records` what they hold; `base` says what a storage of nodes can
do, `zookeeper` and `memory` do it. `latch` elects a leader over any of them and `leader` decides
what an election and a connection mean; `storm_cluster_state` puts it all together, with types.
Nobody else names a node. Nothing in here knows what nimbus or a supervisor does with what it reads.
"""
