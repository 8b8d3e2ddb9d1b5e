"""Steps of tables: sources, filter, select, new keys, groups.

A tombstone is a record whose value is None. Which steps forward one, and when, is as in Kafka
Streams: see TableNode.send_old.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.sql.runtime.evaluation import EVALUATION_ERRORS, Evaluator, Log
from barnabas.sql.runtime.layout import Pick
from barnabas.sql.runtime.node import Node, OpenStore, StoreKey, TableNode, store_key
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.runtime.stores import Store
from barnabas.sql.runtime.streams import Completion, Getter


class StoredTable(TableNode):
    """A table whose rows can be kept in its own store, as [timestamp, row]."""

    def __init__(self, name: str, *, is_stored: bool) -> None:
        super().__init__(name)
        self.is_stored = is_stored
        self._store: Store | None = None

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.name,) if self.is_stored else ()

    def bind(self, open_store: OpenStore) -> None:
        super().bind(open_store)
        self._store = open_store(self.name) if self.is_stored else None

    def get(self, key: StoreKey) -> tuple[Row, int] | None:
        assert self._store is not None, f"{self.name} has no store"
        stored = self._store.get(key)
        return (stored[1], stored[0]) if stored else None

    def rows_of(self, keys: Sequence[StoreKey]) -> list[Row | None]:
        assert self._store is not None, f"{self.name} has no store"
        return [stored[1] if stored else None for stored in self._store.get_all(keys)]

    def need_view(self) -> None:
        self.is_stored = True

    def keep(self, record: Record) -> None:
        """Put the record's row into the store; set the old one if somebody wants it."""
        record.old_value = None
        if self._store is not None and record.key is not None:
            key = store_key(record.key, record.window)
            if self.sends_old:
                stored = self._store.get(key)
                record.old_value = stored[1] if stored else None
            row = record.value
            self._store.put(key, None if row is None else [record.timestamp_ms, row])

    def keep_all(
        self, keys: Sequence[StoreKey], rows: Sequence[Row | None], timestamps_ms: Sequence[int]
    ) -> None:
        """Put the rows of different keys into the store, where nobody wants the old ones."""
        assert self._store is not None, f"{self.name} has no store"
        assert not self.sends_old
        self._store.put_all(
            keys,
            [
                None if row is None else [timestamp_ms, row]
                for row, timestamp_ms in zip(rows, timestamps_ms, strict=True)
            ],
        )

    def stored(self, keys: Sequence[StoreKey]) -> list[Any]:
        """The store's entries for keys, for `put_back`."""
        assert self._store is not None, f"{self.name} has no store"
        return self._store.get_all(keys)

    def put_back(self, keys: Sequence[StoreKey], entries: Sequence[Any]) -> None:
        """Restore the entries that `stored` returned, for different keys."""
        assert self._store is not None, f"{self.name} has no store"
        self._store.put_all(keys, entries)


class TableSourceNode(StoredTable):
    """The last value of each key of a topic. Records without a key are none of a table.

    It has a store if old rows or a join need one. Where the plan gives the table another key at
    once (`is_rekeyed`), only those who must have old rows make it keep them.
    """

    def __init__(
        self,
        name: str,
        completion: Completion,
        *,
        is_rekeyed: bool,
    ) -> None:
        super().__init__(name, is_stored=False)
        self._complete = completion.apply
        self._is_rekeyed = is_rekeyed

    def send_old(self, *, at_any_cost: bool) -> bool:
        if self._is_rekeyed and not at_any_cost:
            return False
        self.is_stored = self.sends_old = True
        return True

    def process(self, record: Record) -> None:
        if record.key is not None and self._complete(record):
            self.keep(record)
            self.forward(record)


class ToTableNode(StoredTable):
    """The last value of each key of a stream: after a table's key was changed."""

    def __init__(self, name: str) -> None:
        super().__init__(name, is_stored=True)

    def send_old(self, *, at_any_cost: bool) -> bool:
        self.sends_old = True
        return True

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.keep(record)
            self.forward(record)


class DerivedTable(TableNode):
    """A table whose rows follow from those of one other."""

    def __init__(self, parent: TableNode) -> None:
        super().__init__()
        self.parent = parent

    def send_old(self, *, at_any_cost: bool) -> bool:
        if self.parent.send_old(at_any_cost=at_any_cost):
            self.sends_old = True
        return self.sends_old

    def need_view(self) -> None:
        self.parent.need_view()

    @abstractmethod
    def derive(self, row: Row) -> Row | None:
        """The row that follows from the parent's, or None."""

    def get(self, key: StoreKey) -> tuple[Row, int] | None:
        parent_row = self.parent.get(key)
        if parent_row is None:
            return None
        row = self.derive(parent_row[0])
        return None if row is None else (row, parent_row[1])

    def rows_of(self, keys: Sequence[StoreKey]) -> list[Row | None]:
        derive = self.derive
        return [None if row is None else derive(row) for row in self.parent.rows_of(keys)]


class TableFilterNode(DerivedTable):
    """Rows for which the condition holds.

    One that no longer does is deleted downstream; if old rows are available, nothing is sent for
    one that did not match before either.
    """

    def __init__(self, parent: TableNode, condition: Evaluator, log: Log) -> None:
        super().__init__(parent)
        self._condition = condition.evaluate
        self._log = log
        self.sends_old = parent.send_old(at_any_cost=False)

    def derive(self, row: Row) -> Row | None:
        try:
            return row if self._condition(row) is True else None
        except EVALUATION_ERRORS as error:
            self._log("Error evaluating predicate", row, error)
            return None

    def process(self, record: Record) -> None:
        row, old = record.value, record.old_value
        record.value = None if row is None else self.derive(row)
        record.old_value = None if old is None or not self.sends_old else self.derive(old)
        if self.sends_old and record.value is None and record.old_value is None:
            return
        self.forward(record)


class TableSelectNode(DerivedTable):
    """Calculates the columns of old and new rows."""

    def __init__(self, parent: TableNode, columns: Sequence[Getter]) -> None:
        super().__init__(parent)
        self._columns = tuple(columns)

    def derive(self, row: Row) -> Row | None:
        return [column(row) for column in self._columns]

    def rows_of(self, keys: Sequence[StoreKey]) -> list[Row | None]:
        columns, rows = self._columns, self.parent.rows_of(keys)
        return [None if row is None else [column(row) for column in columns] for row in rows]

    def process(self, record: Record) -> None:
        row, old = record.value, record.old_value
        record.value = None if row is None else self.derive(row)
        record.old_value = None if old is None or not self.sends_old else self.derive(old)
        self.forward(record)


class TableGroupByNode(Node):
    """Takes the old row out of its group and puts the new one into its own: the record's
    `old_value` and `value`. Rows that are in no group are left out."""

    def __init__(
        self, parent: TableNode, group: Callable[[Row], Row | None], pick: Pick | None
    ) -> None:
        super().__init__()
        parent.send_old(at_any_cost=True)
        self._group = group
        self._pick = pick

    def process(self, record: Record) -> None:
        old, new = self._placed(record.old_value), self._placed(record.value)
        if old and new and old[0] == new[0]:
            self._send(record, new[0], new[1], old[1])
            return
        if old:
            self._send(record, old[0], None, old[1])
        if new:
            self._send(record, new[0], new[1], None)

    def _placed(self, row: Row | None) -> tuple[Row, Row] | None:
        if row is None:
            return None
        key = self._group(row)
        if key is None:
            return None
        return key, self._pick([*row, *key]) if self._pick else row

    def _send(self, record: Record, key: Row, value: Row | None, old: Row | None) -> None:
        self.forward(
            Record(
                key,
                value,
                record.timestamp_ms,
                None,
                record.headers,
                record.partition,
                record.offset,
                old,
            )
        )
