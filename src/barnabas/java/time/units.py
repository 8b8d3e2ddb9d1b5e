"""Units of time, by their names in statements, with their lengths."""

from __future__ import annotations

from typing import Final

NANOS_OF_UNIT: Final = {
    "DAYS": 86_400_000_000_000,
    "HOURS": 3_600_000_000_000,
    "MINUTES": 60_000_000_000,
    "SECONDS": 1_000_000_000,
    "MILLISECONDS": 1_000_000,
    "MICROSECONDS": 1_000,
    "NANOSECONDS": 1,
}
"""From the longest to the shortest."""

NANOS_OF_DAY: Final = NANOS_OF_UNIT["DAYS"]
NANOS_OF_SECOND: Final = NANOS_OF_UNIT["SECONDS"]
NANOS_OF_MS: Final = NANOS_OF_UNIT["MILLISECONDS"]

MS_OF_UNIT: Final = {
    unit: nanos // NANOS_OF_MS for unit, nanos in NANOS_OF_UNIT.items() if nanos >= NANOS_OF_MS
}
DAY_MS: Final = MS_OF_UNIT["DAYS"]
