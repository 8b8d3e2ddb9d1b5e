"""Groups of the consumer protocol (KIP-848): the broker assigns, members follow.

`heartbeat.py` is where a member is heard; it asks `subscriptions.py` what the group reads,
`target.py` (with `assignors/`) who should read what, and `reconcile.py` how far one member has
come on the way there. The whole state of a group is in its records (`records.py`), which `group.py`
replays. `fencing.py` takes members out, `migration.py` turns classic groups into these and back,
`classic_members.py` serves members that still speak the classic protocol.
"""
