"""Plans micro-batches of the log, on the driver.

A micro-batch of the log is one split, since changes must stay in order. Its end is a stored offset,
from which a restart continues. It may be in the middle of a transaction, so that a long transaction
does not become one long micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

from barnabas.connect.cdc.adhoc import AdHocSnapshots, SignalChannel
from barnabas.connect.cdc.changes import (
    AdHocItem,
    Beat,
    ChunkRows,
    Item,
    LogSplit,
    StateChanged,
    TableChanged,
    counts_after,
    is_message,
)
from barnabas.connect.cdc.database import (
    BEGIN,
    DESCRIPTION,
    ChangeLog,
    Clock,
    Database,
    LogState,
    Place,
)
from barnabas.connect.cdc.envelopes import log_left_out
from barnabas.connect.cdc.queries import Query
from barnabas.connect.cdc.settings import CaptureSettings
from barnabas.connect.cdc.transactions import EventCounts
from barnabas.connect.record import JsonMap

StateT = TypeVar("StateT", bound=LogState)
IDLE_INTERVAL_S: Final = 10.0
"""The pause between offsets that are stored only because the log grew."""


class LogBatches(Generic[StateT]):
    """Turns messages of the log into splits, from a stored offset on.

    `state` follows the log, and begins where the offset ends. Raises RetriableError, ConnectError.
    """

    def __init__(
        self,
        settings: CaptureSettings,
        database: Database,
        log: ChangeLog,
        state: StateT,
        channels: Sequence[SignalChannel],
        offset: JsonMap,
        *,
        clock: Clock,
        ids: Iterator[str],
    ) -> None:
        self._settings = settings
        self._database = database
        self._log = log
        self._clock = clock
        self.state = state
        self._counts: dict[str, int] | None = None
        if settings["provide.transaction.metadata"]:
            self._counts = EventCounts.of_offset(offset).by_collection
        self._needs_signals = settings.signal_table is not None or settings["read.only"]
        self._idle_due = 0.0
        self._beat_due = clock.monotonic()
        self.adhoc = AdHocSnapshots(settings, database, log, channels, offset, clock=clock, ids=ids)

    def plan(
        self, received: Iterable[tuple[Place, Any | None]], end: JsonMap
    ) -> tuple[LogSplit | None, dict[str, Any] | None]:
        """Take messages of the log behind the offset `end`; None: all before a place was sent.

        Returns what there is to read, and the offset where it ends. An offset without a split is
        the log's growth: it says how far the log has been read.
        """
        split = self._collected(received)
        split = self._with_heartbeat(split)
        is_further = self.state.is_beyond(end)
        now_s = self._clock.monotonic()
        if split is None and not (is_further and now_s >= self._idle_due):
            return None, None
        self._idle_due = now_s + IDLE_INTERVAL_S
        offset = self.state.offset() | self.adhoc.fields
        if self._counts and self.state.transaction is not None:
            offset |= EventCounts(self._counts).json(self.state.transaction_id())
        return split, offset

    def _collected(self, received: Iterable[tuple[Place, Any | None]]) -> LogSplit | None:
        """Keep what is wanted and not done yet; learn tables, count changes."""
        state, adhoc = self.state, self.adhoc
        split = self._split()
        items = split.items
        items += self._between(adhoc.polled(state))
        for place, message in received:
            if message is None:
                state.all_sent_before(place)
                items += self._between(adhoc.advanced(state))
            elif self._log.operation(message) == DESCRIPTION:
                number, table = self._database.described(message)
                state.tables[number] = table
                if table is not None:
                    log_left_out(table, self._settings.types)
                    items += self._between(adhoc.learnt(table))
                items.append((place, TableChanged(number, table), 0))
            else:
                is_wanted = state.takes(place, message)
                if self._needs_signals:
                    items += self._between(adhoc.follow(message, state, is_wanted=is_wanted))
                if is_wanted:
                    items.append((place, message, state.events))
        if not any(self._goes_on(item) for _place, item, _events in items):
            adhoc.keep([item for _place, item, _events in items])
            return None  # the next split begins with what was learnt
        self._counts = counts_after(split, self._log, self._settings)
        return split

    def _goes_on(self, item: object) -> bool:
        """Return whether the offset changes with it."""
        if is_message(item):
            return self._log.operation(item) != BEGIN
        return isinstance(item, ChunkRows | StateChanged)

    def _between(self, items: Sequence[AdHocItem]) -> list[Item]:
        """Put them behind what is read of the log."""
        return [(self.state.place, item, 0) for item in items]

    def _split(self) -> LogSplit:
        counts = None if self._counts is None else dict(self._counts)
        state = self.state
        return LogSplit(state.start(), dict(state.tables), [], counts, self.adhoc.fields)

    def _with_heartbeat(self, split: LogSplit | None) -> LogSplit | None:
        interval_ms = self._settings["heartbeat.interval.ms"]
        if not interval_ms or self._clock.monotonic() < self._beat_due:
            return split
        state = self.state
        if split is None and state.transaction is not None:
            return None  # the offset would be the last one again, which says that nothing is new
        self._beat_due = self._clock.monotonic() + interval_ms / 1000
        if split is None:
            split = self._split()
        beat = Beat(self._clock.time_ns() // 1_000_000)
        split.items.append((state.place, beat, state.events))
        if query := self._settings["heartbeat.action.query"]:
            self._database.execute(Query(query))
        return split
