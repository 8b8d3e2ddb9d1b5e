"""Care for a table that is written every few seconds: old snapshots go, small files are joined.

It is what Spark's procedures `expire_snapshots` and `rewrite_data_files` do, and how much of it is
up to the table's own properties, as there: `history.expire.max-snapshot-age-ms`,
`history.expire.min-snapshots-to-keep`, `write.target-file-size-bytes`. Others may do it as well:
what the sink reads to go on is kept by a tag (see `History`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

_log: Final = logging.getLogger(__name__)

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
        # Files are joined first: those of before have one snapshot less to live in.
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
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # Py4J has none
        from pyspark.errors import PySparkException

        try:
            job(spark, table)
        except (Py4JError, PySparkException) as error:
            _log.warning("%s failed: %s", job.__name__, describe(error))
