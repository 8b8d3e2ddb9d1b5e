"""Share partitions: the records of a partition, given out to the members of share groups.

`core/` decides who holds which record, in plain data; `share_partition_host.py` gives that a log,
a persister and those who wait; `partitions.py` keeps them for a node; `sessions.py` knows the
clients.
Source: KIP-932.
"""
