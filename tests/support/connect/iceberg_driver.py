"""Iceberg's sink on a Spark of its own, for a test that starts this as a process.

It takes a JSON object on its standard input (`warehouse`, `spark`, `hadoop`) and prints one with
what the tables hold in the end. Steps fail as they would if the process was killed there.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from barnabas.connect.connectors.base import SinkRange, TaskContext
from barnabas.connect.connectors.iceberg.connectors import IcebergSink
from barnabas.connect.connectors.iceberg.tables import PACKAGE, IcebergTables
from barnabas.connect.data import builder
from barnabas.connect.data.schema import Schema, Struct
from barnabas.connect.errors.kinds import ConnectError
from barnabas.connect.record import SinkRecord
from barnabas.pipeline.session import SessionOptions, start_session

HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.4.1"
NARROW = builder.struct_of({"id": builder.INT32, "city": builder.OPTIONAL_STRING})
WIDE = builder.struct_of(
    {
        "id": builder.INT64,
        "city": builder.OPTIONAL_STRING,
        "op": builder.OPTIONAL_STRING,
        "at": builder.optional(builder.TIMESTAMP_SCHEMA),
        "tags": builder.optional(builder.array_of(builder.STRING)),
    }
)


class Topic:
    """Records of one partition, and the group's offset."""

    def __init__(self) -> None:
        self.records: list[SinkRecord] = []
        self.committed = 0

    def add(self, schema: Schema, **values: Any) -> None:
        """Append a record."""
        self.records.append(
            SinkRecord(
                topic="orders",
                partition=0,
                offset=len(self.records),
                original_topic="orders",
                original_partition=0,
                original_offset=len(self.records),
                value_schema=schema,
                value=Struct.of(schema, values),
            )
        )

    def drain(self, spark: Any, settings: dict[str, str]) -> None:
        """Run a task until all is written or something fails."""
        context = TaskContext("Lake-Sink", 0, settings, spark=spark)
        writer = IcebergSink().writer(context)
        there = SinkRange("orders", 0, self.committed, len(self.records))
        planned = writer.plan([there], 2**40)
        for where in planned or [there]:
            message = writer.write(iter(self.records[where.start : where.end]), where)
            offsets = writer.commit([where], [message])
            assert offsets is not None
            self.committed = offsets["orders", 0]


class InjectedError(ConnectError):
    """Ends a task, as a crash would."""


def fail_once(topic: Topic, spark: Any, settings: dict[str, str], *, is_after: bool) -> None:
    """Drain with a commit of a table that fails before or after it is there; then again."""
    call, left = IcebergTables.commit, [1]

    def failing(self: IcebergTables, change: Any) -> None:
        if is_after:
            call(self, change)
        if left:
            left.pop()
            raise InjectedError
        if not is_after:
            call(self, change)

    IcebergTables.commit = failing  # type: ignore[method-assign]
    try:
        topic.drain(spark, settings)
        raise AssertionError("nothing failed")
    except InjectedError:
        pass
    finally:
        IcebergTables.commit = call  # type: ignore[method-assign]
    topic.drain(spark, settings)


def run(given: dict[str, Any], spark: Any) -> dict[str, Any]:
    """Append and merge, with failures; returns what is there."""
    common = {
        "iceberg.catalog": "lake",
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": given["warehouse"],
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.evolve-schema-enabled": "true",
        "iceberg.control.commit.interval-ms": "0",
        **{f"iceberg.hadoop.{name}": value for name, value in given["hadoop"].items()},
    }
    appended = {**common, "iceberg.tables": "db.appended,db.second"}
    merged = {
        **common,
        "iceberg.tables": "db.merged",
        "iceberg.tables.default-id-columns": "id",
        "iceberg.tables.default-partition-by": "bucket(id, 4)",
        "iceberg.tables.cdc-field": "op",
    }
    topic = Topic()
    for number in range(5):
        topic.add(NARROW, id=number, city="Oslo")
    topic.drain(spark, appended)
    for number in range(5, 10):
        topic.add(WIDE, id=number, city="Rome", tags=["a", "b"])
    fail_once(topic, spark, appended, is_after=True)
    topic.add(WIDE, id=10)
    fail_once(topic, spark, appended, is_after=False)

    changes = Topic()
    for number in range(6):
        changes.add(WIDE, id=number, city="Oslo", op="c")
    fail_once(changes, spark, merged, is_after=True)
    changes.add(WIDE, id=1, city="Rome", op="u")
    changes.add(WIDE, id=2, op="d")
    changes.add(WIDE, id=77, op="d")
    changes.add(WIDE, id=8, city="Pisa", op="u")
    fail_once(changes, spark, merged, is_after=True)
    changes.add(WIDE, id=8, op="d")
    fail_once(changes, spark, merged, is_after=False)

    def ids(table: str) -> list[Any]:
        rows = spark.sql(f"SELECT id, city FROM lake.db.{table} ORDER BY id").collect()
        return [[row.id, row.city] for row in rows]

    missing = {**appended, "iceberg.tables": "db.none", "iceberg.tables.auto-create-enabled": "no"}
    missing["iceberg.tables.auto-create-enabled"] = "false"
    topic.add(WIDE, id=11)
    try:
        topic.drain(spark, missing)
        refused = ""
    except ConnectError as error:
        refused = str(error)
    return {
        "appended": ids("appended"),
        "second": ids("second"),
        "merged": ids("merged"),
        "committed": [topic.committed, changes.committed],
        "refused": refused,
    }


def main() -> None:
    """Read what is given, and print what is there."""
    given = json.load(sys.stdin)
    packages = (PACKAGE, HADOOP_AWS) if given["spark"] else (PACKAGE,)
    options = SessionOptions(
        app_name="iceberg-driver",
        packages=packages,
        shuffle_partitions=1,
        small_batches=True,
        telemetry_path=given["log"],
        settings=given["spark"],
    )
    spark = start_session(options)
    found: dict[str, Any] = {}
    # Tasks run in threads: each has a thread of the JVM.
    worker = threading.Thread(target=lambda: found.update(run(given, spark)))
    worker.start()
    worker.join()
    spark.stop()
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
