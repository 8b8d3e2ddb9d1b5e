"""Groups of the classic protocol: the members' leader assigns, the coordinator keeps the peace.

`group.py` holds a group, `states.py` its table of states; `join.py`, `sync.py`, `membership.py` and
`rebalance.py` are what happens to it. Only the outcome of a rebalance is ever written
(`records.py`), so a group's state runs ahead of its records.
"""
