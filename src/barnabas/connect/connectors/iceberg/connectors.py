"""The sink of Iceberg, with the settings of Iceberg's own connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.connect.allowed_paths import database_paths, local_paths
from barnabas.connect.config import validators
from barnabas.connect.config.definition import ConfigType, Importance, group
from barnabas.connect.config.values import with_prefix
from barnabas.connect.connectors.base import EngineKind, Settings, TaskContext
from barnabas.connect.connectors.iceberg.tables import CATALOG, IcebergTables, Maintenance
from barnabas.connect.connectors.lake.settings import LakeSettings, definition
from barnabas.connect.connectors.lake.sink import LakeSink, Tables
from barnabas.schemas.data.errors import ConnectError

PACKAGE: Final = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"
HADOOP_AWS: Final = "org.apache.hadoop:hadoop-aws:3.4.1"
"""Of the Hadoop that Spark 4.0 comes with."""
EXPIRE: Final = "barnabas.iceberg.expire-snapshots.interval-ms"
REWRITE: Final = "barnabas.iceberg.rewrite-data-files.interval-ms"
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_WITH_PATHS: Final = ("iceberg.catalog.", "iceberg.tables.auto-create-props.")
_T = ConfigType
_LOW = Importance.LOW


class IcebergSink(LakeSink):
    """Topics to tables of Iceberg."""

    prefix = "iceberg"
    definition = definition(prefix, group("Iceberg",
        ("iceberg.catalog", _T.STRING, "iceberg", Importance.MEDIUM,
         "The catalog's name; its settings are iceberg.catalog.*, as Spark's catalogs have."),
        ("iceberg.tables.default-commit-branch", _T.STRING, None, _LOW,
         "The branch that commits go to; main if not given."),
        ("iceberg.control.topic", _T.STRING, "control-iceberg", _LOW, "Taken: not needed."),
        ("iceberg.control.group-id-prefix", _T.STRING, None, _LOW, "Taken: not needed."),
        ("iceberg.control.commit.timeout-ms", _T.LONG, 30_000, _LOW, "Taken: not needed."),
        ("iceberg.control.commit.threads", _T.INT, None, _LOW, "Taken: not needed."),
        ("iceberg.hadoop-conf-dir", _T.STRING, None, _LOW, "Taken; use iceberg.hadoop.*."),
    ) + group("Maintenance",
        (EXPIRE, _T.LONG, 0, _LOW,
         ("How often snapshots beyond the table's history.expire.max-snapshot-age-ms are removed, "
          "after a commit; 0 is never."), validators.at_least(0)),
        (REWRITE, _T.LONG, 0, _LOW,
         ("How often small files of the main branch are joined, up to the table's "
          "write.target-file-size-bytes, after a commit; 0 is never."), validators.at_least(0)),
    ))  # fmt: skip

    def engines(self, settings: Settings) -> frozenset[EngineKind]:
        """Iceberg's classes of Java run in Spark's driver."""
        return frozenset({"spark"})

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the directories of the warehouse and of tables, and a catalog in a file."""
        files: dict[str, Sequence[str]] = {}
        for name, value in settings.items():
            if name == "iceberg.catalog.warehouse" or (
                name.startswith(_WITH_PATHS) and value.strip().lower().startswith(("/", "file:"))
            ):
                files[name] = local_paths(value)
            elif name == "iceberg.catalog.uri" and value.strip().lower().startswith("jdbc:"):
                files[name] = database_paths(value)
        return files

    def spark_packages(self, settings: Settings) -> Mapping[str, str]:
        """Iceberg itself, and what reaches the bucket that its warehouse is in."""
        packages = {CATALOG: PACKAGE}
        if settings.get("iceberg.catalog.warehouse", "").startswith("s3a://"):
            packages[_S3A] = HADOOP_AWS
        return packages

    def tables(
        self, context: TaskContext, values: Mapping[str, Any], settings: LakeSettings
    ) -> Tables:
        """Return the tables of the catalog. Raises ConnectError without Spark."""
        if getattr(context.spark, "_jvm", None) is None:
            raise ConnectError(
                "Iceberg's sink needs Spark in the worker: start it with "
                "barnabas.connect.engine=spark, and not through Spark Connect (sc://)"
            )
        maintenance = Maintenance(expire_ms=int(values[EXPIRE]), rewrite_ms=int(values[REWRITE]))
        return IcebergTables(
            context.spark,
            context.connector,
            str(values["iceberg.catalog"]),
            with_prefix(context.settings, "iceberg.catalog."),
            with_prefix(context.settings, "iceberg.hadoop."),
            settings,
            maintenance,
        )
