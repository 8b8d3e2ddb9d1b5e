"""Iceberg's tables, through Spark's catalogs and SQL, and their history.

Offsets are a property of each snapshot, `barnabas.connect.offsets.<connector>` (see `property_of`):
a JSON object of all partitions that the connector has written to the table.

Iceberg applies an append to the current state of the table, so a task that lost its partitions long
ago could still add its rows. So a change is written to a new branch, which begins at the table's
current state. Once it is there, `main` (or the branch that commits go to) is moved on to it, which
Iceberg refuses if that has moved in the meantime: what the table said when the branch was made is
true when it becomes the table.

The summary of a connector's newest snapshot has the connector's progress. Others may write behind
it, join its files or expire snapshots: a tag keeps that one, moved in the same commit as the
branch.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from barnabas.connect.connectors.base import TopicPartition
from barnabas.connect.connectors.lake.settings import LakeSettings
from barnabas.connect.connectors.lake.sink import Change, Offsets, Tables, is_refused
from barnabas.schemas.data.errors import ConnectError, RetriableError

PROPERTY: Final = "barnabas.connect.offsets."
CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
_DELETED: Final = "__barnabas_deleted"
_ERROR_CHARACTERS_MAX: Final = 1000
_TURNS: Final[dict[str, Lock]] = {}
"""Of each table: two tasks of one process would refuse each other's commits, and write again."""
MAIN: Final = "main"
ABANDONED_AFTER_MS: Final = 24 * 60 * 60 * 1000
"""A branch that a crash left over goes with the next expiry of snapshots after this time."""
FOR_EVER_MS: Final = 2**63 - 1
TAG: Final = "barnabas_offsets_"
_log: Final = logging.getLogger(__name__)


class IcebergTables(Tables):
    """The tables of one catalog of a Spark session."""

    def __init__(
        self,
        spark: Any,
        connector: str,
        catalog: str,
        properties: Mapping[str, str],
        hadoop: Mapping[str, str],
        settings: LakeSettings,
        maintenance: Maintenance | None = None,
    ) -> None:
        # A separate session, since another connector's catalog of the same name may differ.
        self._spark = spark.newSession()
        self._property = property_of(connector)
        self._catalog = catalog
        self._settings = settings
        self._maintenance = maintenance
        self._secrets = [v for k, v in {**properties, **hadoop}.items() if _is_secret(k)]
        prefix = f"spark.sql.catalog.{catalog}"
        self._spark.conf.set(prefix, CATALOG)
        for name, value in {"cache-enabled": "false", **properties}.items():
            self._spark.conf.set(f"{prefix}.{name}", value)
        for name, value in hadoop.items():
            self._spark.conf.set(f"{prefix}.hadoop.{name}", value)

    def offsets(self, table: str, partitions: Sequence[TopicPartition]) -> Offsets:
        """Ask the table's snapshots."""
        with self._asking(table):
            if not self._spark.catalog.tableExists(self._name(table)):
                return {}
            return _of_places(self._history(table).offsets(), partitions)

    def commit(self, change: Change) -> None:
        """Append, or merge by ids."""
        change.rows = texts_of_times(change.rows)
        turn = _TURNS.setdefault(f"{self._catalog}.{change.table}", Lock())
        with turn, self._asking(change.table):
            self._prepare(change)
            history = self._history(change.table)
            with history.branch() as branch:
                stored = history.offsets(branch)
                change.check(_of_places(stored, change.offsets))
                new = {_key(place): offset for place, offset in change.offsets.items()}
                self._write(change, branch, json.dumps(stored | new, sort_keys=True))
            self._maintain(change.table, history)

    def _maintain(self, table: str, history: History) -> None:
        if self._maintenance is None:
            return
        is_main = (self._settings.of_table(table).branch or MAIN) == MAIN
        for job in self._maintenance.due(table):
            if is_main or job is not rewrite_data_files:
                self._maintenance.do(
                    job, self._spark, history.table(), lambda error: self._text(table, error)
                )

    def _history(self, table: str) -> History:
        target = self._settings.of_table(table).branch or MAIN
        return History(self._spark, self._name(table), self._property, target)

    def _write(self, change: Change, branch: str, offsets: str) -> None:
        names = self._columns(change)
        target = f"{self._name(change.table)}.branch_{branch}"
        if change.ids:
            self._merge(change, target, names, offsets)
        else:
            frame = self._with_all_columns(change.table, change.rows.select(names))
            writer = frame.writeTo(target)
            writer.option(f"snapshot-property.{self._property}", offsets).append()

    def _merge(self, change: Change, target: str, names: list[str], offsets: str) -> None:
        rows = change.rows.select(names)
        rows = rows.append_column(_DELETED, pa.array([False] * len(rows), pa.bool_()))
        gone = change.deleted.append_column(
            _DELETED, pa.array([True] * len(change.deleted), pa.bool_())
        )
        source = pa.concat_tables([rows, gone], promote_options="permissive")
        view = f"barnabas_{id(change):x}"
        self._spark.createDataFrame(_all_nullable(source)).createOrReplaceTempView(view)
        same = " AND ".join(f"o.{quoted(name)} = n.{quoted(name)}" for name in change.ids)
        columns = ", ".join(quoted(name) for name in names)
        values = ", ".join(f"n.{quoted(name)}" for name in names)
        updates = ", ".join(f"o.{quoted(name)} = n.{quoted(name)}" for name in names)
        try:
            with self._commit_properties({self._property: offsets}):
                self._spark.sql(
                    f"MERGE INTO {target} o USING {view} n ON {same} "
                    f"WHEN MATCHED AND n.{_DELETED} THEN DELETE "
                    f"WHEN MATCHED THEN UPDATE SET {updates} "
                    f"WHEN NOT MATCHED AND NOT n.{_DELETED} "
                    f"THEN INSERT ({columns}) VALUES ({values})"
                )
        finally:
            self._spark.catalog.dropTempView(view)

    @contextmanager
    def _commit_properties(self, properties: Mapping[str, str]) -> Iterator[None]:
        """Iceberg takes properties of SQL's commits from a variable of the JVM's thread.

        Its method for that wants a callback, which Py4J would call in another thread.
        """
        jvm = self._spark._jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        holder = loader.loadClass("org.apache.iceberg.spark.CommitMetadata")
        variable = holder.getDeclaredField("COMMIT_PROPERTIES")
        variable.setAccessible(True)
        local = variable.get(None)
        java = jvm.java.util.HashMap()
        for name, value in properties.items():
            java.put(name, value)
        local.set(java)
        try:
            yield
        finally:
            local.remove()

    def _prepare(self, change: Change) -> None:
        """See that the table is there and has the columns."""
        name = self._name(change.table)
        if not self._spark.catalog.tableExists(name):
            self._create(change)
            return
        if not self._settings.is_evolved:
            return
        table = self._spark.table(name)
        known = {one.name: one for one in table.schema.fields}
        for column in change.rows.schema:
            wanted = spark_type(column.type)
            column_type = known.get(column.name)
            if column_type is None:
                self._alter(name, f"ADD COLUMN {quoted(column.name)} {wanted}")
            elif is_wider(column_type.dataType.simpleString(), wanted):
                self._alter(name, f"ALTER COLUMN {quoted(column.name)} TYPE {wanted}")
            if column_type is not None and not column_type.nullable and column.nullable:
                self._alter(name, f"ALTER COLUMN {quoted(column.name)} DROP NOT NULL")
        for missing in known.keys() - set(change.rows.column_names):
            if not known[missing].nullable:
                self._alter(name, f"ALTER COLUMN {quoted(missing)} DROP NOT NULL")

    def _alter(self, name: str, what: str) -> None:
        self._spark.sql(f"ALTER TABLE {name} {what}")

    def _create(self, change: Change) -> None:
        if not self._settings.is_created:
            raise ConnectError(
                f"table {change.table} is not in catalog {self._catalog}, and "
                "iceberg.tables.auto-create-enabled is false"
            )
        columns = [
            f"{quoted(one.name)} {spark_type(one.type)}"
            + ("" if one.nullable or self._settings.is_optional else " NOT NULL")
            for one in change.rows.schema
        ]
        namespace = change.table.rpartition(".")[0]
        if namespace:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._name(namespace)}")
        parts = [_partition(one) for one in change.settings.partition_by]
        partitioned = f" PARTITIONED BY ({', '.join(parts)})" if parts else ""
        mode = "merge-on-read" if change.ids else "copy-on-write"
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._name(change.table)} ({', '.join(columns)}) "
            f"USING iceberg{partitioned} TBLPROPERTIES "
            f"('format-version'='2', 'write.merge.mode'='{mode}')"
        )

    def _columns(self, change: Change) -> list[str]:
        """Return the records' columns that the table has; others are left out."""
        known = set(self._spark.table(self._name(change.table)).columns)
        return [name for name in change.rows.column_names if name in known]

    def _with_all_columns(self, table: str, rows: Any) -> Any:
        """Columns that these records do not have are null in their rows."""
        from pyspark.sql.functions import lit

        given = set(rows.column_names)
        frame = self._spark.createDataFrame(rows)
        for column in self._spark.table(self._name(table)).schema.fields:
            if column.name not in given:
                frame = frame.withColumn(column.name, lit(None).cast(column.dataType))
        return frame

    def _name(self, table: str) -> str:
        return ".".join(quoted(part) for part in (self._catalog, *table.split(".")))

    @contextmanager
    def _asking(self, table: str) -> Iterator[None]:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # Py4J has none
        from pyspark.errors import AnalysisException, PySparkException

        try:
            yield
        except AnalysisException as error:
            raise ConnectError(self._text(table, error)) from error
        except (Py4JError, PySparkException) as error:
            text = self._text(table, error)
            if is_refused(text):
                raise ConnectError(text) from error
            raise RetriableError(text) from error

    def _text(self, table: str, error: Exception) -> str:
        java = getattr(error, "java_exception", None)
        text = str(java) if java is not None else str(error)
        for secret in self._secrets:
            text = text.replace(secret, "[hidden]")
        return f"table {table}: {text[:_ERROR_CHARACTERS_MAX]}"


def property_of(connector: str) -> str:
    """Return the name of the property: Spark writes names of properties in small letters."""
    small = connector.lower()
    if small == connector:
        return PROPERTY + connector
    return f"{PROPERTY}{small}-{zlib.crc32(connector.encode()):08x}"


def _all_nullable(table: Any) -> Any:
    """Deleted rows have their ids alone."""
    return table.cast(pa.schema([column.with_nullable(True) for column in table.schema]))


def _partition(text: str) -> str:
    """Return a partition as SQL takes it: `bucket(id, 4)` of the settings has its column first."""
    function, bracket, rest = text.partition("(")
    if not bracket:
        return quoted(text)
    arguments = [one.strip() for one in rest.rstrip(")").split(",")]
    column, *more = sorted(arguments, key=str.isdigit)
    function = {"year": "years", "month": "months", "day": "days", "hour": "hours"}.get(
        function.strip().lower(), function.strip()
    )
    return f"{function}({', '.join([*more, quoted(column)])})"


def _of_places(stored: Mapping[str, int], places: Iterable[TopicPartition]) -> Offsets:
    return {place: stored[_key(place)] for place in places if _key(place) in stored}


def _key(place: TopicPartition) -> str:
    return f"{place[0]}-{place[1]}"


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in ("secret", "password", "token", "credential"))


# Maintenance of a table that is written every few seconds: old snapshots expire, small files are
# joined.
#
# It does what Spark's procedures `expire_snapshots` and `rewrite_data_files` do, with the same
# properties of the table: `history.expire.max-snapshot-age-ms`,
# `history.expire.min-snapshots-to-keep`, `write.target-file-size-bytes`. Other programs may do
# it too: a tag keeps the snapshot that the sink reads to go on (see `History`).

Job = Callable[[Any, Any], None]
"""Takes the Spark session and Iceberg's table, as it is now."""


def expire_snapshots(spark: Any, table: Any) -> None:
    """Remove snapshots that are beyond the table's age, and the files that only they have."""
    table.expireSnapshots().commit()


def rewrite_data_files(spark: Any, table: Any) -> None:
    """Join files of `main` that are far below the table's size."""
    actions = spark._jvm.org.apache.iceberg.spark.actions.SparkActions
    actions.get(spark._jsparkSession).rewriteDataFiles(table).execute()


class Maintenance:
    """Maintenance of tables after commits, each job at most once in its interval.

    Failures are logged, and retried at the next interval.
    """

    def __init__(
        self, *, expire_ms: int, rewrite_ms: int, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the intervals; 0 is never."""
        self._now_s = now_s
        # Files are joined first: then one snapshot less needs the old files.
        jobs: tuple[tuple[Job, int], ...] = (
            (rewrite_data_files, rewrite_ms),
            (expire_snapshots, expire_ms),
        )
        self._intervals_s = {job: ms / 1000 for job, ms in jobs if ms > 0}
        self._due_s: dict[tuple[Job, str], float] = {}

    def due(self, table: str) -> list[Job]:
        """Return what is to be done now: the first time is an interval after the first commit."""
        now_s = self._now_s()
        tables = []
        for job, interval_s in self._intervals_s.items():
            if now_s >= self._due_s.setdefault((job, table), now_s + interval_s):
                self._due_s[job, table] = now_s + interval_s
                tables.append(job)
        return tables

    def do(self, job: Job, spark: Any, table: Any, describe: Callable[[Exception], str]) -> None:
        """Do one job."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            job(spark, table)
        except (Py4JError, PySparkException) as error:
            _log.warning("%s failed: %s", job.__name__, describe(error))


# Arrow's types as Spark's SQL names them, and which change of a column a table can take.

_NAMES: Final = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
}
_WIDER: Final = {("int", "bigint"), ("float", "double")}


def spark_type(type_: Any) -> str:
    """Return the name of a type. Raises ConnectError."""
    types = pa.types
    if types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        inner = ", ".join(f"{quoted(one.name)}: {spark_type(one.type)}" for one in fields)
        return f"struct<{inner}>"
    if types.is_list(type_) or types.is_large_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    if types.is_map(type_):
        return f"map<{spark_type(type_.key_type)}, {spark_type(type_.item_type)}>"
    if types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if types.is_time(type_):
        return "string"
    name = _NAMES.get(str(type_))
    if name is None:
        raise ConnectError(f"Arrow's type {type_} has no counterpart in Spark")
    return name


def is_wider(old: str, new: str) -> bool:
    """Return whether a column of one type can become one of another without loss."""
    if (old, new) in _WIDER:
        return True
    if old.startswith("decimal(") and new.startswith("decimal("):
        (digits, scale), (wanted, wanted_scale) = (
            map(int, one[8:-1].split(",")) for one in (old, new)
        )
        return scale == wanted_scale and wanted > digits
    return False


def quoted(name: str) -> str:
    """Return a name, quoted for SQL."""
    return "`" + name.replace("`", "``") + "`"


def texts_of_times(table: Any) -> Any:
    """Spark has no times of day: return the table with texts in their place."""
    for number, column in enumerate(table.schema):
        if pa.types.is_time(column.type):
            texts = [None if v is None else v.isoformat() for v in table[column.name].to_pylist()]
            table = table.set_column(
                number, pa.field(column.name, pa.string(), column.nullable), pa.array(texts)
            )
    return table


class History:
    """One table's snapshots, as they are now. Its methods raise what Py4J and PySpark do.

    `target` is the branch that commits go to; it begins as `main` is.
    """

    def __init__(self, spark: Any, name: str, offsets_property: str, target: str = MAIN) -> None:
        load = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable
        self._table = load(spark._jsparkSession, name)
        self._property = offsets_property
        self._target = target

    def offsets(self, branch: str | None = None) -> dict[str, int]:
        """Return the offsets that the newest snapshot of a branch with any has.

        If none is left and snapshots have expired, that is the tagged one.
        """
        snapshot = self._table.snapshot(branch) if branch is not None else self._head()
        while snapshot is not None:
            offsets = self._offsets_of(snapshot)
            if offsets:
                return offsets
            parent = snapshot.parentId()
            if parent is None:
                return {}
            snapshot = self._table.snapshot(parent)
            if snapshot is None:
                return self._tagged_offsets()
        return {}

    def _offsets_of(self, snapshot: Any) -> dict[str, int]:
        text = snapshot.summary().get(self._property)
        offsets: dict[str, int] = json.loads(text) if text else {}
        return offsets

    def _tagged_offsets(self) -> dict[str, int]:
        refs = self._table.refs()
        target = self._target if refs.containsKey(self._target) else MAIN
        tag = self._tag(target)
        return self._offsets_of(self._table.snapshot(tag)) if refs.containsKey(tag) else {}

    def _tag(self, target: str) -> str:
        connector = self._property.partition(".offsets.")[2]
        return f"{TAG}{connector}" + ("" if target == MAIN else f"@{target}")

    def _head(self) -> Any:
        refs = self._table.refs()
        return self._table.snapshot(self._target if refs.containsKey(self._target) else MAIN)

    @contextmanager
    def branch(self) -> Iterator[str]:
        """Yield a branch that becomes the table in the end, unless that has come further."""
        name = f"barnabas_{uuid4().hex}"
        head = self._head()
        start = () if head is None else (head.snapshotId(),)
        snapshots = self._table.manageSnapshots().createBranch(name, *start)
        snapshots.setMaxRefAgeMs(name, ABANDONED_AFTER_MS).commit()
        try:
            self._table.refresh()
            yield name
            self._table.refresh()
            snapshots = self._table.manageSnapshots().fastForwardBranch(self._target, name)
            self._keep_offsets(snapshots, self._table.snapshot(name))
            snapshots.removeBranch(name).commit()
        except BaseException:
            self._drop(name)
            raise

    def _keep_offsets(self, snapshots: Any, written: Any) -> None:
        """Move the tag, in the same commit."""
        if written is None or not self._offsets_of(written):
            return
        tag = self._tag(self._target)
        if self._table.refs().containsKey(tag):
            snapshots.replaceTag(tag, written.snapshotId())
        else:
            snapshots.createTag(tag, written.snapshotId()).setMaxRefAgeMs(tag, FOR_EVER_MS)

    def table(self) -> Any:
        """Return Iceberg's table, as it is now."""
        self._table.refresh()
        return self._table

    def _drop(self, branch: str) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            self._table.refresh()
            if self._table.refs().containsKey(branch):
                self._table.manageSnapshots().removeBranch(branch).commit()
        except (Py4JError, PySparkException):
            _log.debug("branch %s could not be removed", branch, exc_info=True)
