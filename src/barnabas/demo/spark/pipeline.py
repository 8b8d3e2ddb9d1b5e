"""The demo's Python pipeline: `recommendations` ranks interests, `warehouse` keeps Parquet tables.

The SQL server runs it in its Spark session (`barnabas.sql.pipelines`), with the directory of the
tables as the property `barnabas.demo.warehouse`. Without that property there are no such tables: a
connector keeps the warehouse.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.demo import topics
from barnabas.demo.reading import AvroValues, read_row
from barnabas.demo.schemas import first_schema
from barnabas.demo.spark.interests import interest_totals, recommendations, top_searches
from barnabas.demo.spark.warehouse import WarehouseTable, schema_of
from barnabas.schemas.registry_client import RegistryClient
from barnabas.spark.avro_topic import AvroTopic
from barnabas.spark.exactly_once import TransactionalWriter
from barnabas.spark.hosting import PipelineContext, PythonQuery
from barnabas.spark.interruption import interruptible
from barnabas.spark.kafka_io import read_stream
from barnabas.spark.record_writer import RecordWriter
from barnabas.spark.sink import Output, ResultSink, ResultWriter, Rows

WAREHOUSE_PROPERTY: Final = "barnabas.demo.warehouse"
_RANKING_TRIGGER: Final = "1 second"
_WAREHOUSE_TRIGGER: Final = "5 seconds"
_TABLES: Final[dict[str, tuple[type, tuple[str, ...]]]] = {
    topics.STATION_AVAILABILITY: (topics.StationAvailability, ("station_id", "window_start_ms")),
    topics.ENERGY_PER_MINUTE: (topics.EnergyPerMinute, ("city", "window_start_ms")),
    topics.ACTIVITY_PER_MINUTE: (topics.ActivityPerMinute, ("kind", "window_start_ms")),
    topics.TOP_SEARCHES: (topics.TopSearches, ()),
    topics.RECOMMENDATIONS: (topics.Recommendations, ("item_id",)),
}
"""By topic: the columns of its table, and those that identify a row."""


def pipeline(context: PipelineContext) -> list[PythonQuery]:
    """Return the two queries; the first alone where the warehouse is a connector's."""
    # A second of events is little: one partition of state is enough.
    context.spark.conf.set("spark.sql.shuffle.partitions", "1")
    queries = [PythonQuery(topics.RECOMMENDATIONS_GROUP, lambda: _start_ranking(context))]
    if WAREHOUSE_PROPERTY in context.properties:
        queries.append(PythonQuery(topics.WAREHOUSE_GROUP, lambda: _start_warehouse(context)))
    return queries


def table_of(warehouse: str, topic: str) -> WarehouseTable:
    """Return the warehouse's table of a result topic."""
    row, keys = _TABLES[topic]
    return WarehouseTable(warehouse, topic.replace("-", "_"), schema_of(row), keys)


def _start_ranking(context: PipelineContext) -> StreamingQuery:
    values = AvroTopic(
        RegistryClient(context.registry_url),
        topics.USER_ACTIVITY,
        first_schema(topics.USER_ACTIVITY),
    )
    values.refresh()
    events = read_stream(
        context.spark,
        context.bootstrap_servers,
        topics.USER_ACTIVITY,
        values.decode,
        is_committed_only=context.is_exactly_once,
        kafka=context.java_kafka,
    )
    warehouse = context.properties.get(WAREHOUSE_PROPERTY)
    searches = Output(topics.TOP_SEARCHES, top_searches, lambda _: topics.TOP_SEARCHES_KEY)
    together = Output(topics.RECOMMENDATIONS, recommendations, lambda row: str(row["item_id"]))
    sink = ResultSink(
        _writer(context),
        [
            (output, None if warehouse is None else table_of(warehouse, output.topic))
            for output in (searches, together)
        ],
    )
    return (
        interest_totals(events)
        .writeStream.queryName(topics.RECOMMENDATIONS_GROUP)
        .outputMode("complete")  # all there is: a ranking
        .option("checkpointLocation", _checkpoint(context, topics.RECOMMENDATIONS_GROUP))
        .trigger(processingTime=_RANKING_TRIGGER)
        .foreachBatch(interruptible(sink.write))
        .start()
    )


def _writer(context: PipelineContext) -> ResultWriter:
    if not context.is_exactly_once:
        return RecordWriter(context.bootstrap_servers, context.kafka)
    checkpoint = _checkpoint(context, topics.RECOMMENDATIONS_GROUP)
    group = topics.RECOMMENDATIONS_GROUP
    return TransactionalWriter(context.bootstrap_servers, group, checkpoint, context.kafka)


def _start_warehouse(context: PipelineContext) -> StreamingQuery:
    values = AvroValues(RegistryClient(context.registry_url))
    warehouse = context.properties[WAREHOUSE_PROPERTY]
    tables = {topic: table_of(warehouse, topic) for topic in topics.SQL_TOPICS}

    def write(records: DataFrame, batch_id: int) -> None:
        latest: dict[tuple[str, bytes], bytes] = {}
        for topic, key, value in records.collect():
            latest[topic, bytes(key)] = bytes(value)
        rows: dict[str, Rows] = defaultdict(list)
        for (topic, key), value in latest.items():
            row = read_row(topic, key, value, values)
            if row is not None:
                rows[topic].append(row)
        for topic, frame in rows.items():
            tables[topic].write(frame, batch_id)

    return (
        _result_records(context)
        .writeStream.queryName(topics.WAREHOUSE_GROUP)
        .option("checkpointLocation", _checkpoint(context, topics.WAREHOUSE_GROUP))
        .trigger(processingTime=_WAREHOUSE_TRIGGER)
        .foreachBatch(interruptible(write))
        .start()
    )


def _result_records(context: PipelineContext) -> DataFrame:
    """Return the results of the SQL statements: a partition's records in their order."""
    options: dict[str, Any] = {
        "kafka.bootstrap.servers": context.bootstrap_servers,
        **{f"kafka.{key}": value for key, value in context.java_kafka.items()},
        "kafka.isolation.level": "read_committed",
        "subscribe": ",".join(topics.SQL_TOPICS),
        "startingOffsets": "earliest",
    }
    reader = context.spark.readStream.format("kafka").options(**options)
    return reader.load().select("topic", "key", "value").where("value IS NOT NULL").coalesce(1)


def _checkpoint(context: PipelineContext, name: str) -> str:
    return os.path.join(context.state_directory, name)
