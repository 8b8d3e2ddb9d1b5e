"""Steps of streams that need no state: filter, select, new keys, flat map, groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from barnabas.sql.runtime.evaluation import (
    EVALUATION_ERRORS,
    BatchedCall,
    Evaluator,
    Log,
    TableFunction,
    prepared,
)
from barnabas.sql.runtime.layout import Pick
from barnabas.sql.runtime.node import Node
from barnabas.sql.runtime.records import Record, Row
from barnabas.sql.types import Value

Getter = Callable[[Row], Value]

TIMESTAMP_MAX_MS = 2**62
"""The latest time of a record: with the size of a window added, it still has 64 bits."""


class Completion:
    """What a source does with a record: takes its timestamp from a column, if one is named, and
    completes the row with what lies outside of the value: headers, key, pseudo columns."""

    def __init__(
        self,
        extras: Sequence[Callable[[Record], Value]],
        timestamp: Callable[[Record], int] | None,
        log: Log,
    ) -> None:
        self._extras = tuple(extras)
        self._timestamp = timestamp
        self._log = log

    def apply(self, record: Record) -> bool:
        """Complete the record; False if it has no timestamp that windows can be reckoned with,
        and is to be dropped."""
        if self._timestamp is not None:
            record.timestamp_ms = self._timestamp(record)
            if record.timestamp_ms < 0:
                return False  # there is a note already
        if not 0 <= record.timestamp_ms <= TIMESTAMP_MAX_MS:
            self._log(f"Skipping record with timestamp {record.timestamp_ms}", record.value, None)
            return False
        if self._extras and record.value is not None:
            record.value = [*record.value, *[extra(record) for extra in self._extras]]
        return True


class StreamSourceNode(Node):
    """Adds pseudo columns and the source's own timestamp to records."""

    def __init__(self, completion: Completion) -> None:
        super().__init__()
        self._complete = completion.apply

    def process(self, record: Record) -> None:
        if self._complete(record):
            self.forward(record)

    def process_all(self, records: Sequence[Record]) -> None:
        self.forward_all([record for record in records if self._complete(record)])


class StreamFilterNode(Node):
    """Passes records for which the condition holds; without a value it holds for none."""

    def __init__(self, condition: Evaluator, log: Log) -> None:
        super().__init__()
        self._condition = condition.evaluate
        self.batched = condition.batched
        self._log = log

    def process(self, record: Record) -> None:
        if self._passes(record.value):
            self.forward(record)

    def process_all(self, records: Sequence[Record]) -> None:
        with prepared(self.batched, records):
            passed = [record for record in records if self._passes(record.value)]
        self.forward_all(passed)

    def _passes(self, row: Row | None) -> bool:
        if row is None:
            return False
        try:
            return self._condition(row) is True
        except EVALUATION_ERRORS as error:
            self._log("Error evaluating predicate", row, error)
            return False


class StreamSelectNode(Node):
    """Calculates rows. `key_places` picks among the key's values where some are left out."""

    def __init__(
        self,
        columns: Sequence[Getter],
        key_places: Sequence[int] | None,
        batched: Sequence[BatchedCall] = (),
    ) -> None:
        super().__init__()
        self._columns = tuple(columns)
        self._key_places = key_places
        self.batched = batched

    def process(self, record: Record) -> None:
        self._select(record)
        self.forward(record)

    def process_all(self, records: Sequence[Record]) -> None:
        with prepared(self.batched, records):
            for record in records:
                self._select(record)
        self.forward_all(records)

    def _select(self, record: Record) -> None:
        row = record.value
        if row is not None:
            record.value = [column(row) for column in self._columns]
        if self._key_places is not None and record.key is not None:
            key = record.key
            record.key = [key[place] for place in self._key_places] or None


class SelectKeyNode(Node):
    """Gives each record the key that expressions calculate; none for PARTITION BY NULL.

    An expression that refers to key columns alone (`of_key`) has a value where the row is null.
    """

    def __init__(
        self,
        expressions: Sequence[Getter],
        of_key: Sequence[bool],
        key_row: Callable[[Row | None], Row],
        pick: Pick | None,
    ) -> None:
        super().__init__()
        self._expressions = tuple(zip(expressions, of_key, strict=True))
        self._key_row = key_row
        self._pick = pick

    def process(self, record: Record) -> None:
        row = record.value
        if row is None:
            key_row = self._key_row(record.key)
            key = [e(key_row) if of_key else None for e, of_key in self._expressions]
        else:
            key = [expression(row) for expression, _ in self._expressions]
            if self._pick:
                record.value = self._pick([*row, *key])
        record.key = key or None
        self.forward(record)


class FlatMapNode(Node):
    """Makes a record of each of the rows that the table functions give together."""

    def __init__(
        self, functions: Sequence[TableFunction], names: Sequence[str], pick: Pick | None, log: Log
    ) -> None:
        super().__init__()
        self._functions = tuple(zip(functions, names, strict=True))
        self._pick = pick
        self._log = log

    def process(self, record: Record) -> None:
        row = record.value
        if row is None:
            return
        pick = self._pick
        made = [self._call(function, name, row) for function, name in self._functions]
        for values in zip_longest(*made):
            longer = [*row, *values]
            self.forward(with_value(record, pick(longer) if pick else longer))

    def _call(self, function: TableFunction, name: str, row: Row) -> list[Value]:
        try:
            values = function(row)
            if values is not None:
                return list(values)
            self._log(f"Table function {name} returned null", row, None)
        except EVALUATION_ERRORS as error:
            self._log(f"Table function {name} threw an exception", row, error)
        return []


class StreamGroupByNode(Node):
    """Gives records the key of their group; those that are in none are left out."""

    def __init__(self, group: Callable[[Row], Row | None], pick: Pick | None) -> None:
        super().__init__()
        self._group = group
        self._pick = pick

    def process(self, record: Record) -> None:
        row = record.value
        if row is None:
            return
        key = self._group(row)
        if key is None:
            return
        record.key = key
        record.window = None
        if self._pick:
            record.value = self._pick([*row, *key])
        self.forward(record)


def grouper(expressions: Sequence[Evaluator], log: Log) -> Callable[[Row], Row | None]:
    """Return what tells the group of a row; None where an expression is null or fails."""
    evaluators = tuple(expression.evaluate for expression in expressions)

    def group(row: Row) -> Row | None:
        key = []
        for index, evaluate in enumerate(evaluators):
            try:
                value = evaluate(row)
            except EVALUATION_ERRORS as error:
                log(f"Error calculating group-by column with index {index}", row, error)
                return None
            if value is None:
                log(f"Group-by column with index {index} resolved to null", row, None)
                return None
            key.append(value)
        return key

    return group


class NotNullKeyNode(Node):
    """Stands before a repartition: records without a key have no partition to go to.

    A single-column key that is null is not a key: every format reads it back like that. `keeps` is
    set if the next step keeps records without a key (a left join).
    """

    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        self._keeps = keeps

    def process(self, record: Record) -> None:
        key = record.key
        if key is None or (len(key) == 1 and key[0] is None):
            if not self._keeps:
                return
            record.key = None
        self.forward(record)


def with_value(record: Record, value: Row | None) -> Record:
    """Another record like this, with that value."""
    return Record(
        record.key,
        value,
        record.timestamp_ms,
        record.window,
        record.headers,
        record.partition,
        record.offset,
    )
