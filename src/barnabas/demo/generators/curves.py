"""Daily curves: how busy an hour is, relative to the day's mean."""

from __future__ import annotations

from typing import Final

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000

# Relative weight of each hour of the day, 00 to 23, before normalising.
_CHARGING_HOURS: Final = (
    3,
    2,
    2,
    2,
    3,
    5,
    10,
    16,
    17,
    13,
    11,
    11,
    12,
    11,
    10,
    11,
    14,
    19,
    21,
    17,
    12,
    9,
    6,
    4,
)
_RETAIL_HOURS: Final = (
    4,
    2,
    1,
    1,
    2,
    4,
    8,
    11,
    12,
    13,
    14,
    16,
    18,
    16,
    14,
    14,
    15,
    17,
    20,
    24,
    25,
    21,
    14,
    8,
)


class DailyCurve:
    """A smooth factor over the day with a mean of 1."""

    __slots__ = ("_factors",)

    def __init__(self, hours: tuple[int, ...]) -> None:
        mean = sum(hours) / len(hours)
        self._factors = [hour / mean for hour in hours]

    def at(self, time_ms: int) -> float:
        """Return the factor at an epoch time (UTC), interpolated between the hours' middles."""
        position = (time_ms % DAY_MS) / HOUR_MS - 0.5
        hour = int(position // 1)
        share = position - hour
        count = len(self._factors)
        return self._factors[hour % count] * (1 - share) + self._factors[(hour + 1) % count] * share


CHARGING_CURVE: Final = DailyCurve(_CHARGING_HOURS)
RETAIL_CURVE: Final = DailyCurve(_RETAIL_HOURS)
