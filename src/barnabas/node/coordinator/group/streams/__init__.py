"""Groups of Kafka Streams (KIP-1071): the broker assigns tasks of a topology to members.

`heartbeat.py` is where a member is heard. It keeps the group's `topology.py`, has `topics.py` say
which internal topics and how many tasks come of it, `target.py` (with `assignor.py`) who should run
what, and `reconcile.py` how far one member has come on the way there. The whole state of a group is
in its records (`records.py`), which `group.py` replays. `fencing.py` takes members out,
`endpoints.py` tells members where others answer interactive queries.
"""
