"""Hanging transactions as the overview names them: found in the background, while somebody looks.

A transaction holds back the last stable offset of its partitions. So two ListOffsets requests to
each node say which partitions have an open one, and only their leaders are asked for producers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.console.services.asking import AwayError, RefusedError
from barnabas.console.services.cluster import ClusterService, Finding
from barnabas.console.services.messages import TooManyError
from barnabas.console.services.transactions import HangingRow, TransactionService
from barnabas.console.services.watching import FIRST_S, WhileWatched

EVERY_S: Final = 10.0
SHARE_MAX: Final = 0.05
"""The share of the time that searches take at most; slow ones are rarer."""
SHOWN_MAX: Final = 5
_LINK: Final = "#/transactions/hanging?find=1"


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of the last search, or the reason for its failure."""

    rows: tuple[HangingRow, ...] = ()
    failure: str | None = None


class HangingWatch:
    """Searches while somebody watches, and keeps the result. Methods do not block."""

    def __init__(
        self,
        cluster: ClusterService,
        transactions: TransactionService,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._transactions, self._now_s = cluster, transactions, now_s
        self._lock = threading.Lock()
        self._searched = Searched()
        self._ended: set[tuple[str, int, int]] = set()
        self._watching = WhileWatched(self._search, "console-hanging", first_s=FIRST_S)

    def findings(self) -> list[Finding]:
        """What needs attention, as the last search found it; goes on searching for a minute."""
        self._watching.watch()
        with self._lock:
            found = self._searched
        return _findings(found)

    def forget(self, topic: str, partition: int, producer_id: int) -> None:
        """A transaction was ended: it is not named any more."""
        key = topic, partition, producer_id
        with self._lock:
            self._ended.add(key)  # a search that is under way may still find it
            left = tuple(row for row in self._searched.rows if _key(row) != key)
            self._searched = Searched(left, self._searched.failure)

    def close(self) -> None:
        """Stop searching."""
        self._watching.close()

    def search(self) -> Searched:
        """Search once; a failure is a result. While others search, the last one stays."""
        try:
            places = self.held_back()
            rows = self._transactions.hanging(among=places) if places else []
        except TooManyError:
            with self._lock:
                return self._searched
        except (AwayError, RefusedError) as error:
            return Searched(failure=str(error))
        return Searched(tuple(rows))

    def held_back(self) -> set[TopicPartition]:
        """The partitions with an open transaction: consumers with read_committed stop there."""
        ends = self._cluster.ends().offsets  # first: what is stable by then is not held back
        stable = self._cluster.offsets(self._cluster.view().topics, is_committed=True)
        return {
            TopicPartition(*place) for place, end in ends.items() if stable.get(place, end) < end
        }

    def _search(self, is_first: bool) -> float:
        with self._lock:
            self._ended.clear()
            if is_first:
                self._searched = Searched()
        begun_s = self._now_s()
        found = self.search()
        took_s = self._now_s() - begun_s
        with self._lock:
            rows = tuple(row for row in found.rows if _key(row) not in self._ended)
            self._searched = Searched(rows, found.failure)
        return max(EVERY_S, took_s / SHARE_MAX - took_s)


def _key(row: HangingRow) -> tuple[str, int, int]:
    return row.topic, row.partition, row.producer_id


def _findings(found: Searched) -> list[Finding]:
    if found.failure is not None:
        title = "Hanging transactions are not known"
        advice = "Check whether all nodes answer, and the console's rights (Read on the topics)."
        return [Finding("warning", title, found.failure, advice, _LINK)]
    if not found.rows:
        return []
    count = len(found.rows)
    one = count == 1
    title = "1 transaction hangs" if one else f"{count:,} transactions hang"
    what, they = ("it", "it has") if one else ("them", "they have")
    named = ", ".join(_named(row) for row in found.rows[:SHOWN_MAX])
    more = f" and {count - SHOWN_MAX:,} more" if count > SHOWN_MAX else ""
    detail = f"Consumers with read_committed do not read past {what}: {named}{more}."
    advice = f"Abort {what}; what {they} written is lost, and consumers read on."
    return [Finding("bad", title, detail, advice, _LINK)]


def _named(row: HangingRow) -> str:
    minutes = row.idle_ms // 60_000
    return (
        f"{row.topic}-{row.partition} from offset {row.start_offset:,} "
        f"(producer {row.producer_id}, not written to for {minutes:,} min)"
    )
