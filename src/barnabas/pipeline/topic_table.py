"""A compacted topic as a table that streams join: read once, and known to be the latest.

A frame that reads the topic is read again by every micro-batch that joins it, which costs more than
all the rest of a small micro-batch. So the rows are kept in the plan, and each micro-batch asks
whether the topic has moved on since: a question of two milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas.pipeline.kafka_io import Decode, read_table

ASK_TIMEOUT_SECONDS: Final = 10.0

Ends = dict[int, int]
"""By partition: the next offset to be written."""


class TableChangedError(Exception):
    """A query joins a table that is not the latest; it starts again from its checkpoint."""


class TableEmptyError(Exception):
    """A table has no rows yet; a query that joins it cannot start.

    Spark joins nothing to an empty table without so much as reading the stream. What stands below
    the join keeps no state for that micro-batch then, and the next fails for want of it.
    """


@dataclass(slots=True, frozen=True)
class TableVersion:
    """The rows of a table when its topic ended at `ends`, or some later."""

    frame: DataFrame
    ends: Ends


class TopicTable:
    """One table. Its methods may be called from any thread."""

    def __init__(
        self, spark: SparkSession, bootstrap_servers: str, topic: str, decode: Decode
    ) -> None:
        self._spark = spark
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._decode = decode
        self._version: TableVersion | None = None
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": f"pipeline-table-{topic}",
                "client.id": "barnabas-pipeline",
                "enable.auto.commit": False,
                "log_level": 2,
            }
        )

    def read(self) -> TableVersion:
        """Return the latest version.

        Raises TableEmptyError where it has no rows, KafkaException where the cluster does not
        answer.
        """
        ends = self._ends()  # first: what is written meanwhile counts as a change
        if self._version is not None and self._version.ends == ends:
            return self._version
        frame = read_table(self._spark, self._bootstrap_servers, self._topic, self._decode)
        rows = frame.collect()
        if not rows:
            raise TableEmptyError(f"the table {self._topic} has no rows")
        table = pa.Table.from_pylist(
            [row.asDict(recursive=True) for row in rows], to_arrow_schema(frame.schema)
        )
        # From Arrow, small rows become a part of the plan: no job reads them again.
        self._version = TableVersion(self._spark.createDataFrame(table, frame.schema), ends)
        return self._version

    def ensure_latest(self, version: TableVersion) -> None:
        """Raise TableChangedError where the topic has moved on since `version` was read.

        Asked after a micro-batch's offsets were planned, so each of its events is joined to what
        had been written of the table before that event.
        """
        if self._ends() != version.ends:
            raise TableChangedError(f"the table {self._topic} has changed")

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _ends(self) -> Ends:
        known = self._consumer.list_topics(self._topic, ASK_TIMEOUT_SECONDS).topics[self._topic]
        return {
            partition: self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, partition), ASK_TIMEOUT_SECONDS
            )[1]
            for partition in known.partitions
        }
