"""Iceberg's sink on a separate Spark, for a test that starts this as a process.

It takes a JSON object on its standard input (`warehouse`, `hadoop`, `log`) and prints one with
what the tables hold in the end. Steps fail as they would if the process was killed there.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from barnabas.connect.connectors.base import SinkRange, TaskContext
from barnabas.connect.connectors.iceberg import tables
from barnabas.connect.connectors.iceberg.connectors import IcebergSink
from barnabas.connect.connectors.iceberg.tables import IcebergTables
from barnabas.connect.connectors.lake.sink import Change, Offsets, RangeRows
from barnabas.connect.record import SinkRecord
from barnabas.connect.tasks.spark import add_packages
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import ConnectError, RetriableError
from barnabas.schemas.data.schema import Schema, Struct
from barnabas.spark.session import SessionOptions, start_session
from support.connect.lake_task import LakeTask

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

    def drain(self, spark: Any, settings: dict[str, str], name: str = "Lake-Sink") -> None:
        """Run a task until all is written or something fails."""
        context = TaskContext(name, 0, settings, session=lambda: spark)
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


def be_late(spark: Any, settings: dict[str, str]) -> list[str]:
    """Let a task commit after another has taken over; returns how it was refused.

    First the other's commit is before the late one's look at the table, then right after it.
    """
    old, new = (
        LakeTask(IcebergSink().writer(TaskContext("late", 0, settings, session=lambda: spark)))
        for _ in range(2)
    )
    old.commit(*old.written(0, 5))
    work = old.written(5, 20)
    new.commit(*new.written(5, 15))
    refusals = [refusal(old, work)]
    old.commit(*work)
    new.commit_until_done(15, 30)

    old.commit_until_done(30, 31)
    new.commit_until_done(30, 31)
    work, others = old.written(31, 45), new.written(31, 40)
    check, left = Change.check, [1]

    def passing(self: Change, offsets: Offsets) -> None:
        check(self, offsets)
        if left:
            left.pop()
            tables._TURNS.clear()  # another process has its own turns
            new.commit(*others)

    Change.check = passing  # type: ignore[method-assign]
    try:
        refusals.append(refusal(old, work))
    finally:
        Change.check = check  # type: ignore[method-assign]
    old.commit(*work)
    return refusals


def refusal(task: LakeTask, work: tuple[SinkRange, RangeRows]) -> str:
    """Return how a commit is refused."""
    try:
        task.commit(*work)
    except RetriableError as error:
        return str(error)
    raise AssertionError("the commit was not refused")


def reader(spark: Any, given: dict[str, Any]) -> Any:
    """Return a session of a user who reads the tables."""
    session = spark.newSession()
    prefix = "spark.sql.catalog.lake"
    session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set(f"{prefix}.type", "hadoop")
    session.conf.set(f"{prefix}.warehouse", given["warehouse"])
    for name, value in given["hadoop"].items():
        session.conf.set(f"{prefix}.hadoop.{name}", value)
    return session


def write_behind(spark: Any, settings: dict[str, str], given: dict[str, Any]) -> int:
    """Let another writer write after the sink, and let all other snapshots expire.

    Then the sink reads its topic from the beginning. Returns the number of rows that it adds to the
    table, and leaves one row in the topic for later.
    """
    topic = Topic()
    for number in range(3):
        topic.add(NARROW, id=number)
        topic.drain(spark, settings)
    session = reader(spark, given)
    session.sql("INSERT INTO lake.db.kept VALUES (100, NULL)")
    load = session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
    table = load(session._jsparkSession, "lake.db.kept")
    table.expireSnapshots().expireOlderThan(2**62).retainLast(1).commit()
    before = session.table("lake.db.kept").count()
    topic.committed = 0
    topic.drain(spark, settings)
    after = reader(spark, given).table("lake.db.kept").count()
    topic.add(NARROW, id=3)
    topic.committed = 0
    topic.drain(spark, settings)
    return int(after - before)


def tend(spark: Any, settings: dict[str, str]) -> None:
    """Commit a dozen times with one task, which tends the table after each."""
    topic = Topic()
    writer = IcebergSink().writer(TaskContext("tended", 0, settings, session=lambda: spark))
    for number in range(12):
        topic.add(NARROW, id=number)
        where = SinkRange("orders", 0, number, number + 1)
        writer.commit([where], [writer.write(iter(topic.records[number:]), where)])


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
    add_packages(spark, IcebergSink().spark_packages(common))
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

    late = {**common, "iceberg.tables": "db.late"}
    upserted = {
        **common,
        "iceberg.tables": "db.late_upserts",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.tables.default-id-columns": "key",
    }
    refusals = [*be_late(spark, late), *be_late(spark, upserted)]
    elsewhere = {**appended, "iceberg.catalog.warehouse": given["warehouse"] + "/elsewhere"}
    apart = Topic()
    apart.add(NARROW, id=1, city="Lima")
    apart.drain(spark, elsewhere)
    audited = {**appended, "iceberg.tables.default-commit-branch": "audit"}
    aside = Topic()
    for number in range(2):
        aside.add(NARROW, id=number, city="Lima")
        aside.drain(spark, audited, "Auditor")
    kept = {**common, "iceberg.tables": "db.kept"}
    forgotten = write_behind(spark, kept, given)
    tended = {
        **common,
        "iceberg.tables": "db.tended",
        "iceberg.catalog.table-default.history.expire.max-snapshot-age-ms": "1",
        "barnabas.iceberg.expire-snapshots.interval-ms": "1",
        "barnabas.iceberg.rewrite-data-files.interval-ms": "1",
    }
    tend(spark, tended)
    session = reader(spark, given)

    def column(table: str, name: str) -> list[Any]:
        rows = session.sql(f"SELECT {name} FROM lake.db.{table} ORDER BY {name}").collect()
        return [row[name] for row in rows]

    def ids(table: str) -> list[Any]:
        rows = session.sql(f"SELECT id, city FROM lake.db.{table} ORDER BY id").collect()
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
        "refusals": refusals,
        "late": column("late", "offset"),
        "late_upserts": column("late_upserts", "offset"),
        "branches": column("late.refs", "name"),
        "kept": column("kept", "id"),
        "forgotten": forgotten,
        "tended": column("tended", "id"),
        "tended_files": session.table("lake.db.tended.files").count(),
        "tended_snapshots": session.table("lake.db.tended.snapshots").count(),
        "audited": ids("second.branch_audit"),
    }


def main() -> None:
    """Read what is given, and print what is there."""
    given = json.load(sys.stdin)
    options = SessionOptions(
        app_name="iceberg-driver",
        packages=(),
        shuffle_partitions=1,
        small_batches=True,
        telemetry_path=given["log"],
    )
    spark = start_session(options)
    # Tasks run in threads: each has a thread of the JVM.
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(run, given, spark).result()
    spark.stop()
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
