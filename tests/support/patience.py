"""How long tests wait for what must come: one figure for all.

Nothing is shown by the wait itself: on a machine under load all is slow, and what never comes is
found a minute later. `pytest`'s own limit (`timeout` in pyproject.toml) is above it.
"""

PATIENCE_S = 60.0
