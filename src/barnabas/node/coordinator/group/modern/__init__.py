"""The base of consumer, streams and share groups, whose coordinator assigns.

`group.py` is their base and applies records to them, `member.py` is the base of their members,
`records.py` has the records that each of them has. `heartbeat.py` holds the steps that their
heartbeats share, `timing.py` their timers and settings, `requests.py` the other common requests.
"""
