"""Sink of a query's results: Kafka topics and tables, in one step per micro-batch.

Exactly-once in effect: a replayed micro-batch has the same rows, its records carry the same keys
and values, and its part of a table is overwritten. With a TransactionalWriter the records, too, are
in their topics once.

Results pass through the driver: they are few, a row for each key that has changed. One Spark job
per micro-batch collects them; a job for each topic and table would cost many times as much.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from barnabas.spark.record_writer import OutgoingRecord

Rows = list[dict[str, Any]]


class ResultWriter(Protocol):
    """Writes the records of a micro-batch: RecordWriter or TransactionalWriter."""

    def write(self, batch_id: int, records: Sequence[OutgoingRecord]) -> object:
        """Return when they are acknowledged; raises KafkaException otherwise."""


class ResultTable(Protocol):
    """Stores the rows of a micro-batch, in place of those of an earlier try."""

    def write(self, rows: Rows, batch_id: int) -> None:
        """Return when they are stored."""


@dataclass(slots=True, frozen=True)
class Output:
    """One topic that a query feeds: how its rows, and their keys, follow from the query's rows."""

    topic: str
    rows: Callable[[Rows], Rows]
    key: Callable[[dict[str, Any]], str]


class ResultSink:
    """Writes each micro-batch of one query; given to `foreachBatch`."""

    def __init__(
        self, writer: ResultWriter, outputs: Sequence[tuple[Output, ResultTable | None]]
    ) -> None:
        self._writer = writer
        self._outputs = outputs

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write the rows of a micro-batch to every output, the topics first."""
        collected = [row.asDict(recursive=True) for row in rows.collect()]
        results = [(output, table, output.rows(collected)) for output, table in self._outputs]
        self._writer.write(
            batch_id,
            [
                (output.topic, output.key(row), to_json(row))
                for output, _, rows_of_output in results
                for row in rows_of_output
            ],
        )
        for _, table, rows_of_output in results:
            if table is not None:
                table.write(rows_of_output, batch_id)


def to_json(row: dict[str, Any]) -> str:
    """Return a row as compact JSON without the columns that are null, as Spark writes it."""
    present = {name: value for name, value in row.items() if value is not None}
    return json.dumps(present, separators=(",", ":"), ensure_ascii=False)
