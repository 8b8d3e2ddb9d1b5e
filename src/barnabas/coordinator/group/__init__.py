"""The group coordinator: groups of every kind, and the offsets that they commit.

`service.py` is the door. Behind it one `GroupShard` per partition of `__consumer_offsets`, which
is pure. Each kind of group has a folder (`classic/`, `consumer/`, `share/`, `streams/`); what all
kinds use stands here. `offsets.py` holds what groups have committed.
"""
