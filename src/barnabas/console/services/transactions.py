"""Transactions of one cluster: those that are open, and those that no coordinator will end.

The overview names those that hang: they are found in the background, while somebody looks. A
transaction holds back the last stable offset of its partitions. So two ListOffsets requests to each
node say which partitions have an open one, and only their leaders are asked for producers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.base.clock import now_ms
from barnabas.base.ids import TopicPartition
from barnabas.console.services.asking import AbsentError, AwayError, Kept, RefusedError
from barnabas.console.services.cluster import ClusterService, Finding
from barnabas.console.services.messages import TooManyError
from barnabas.console.services.topics import Asked, Slice
from barnabas.console.services.watching import FIRST_S, WhileWatched
from barnabas.kafka.transaction_admin import (
    Listed,
    abort,
    describe_listed,
    find_hanging,
    list_transactions,
    producers_of,
    terminate,
)

LIST_KEPT_S: Final = 3.0
OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
"""States of a transaction that is not over."""
DESCRIBED_MAX: Final = 2_000
"""Open transactions whose age is asked for; further ones come last, without it."""
SEARCHES_MAX: Final = 4
"""Searches for hanging transactions at a time: each asks about every partition."""
MINUTES_DEFAULT: Final = 15
"""Kafka's largest transaction time-out, by default: what is open for longer may hang."""
EVERY_S: Final = 10.0
SHARE_MAX: Final = 0.05
"""The share of the time that searches take at most; slow ones are rarer."""
SHOWN_MAX: Final = 5
_LINK: Final = "#/transactions/hanging?find=1"


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id; None where something is not known or not open."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int | None
    state: str
    timeout_ms: int | None
    age_ms: int | None
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HangingRow:
    """An open transaction in a partition that no coordinator will end."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    start_offset: int
    idle_ms: int


class TransactionService:
    """Transactions of one cluster. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, cluster: ClusterService) -> None:
        self._cluster = cluster
        self._all = Kept(self._ask_all, LIST_KEPT_S)
        self._open = Kept(self._ask_open, LIST_KEPT_S)
        self._searches = threading.Semaphore(SEARCHES_MAX)

    def find(self, asked: Asked, *, state: str = "") -> Slice[TransactionRow]:
        """Open ones by age; with `state` those in a state (or `all`) by name.

        The words that are searched for are those of transactional ids, or a producer id.
        """

        def fits(name: str, producer_id: int) -> bool:
            return all(word in name.lower() or word == str(producer_id) for word in asked.words)

        if not state:
            rows = [row for row in self._open.get() if fits(row.transactional_id, row.producer_id)]
            return asked.of(rows)
        found = [
            one
            for one in self._all.get()
            if state in ("all", one.state) and fits(one.transactional_id, one.producer_id)
        ]
        part = asked.of(found)
        return Slice(self._described(part.rows), part.total, part.page)

    def hanging(
        self,
        minutes: int = MINUTES_DEFAULT,
        topic: str | None = None,
        among: Collection[TopicPartition] | None = None,
    ) -> list[HangingRow]:
        """Open transactions that were not written to for so long and that nobody will end.

        `topic` and `among` say in which partitions; all by default. Raises TooManyError
        while others search.
        """
        now = now_ms()
        if not self._searches.acquire(blocking=False):
            raise TooManyError("too many searches for hanging transactions are under way")
        try:
            with self._cluster.access.admin() as admin:
                found = find_hanging(
                    admin,
                    topic=topic,
                    partition=None,
                    broker=None,
                    timeout_ms=minutes * 60_000,
                    now_ms=now,
                    among=among,
                )
        finally:
            self._searches.release()
        rows = [
            HangingRow(
                one.place.topic,
                one.place.partition,
                one.producer_id,
                one.producer_epoch,
                one.start_offset,
                now - one.last_timestamp_ms,
            )
            for one in found
            if one.start_offset is not None
        ]
        return sorted(rows, key=lambda row: -row.idle_ms)

    def abort_hanging(
        self, topic: str, partition: int, producer_id: int, start_offset: int
    ) -> None:
        """Write the marker that is missing, if the transaction is still open there."""
        place = TopicPartition(topic, partition)
        with self._cluster.access.admin() as admin:
            for one in producers_of(admin, place):
                if (one.producer_id, one.start_offset) == (producer_id, start_offset):
                    epoch = one.coordinator_epoch or 0
                    abort(admin, place, producer_id, one.producer_epoch, epoch)
                    return
        raise AbsentError(
            f"{place}: no transaction of producer {producer_id} is open from offset {start_offset}"
        )

    def terminate(self, transactional_id: str) -> None:
        """Abort the transaction of an id, and fence its producer."""
        with self._cluster.access.admin() as admin:
            terminate(admin, transactional_id)
        self._all.forget()
        self._open.forget()

    def _ask_all(self) -> list[Listed]:
        with self._cluster.access.admin() as admin:
            return list_transactions(admin)

    def _ask_open(self) -> list[TransactionRow]:
        with self._cluster.access.admin() as admin:
            found = list_transactions(admin, states=OPEN)
        rows = self._described(found[:DESCRIBED_MAX])
        rows.sort(key=lambda row: -1 if row.age_ms is None else row.age_ms, reverse=True)
        return rows + [_listed(one) for one in found[DESCRIBED_MAX:]]

    def _described(self, listed: Sequence[Listed]) -> list[TransactionRow]:
        with self._cluster.access.admin() as admin:
            known = describe_listed(admin, listed)
        now = now_ms()
        rows = []
        for one in listed:
            found = known.get(one.transactional_id)
            if found is None:
                rows.append(_listed(one))
                continue
            is_open = found.started_ms is not None and found.state in OPEN
            rows.append(
                TransactionRow(
                    one.transactional_id,
                    one.coordinator,
                    found.producer_id,
                    found.producer_epoch,
                    found.state,
                    found.timeout_ms,
                    max(0, now - (found.started_ms or now)) if is_open else None,
                    tuple(map(str, found.partitions)),
                )
            )
        return rows


def _listed(one: Listed) -> TransactionRow:
    """A transactional id as its coordinator lists it, without further facts."""
    return TransactionRow(
        one.transactional_id, one.coordinator, one.producer_id, None, one.state, None, None, ()
    )


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
