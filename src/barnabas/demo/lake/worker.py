"""The worker that writes the warehouse: its properties, and those of its connector.

A second worker beside that of the stations: this one has a Spark, which some rows a minute are
not worth.
"""

from __future__ import annotations

import os
from typing import Final

from barnabas.demo.access import CONNECT, Access
from barnabas.demo.broker import BARNABAS
from barnabas.demo.connectors import WORKER, common_properties, write
from barnabas.demo.lake.place import (
    ACCESS_KEY,
    BUCKET_NAME,
    REGION,
    SECRET_KEY,
    SPARK,
    WITHOUT,
    Place,
)
from barnabas.demo.processes import ChildSpec
from barnabas.demo.topics import USER_ACTIVITY, WAREHOUSE_CONNECTOR
from barnabas.demo.workspace import Settings, Workspace

WAREHOUSE: Final = "warehouse"
"""The part's name."""
NAMESPACE, TABLE = "retail", "user_activity"
ROOT: Final = f"{BUCKET_NAME}/warehouse"
"""The location of the catalog's tables, bucket first."""
PARTITION_COLUMN, OFFSET_COLUMN = "kafka_partition", "kafka_offset"
"""Where each row was in its topic: what is there twice was written twice."""
_COMMIT_MS: Final = 10_000
_UPKEEP_MS: Final = 600_000
_SNAPSHOT_AGE_MS: Final = 3_600_000
_FILE_BYTES: Final = 32 * 1024 * 1024


def worker_spec(
    workspace: Workspace,
    settings: Settings,
    bootstrap: str,
    place: Place,
    access: Access | None = None,
) -> ChildSpec:
    """Write the files, and return how to start the worker. Raises OSError."""
    os.makedirs(workspace.path(WORKER), exist_ok=True)
    worker = workspace.path(WORKER, f"{WAREHOUSE}-worker.properties")
    connector = workspace.path(WORKER, f"{WAREHOUSE_CONNECTOR}.properties")
    login = {}
    if access is not None:
        own = access.secured.java_properties(CONNECT)
        login = {**own, **{f"consumer.{name}": value for name, value in own.items()}}
    log = workspace.path("logs", f"{WAREHOUSE}-spark.log")
    offsets = workspace.path(WORKER, f"{WAREHOUSE}-offsets")
    write(worker, worker_properties(settings, bootstrap, offsets, log) | login)
    write(connector, connector_properties(place))
    return ChildSpec(
        WAREHOUSE,
        [*BARNABAS, "connect", "start", worker, connector],
        grace_seconds=25.0,
        # Nobody waits for its table: what the page shows comes first.
        niceness=10,
        advice=f"See the log, and that of its Spark, {log}.",
    )


def worker_properties(settings: Settings, bootstrap: str, offsets: str, log: str) -> dict[str, str]:
    """Return what connect-standalone.properties has."""
    spark = "barnabas.connect.spark"
    return {
        **common_properties(settings, bootstrap, settings.warehouse_url, offsets),
        "barnabas.connect.engine": "spark",
        # Some hundred events a second, on two cores that do everything else too.
        f"{spark}.master": "local[1]",
        f"{spark}.packages": ",".join(package.coordinates for package in SPARK),
        f"{spark}.log": log,
        f"{spark}.conf.spark.jars.excludes": ",".join(WITHOUT),
        # Spark starts with no less than 450.
        f"{spark}.conf.spark.driver.memory": "512m",
    }


def connector_properties(place: Place) -> dict[str, str]:
    """Return the connector that appends each record of `user-activity` to the table."""
    hadoop = {
        "endpoint": place.url,
        "endpoint.region": REGION,
        "access.key": f"${{directory:{place.directory}:{ACCESS_KEY}}}",
        "secret.key": f"${{directory:{place.directory}:{SECRET_KEY}}}",
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "fast.upload.buffer": "array",
    }
    defaults = "iceberg.catalog.table-default"
    return {
        "name": WAREHOUSE_CONNECTOR,
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "1",
        "topics": USER_ACTIVITY,
        "iceberg.catalog": BUCKET_NAME,
        "iceberg.catalog.type": "hadoop",
        "iceberg.catalog.warehouse": f"s3a://{ROOT}",
        **{f"iceberg.hadoop.fs.s3a.{name}": value for name, value in hadoop.items()},
        # A demo that runs for days keeps an hour of snapshots, and files of some size.
        f"{defaults}.write.metadata.delete-after-commit.enabled": "true",
        f"{defaults}.write.metadata.previous-versions-max": "20",
        f"{defaults}.write.target-file-size-bytes": str(_FILE_BYTES),
        f"{defaults}.history.expire.max-snapshot-age-ms": str(_SNAPSHOT_AGE_MS),
        "barnabas.iceberg.expire-snapshots.interval-ms": str(_UPKEEP_MS),
        "barnabas.iceberg.rewrite-data-files.interval-ms": str(_UPKEEP_MS),
        "iceberg.tables": f"{NAMESPACE}.{TABLE}",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.evolve-schema-enabled": "true",
        "iceberg.control.commit.interval-ms": str(_COMMIT_MS),
        "transforms": "place",
        "transforms.place.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.place.partition.field": PARTITION_COLUMN,
        "transforms.place.offset.field": OFFSET_COLUMN,
        # A bucket, a registry or a cluster that is away comes again.
        "errors.retry.timeout": "60000",
        "errors.retry.delay.max.ms": "1000",
    }
