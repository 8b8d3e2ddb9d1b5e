"""Groups of the consumer protocol (KIP-848): the broker assigns, members follow.

`heartbeat.py` handles a member's heartbeat. `subscriptions.py` finds what the group reads and, with
`assignors.py`, who should read what; `reconcile.py` takes one member a step towards that. The whole
state of a group is in its records (`records.py`), which `group.py` replays. `fencing.py` takes
members out, `migration.py` turns classic groups into these and back, `classic_members.py` serves
members that still speak the classic protocol.
"""
