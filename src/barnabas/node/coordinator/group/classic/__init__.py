"""Groups of the classic protocol: the members' leader assigns, the coordinator keeps the peace.

`group.py` holds a group, `states.py` its table of states. `requests.py` handles requests (JoinGroup
with `join.py`) and timers, which begin and end rebalances (`rebalance.py`). Only the outcome of a
rebalance is ever written (`records.py`), so a group's state runs ahead of its records.
"""
