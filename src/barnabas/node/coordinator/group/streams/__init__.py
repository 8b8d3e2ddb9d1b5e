"""Groups of Kafka Streams (KIP-1071): the broker assigns tasks of a topology to members.

`heartbeat.py` handles a member's heartbeat, and tells members where others answer interactive
queries. `topics.py` finds which internal topics and how many tasks a `topology.py` needs.
`target.py`, with `assignor.py`, finds who should run what, and takes members out; `reconcile.py`
takes one member a step towards its target. The whole state of a group is in its records
(`records.py`), which `group.py` replays.
"""
