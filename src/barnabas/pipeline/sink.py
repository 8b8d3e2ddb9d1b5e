"""Where a query's results go: Kafka topics and warehouse tables, in one step per micro-batch.

Exactly-once in effect: a replayed micro-batch has the same rows, its records carry the same keys
and values, and its directory in the warehouse is overwritten. With a TransactionalWriter the
records, too, are in their topics once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipeline.exactly_once import TransactionalWriter
from barnabas.pipeline.kafka_io import to_records, write_records
from barnabas.pipeline.warehouse import WarehouseTable


@dataclass(slots=True, frozen=True)
class Output:
    """One topic and table that a query feeds: how its rows follow from the query's."""

    topic: str
    rows: Callable[[DataFrame], DataFrame]
    key: str
    """SQL expression over the rows."""
    key_columns: tuple[str, ...]
    """The columns that the key is made of; none for a table of one row."""

    @property
    def table(self) -> str:
        """The warehouse table's name."""
        return self.topic.replace("-", "_")


class ResultSink:
    """Writes each micro-batch of one query; given to `foreachBatch`."""

    def __init__(
        self,
        spark: SparkSession,
        bootstrap_servers: str,
        warehouse: str,
        outputs: tuple[Output, ...],
        writer: TransactionalWriter | None = None,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._writer = writer
        self._outputs = [
            (output, WarehouseTable(spark, warehouse, output.table, list(output.key_columns)))
            for output in outputs
        ]

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Write the rows of a micro-batch to every output."""
        # Computed once: a second pass would run the stateful plan again.
        rows = rows.persist()
        try:
            results = [output.rows(rows) for output, _ in self._outputs]
            records = [
                to_records(result, output.topic, output.key)
                for result, (output, _) in zip(results, self._outputs, strict=True)
            ]
            self._write_records(reduce(DataFrame.unionAll, records), batch_id)
            for result, (_, table) in zip(results, self._outputs, strict=True):
                table.write(result, batch_id)
        finally:
            rows.unpersist()

    def _write_records(self, records: DataFrame, batch_id: int) -> None:
        if self._writer is None:
            write_records(records, self._bootstrap_servers)
        else:
            # One producer, one transaction: results pass through the driver. They are few, a row
            # for each key that has changed.
            self._writer.write(
                batch_id, lambda: [(row.topic, row.key, row.value) for row in records.collect()]
            )
