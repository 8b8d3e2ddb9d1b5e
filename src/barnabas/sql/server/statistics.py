"""DESCRIBE EXTENDED: what passed through a source since the server started, by ksqlDB's names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from barnabas.sql.engine.running import RunningQuery


@dataclass(frozen=True)
class Stat:
    """One figure; `timestamp_ms` is when it changed last, 0 if it never did."""

    name: str
    value: float
    timestamp_ms: int = 0

    def entity(self, host: str) -> dict[str, Any]:
        """As a client gets it. `host`: whose figure it is, as `host:port`."""
        value, timestamp_ms = self.value, self.timestamp_ms
        return {"name": self.name, "value": value, "timestamp": timestamp_ms, "host": host}


_WRITTEN = (("messages-per-sec", "total-messages", "rows_out"),)
_READ = (("consumer-messages-per-sec", "consumer-total-messages", "rows_in"),)
_FAILED = (("consumer-failed-messages-per-sec", "consumer-failed-messages", "errors"),)


def statistics(writers: Sequence[RunningQuery], readers: Sequence[RunningQuery]) -> list[Stat]:
    """Return what queries wrote to the source's topic and read from it; empty without queries."""
    return [*_stats(_WRITTEN, writers), *_stats(_READ, readers)]


def error_statistics(readers: Sequence[RunningQuery]) -> list[Stat]:
    """Return the numbers of records that the source's queries could not process, if any."""
    stats = _stats(_FAILED, readers)
    return stats if any(stat.value for stat in stats) else []


def _stats(names: Sequence[tuple[str, str, str]], running: Sequence[RunningQuery]) -> list[Stat]:
    if not running:
        return []
    now_ms = time.time_ns() // 1_000_000
    stats = []
    for rate_name, total_name, figure in names:
        rate, total, changed_ms = 0.0, 0.0, 0
        for one in running:
            figures = one.figures
            one.rates.look(figures, now_ms)
            rate += one.rates.per_second(figure)
            total += figures.get(figure, 0)
            changed_ms = max(changed_ms, one.rates.changed_ms.get(figure, 0))
        stats += [Stat(rate_name, rate, changed_ms), Stat(total_name, total, changed_ms)]
    return stats


def formatted(stats: Sequence[Stat], last: str) -> str:
    """Figures in a line, as ksqlDB's shell shows them; `last` names the time of the last one."""
    if not stats:
        return ""
    shown = [
        f"{stat.name:>16}:{stat.value:>10.{0 if stat.value == round(stat.value) else 2}f}"
        for stat in stats
    ]
    changed_ms = stats[0].timestamp_ms
    when = "n/a" if not changed_ms else _text(changed_ms)
    return " ".join(shown) + f" {last:>16}: {when:>9}"


def _text(timestamp_ms: int) -> str:
    at = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
