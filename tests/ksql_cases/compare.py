"""How cases compare values: as the test kit does."""

from barnabas.sql.testing.outcome import equal

__all__ = ["equal"]
