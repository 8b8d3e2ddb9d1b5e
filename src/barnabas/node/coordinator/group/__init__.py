"""The group coordinator: groups of every kind, and the offsets that they commit.

`service.py` is the door. Behind it one `GroupShard` per partition of `__consumer_offsets`, which
is pure. Each kind of group has a folder (`classic/`, `consumer/`, `share/`, `streams/`), and the
last three a base (`modern/`). The modules here serve all kinds: `group.py` is what any group can
be asked, `requests.py` what the shard asks of a kind, `registry.py` holds the groups of a shard,
`offsets.py` what they have committed.
"""
