"""The group coordinator: classic groups and the offsets of all groups.

`service.py` is the door. Behind it one `GroupShard` per partition of `__consumer_offsets`, which
is pure: `classic.py` holds a group, and `join.py`, `sync.py`, `membership.py`, `rebalance.py`
are what happens to it; `offsets.py` holds what groups have committed.
"""
