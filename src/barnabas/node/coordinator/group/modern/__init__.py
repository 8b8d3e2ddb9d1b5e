"""The base of consumer, streams and share groups, whose coordinator assigns.

`group.py` is their base, `member.py` that of their members, `records.py` the records that each of
them has, `replay.py` how a record makes, changes and ends them. `heartbeat.py` holds the steps that
their heartbeats share, `timing.py` their timers and settings, `requests.py` the other common
requests.
"""
