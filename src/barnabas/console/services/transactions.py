"""Transactions of one cluster: those that are open, and those that no coordinator will end."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.base.ids import TopicPartition
from barnabas.console.services.asking import AbsentError, Kept
from barnabas.console.services.cluster import ClusterService
from barnabas.console.services.messages import TooManyError
from barnabas.console.services.topics import Slice, sliced
from barnabas.kafka.transaction_admin import (
    Listed,
    abort,
    describe_listed,
    find_hanging,
    list_transactions,
    now_ms,
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

    def find(
        self, *, search: str = "", state: str = "", page: int = 0, size: int = 50
    ) -> Slice[TransactionRow]:
        """Open ones by age; with `state` those in a state (or `all`) by name.

        `search` has words of transactional ids, or a producer id.
        """
        words = search.lower().split()

        def fits(name: str, producer_id: int) -> bool:
            return all(word in name.lower() or word == str(producer_id) for word in words)

        if not state:
            rows = [row for row in self._open.get() if fits(row.transactional_id, row.producer_id)]
            return sliced(rows, page, size)
        found = [
            one
            for one in self._all.get()
            if state in ("all", one.state) and fits(one.transactional_id, one.producer_id)
        ]
        part = sliced(found, page, size)
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
