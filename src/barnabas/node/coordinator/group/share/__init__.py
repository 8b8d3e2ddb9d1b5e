"""Share groups (KIP-932): members that share the records of partitions among each other.

Who takes part and which partitions each shall fetch from is in `__consumer_offsets`, as for other
groups; how far the group is with a partition is the share coordinator's (`node/coordinator/share`).
The two meet in `state.py`: a partition is assigned once its state was initialised.
"""
