"""How fast a query's counts grow, from looks at them every few seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

SPAN_MS = 30_000
"""Rates are means over this long, and over less at first."""
_SPAN_MIN_MS = 1_000
_LOOKS_MAX = 64
RATED = ("rows_in", "rows_out", "errors")


class Rates:
    """Rates of the counts in `RATED`, in units per second; `changed_ms`: when each grew last."""

    def __init__(self) -> None:
        self._looks: deque[tuple[int, dict[str, float]]] = deque(maxlen=_LOOKS_MAX)
        self.changed_ms: dict[str, int] = {}

    def look(self, figures: Mapping[str, float], now_ms: int) -> None:
        """Take in what the counts are now."""
        counts = {name: float(figures.get(name, 0)) for name in RATED}
        last = self._looks[-1][1] if self._looks else dict.fromkeys(RATED, 0.0)
        for name, count in counts.items():
            if count > last[name]:
                self.changed_ms[name] = now_ms
        self._looks.append((now_ms, counts))
        while len(self._looks) > 2 and now_ms - self._looks[1][0] >= SPAN_MS:
            self._looks.popleft()

    def per_second(self, name: str) -> float:
        """The rate of a count."""
        if len(self._looks) < 2:
            return 0.0
        (first_ms, first), (last_ms, last) = self._looks[0], self._looks[-1]
        return max(0.0, last[name] - first[name]) * 1000 / max(last_ms - first_ms, _SPAN_MIN_MS)
