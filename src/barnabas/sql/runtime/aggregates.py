"""Aggregates of groups without windows, of streams and of tables.

The state of a group is a row: the kept columns' last values, then the states of the aggregates.
It is stored as [timestamp, state row]; the timestamp is the latest of all records of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.sql.functions.catalog import Aggregator
from barnabas.sql.runtime.evaluation import (
    EVALUATION_ERRORS,
    Evaluator,
    Log,
    QueryFailedError,
    value_or_none,
)
from barnabas.sql.runtime.layout import Pick
from barnabas.sql.runtime.node import OpenStore, StoreKey, TableNode, store_key
from barnabas.sql.runtime.records import Record, Row, WindowBounds
from barnabas.sql.runtime.stores import Store
from barnabas.sql.types import Value

StateRow = list[Any]


def failure(error: Exception) -> QueryFailedError:
    """The error with which a query fails of an aggregate."""
    return QueryFailedError(f"Exception caught in process. Error computing an aggregate: {error}")


class Aggregation:
    """The kept columns and aggregates of one step: makes and changes state rows.

    A record that an aggregate cannot take (a sum that overflows) stops the query: without it the
    state would be wrong from then on.
    """

    def __init__(
        self,
        kept: Sequence[int],
        aggregates: Sequence[tuple[Aggregator, Sequence[Evaluator]]],
        pick: Pick | None,
        log: Log,
    ) -> None:
        self.kept = tuple(kept)
        self.aggregators = tuple(aggregator for aggregator, _ in aggregates)
        parts = [
            (
                aggregator,
                tuple(
                    value_or_none(argument, "Error computing an aggregate's argument", log)
                    for argument in arguments
                ),
            )
            for aggregator, arguments in aggregates
        ]
        self._adds = [(aggregator.add, arguments) for aggregator, arguments in parts]
        self._removes = [
            (getattr(aggregator, "remove", None), arguments) for aggregator, arguments in parts
        ]
        self.column_counts = tuple(len(arguments) for _, arguments in aggregates)
        """The number of arguments that each aggregate takes from a row."""
        self._pick = pick

    def places(self, width: int) -> Sequence[int]:
        """Where the values of a result lie in a row of the kept columns, the aggregates' results,
        the window's bounds if there is one and the key."""
        row = list(range(width))
        if self._pick is None:
            return row[: len(self.kept) + len(self.aggregators)]
        return tuple(self._pick(row))

    def initial(self) -> StateRow:
        """The state before the first record."""
        return [None] * len(self.kept) + [a.initial() for a in self.aggregators]

    def add(self, state: StateRow, row: Row) -> StateRow:
        """The state with one more row."""
        return self._changed(state, row, self._adds)

    def remove(self, state: StateRow, row: Row) -> StateRow:
        """The state without a row that was added."""
        return self._changed(state, row, self._removes)

    def _changed(self, state: StateRow, row: Row, changes: Sequence[Any]) -> StateRow:
        changed = [row[place] for place in self.kept]
        place = len(changed)
        for change, arguments in changes:
            values = [argument(row) for argument in arguments]
            try:
                changed.append(change(state[place], *values))
            except EVALUATION_ERRORS as error:
                raise failure(error) from error
            place += 1
        return changed

    def merge(self, left: StateRow, right: StateRow) -> StateRow:
        """The state of two sessions that become one; kept columns are those of the left one,
        unless it has none."""
        count = len(self.kept)
        merged = [
            other if own is None else own
            for own, other in zip(left[:count], right[:count], strict=True)
        ]
        try:
            for place, aggregator in enumerate(self.aggregators, count):
                merged.append(aggregator.merge(left[place], right[place]))
        except EVALUATION_ERRORS as error:
            raise failure(error) from error
        return merged

    def result(self, state: StateRow, key: Row, window: WindowBounds | None) -> Row:
        """The row that a state stands for."""
        count = len(self.kept)
        row: list[Value] = state[:count]
        try:
            for place, aggregator in enumerate(self.aggregators, count):
                row.append(aggregator.result(state[place]))
        except EVALUATION_ERRORS as error:
            raise failure(error) from error
        if self._pick is None:
            return row
        if window is not None:
            row += window
        return self._pick([*row, *key])


class AggregateNode(TableNode):
    """A table of groups."""

    def __init__(self, name: str, aggregation: Aggregation) -> None:
        super().__init__(name)
        self.aggregation = aggregation
        self.store: Store | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return (*super().stores, self.name)

    def bind(self, open_store: OpenStore) -> None:
        super().bind(open_store)
        self.store = open_store(self.name)

    def send_old(self, *, at_any_cost: bool) -> bool:
        self.sends_old = True
        return True

    def need_view(self) -> None:
        """The store is there anyway."""

    def get(self, key: StoreKey) -> tuple[Row, int] | None:
        assert self.store is not None
        stored = self.store.get(key)
        return (self.aggregation.result(stored[1], key, None), stored[0]) if stored else None

    def send(
        self,
        record: Record,
        window: WindowBounds | None,
        old: StateRow | None,
        new: StateRow | None,
        timestamp_ms: int,
    ) -> None:
        """Forward the change of a group."""
        key = record.key
        assert key is not None
        result = self.aggregation.result
        self.forward(
            Record(
                key,
                None if new is None else result(new, key, window),
                timestamp_ms,
                window,
                record.headers,
                record.partition,
                record.offset,
                result(old, key, window) if self.sends_old and old is not None else None,
            )
        )


class StreamAggregateNode(AggregateNode):
    """Records without a key or without a value count nowhere.

    The old row of a new group is that of an empty one, as in Kafka Streams: HAVING that holds for
    it and not for the first record's makes a tombstone.
    """

    def process(self, record: Record) -> None:
        key, row = record.key, record.value
        if key is None or row is None:
            return
        assert self.store is not None
        place = store_key(key, record.window)
        stored = self.store.get(place)
        timestamp_ms = max(record.timestamp_ms, stored[0]) if stored else record.timestamp_ms
        old = stored[1] if stored else self.aggregation.initial()
        state = self.aggregation.add(old, row)
        self.store.put(place, [timestamp_ms, state])
        self.send(record, record.window, old, state, timestamp_ms)


class TableAggregateNode(AggregateNode):
    """Takes `old_value` out of the group and puts `value` in.

    A group whose last row has left stays, with the values of an empty one, as in ksqlDB.
    """

    def process(self, record: Record) -> None:
        assert self.store is not None
        assert record.key is not None
        place = tuple(record.key)
        stored = self.store.get(place)
        old: StateRow | None = stored[1] if stored else None
        state, timestamp_ms = old, record.timestamp_ms
        if stored and (record.old_value is not None or record.value is not None):
            timestamp_ms = max(timestamp_ms, stored[0])
        if record.old_value is not None and state is not None:
            state = self.aggregation.remove(state, record.old_value)
        if record.value is not None:
            state = self.aggregation.add(state or self.aggregation.initial(), record.value)
        self.store.put(place, None if state is None else [timestamp_ms, state])
        self.send(record, None, old, state, timestamp_ms)
