"""One Spark session for all tests of a process: starting a second costs more than any test.

If the machine has no Java, tests that need Spark are skipped with that reason.
"""

from __future__ import annotations

import atexit
import functools
import gc
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from barnabas.spark.session import SessionOptions, avro_package, kafka_package, start_session

AVRO = avro_package()
"""What Spark's `from_avro` and `to_avro` are in."""

HAS_JAVA = bool(os.environ.get("JAVA_HOME")) or shutil.which("java") is not None
MISSING = "Spark needs a Java runtime, 17 or later, and there is none"
needs_spark = pytest.mark.skipif(not HAS_JAVA, reason=MISSING)
"""For tests whose Spark is in another process."""


@functools.cache
def shared_session() -> SparkSession:
    """Start Spark with the Kafka connector, or return the session that runs."""
    if not HAS_JAVA:
        pytest.skip(MISSING)
    directory = tempfile.TemporaryDirectory(prefix="barnabas-test-spark-")
    session = start_session(
        SessionOptions(
            app_name="barnabas-tests",
            packages=(kafka_package(), AVRO),
            shuffle_partitions=1,
            small_batches=True,
            telemetry_path=os.path.join(directory.name, "spark.log"),
            settings={
                "spark.local.dir": directory.name,
                "spark.sql.warehouse.dir": os.path.join(directory.name, "tables"),
            },
        )
    )

    def end() -> None:
        session.stop()
        directory.cleanup()

    atexit.register(end)
    return session


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    """The process's Spark session; for the conftest of a folder whose tests use it."""
    yield shared_session()
    # PySpark leaves the sockets of collect() to the garbage collector: let it find them here,
    # where the module's filter stands.
    gc.collect()
