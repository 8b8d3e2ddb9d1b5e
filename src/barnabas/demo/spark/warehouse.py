"""The Parquet warehouse: a directory per table, upserts by micro-batch, exactly once.

`<table>/batch_id=<n>/` holds the rows of micro-batch n. A micro-batch that is replayed after a
crash overwrites its own directory with the same rows. Rows are upserts: the row with the greatest
`batch_id` counts (`read_latest`); any Parquet reader sees them all and can do the same.

Folding: every `FOLD_EVERY` batches the directories so far, all of committed batches, are folded
into that of the last, keeping the latest row of each key. The fold is written beside the table's
data (a name with an underscore is no data to Spark), then takes their place; a crash in between is
finished by the next `recover`.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

FOLD_EVERY: Final = 50
_PARTITION: Final = "batch_id="
_FOLD: Final = "_fold_through_"


class WarehouseTable:
    """One table. `keys` are the columns that identify a row."""

    def __init__(self, spark: SparkSession, warehouse: str, name: str, keys: list[str]) -> None:
        self._spark = spark
        self._path = f"{warehouse.rstrip('/')}/{name}"
        self._keys = keys
        self._since_fold = FOLD_EVERY  # a fold soon after the start: what it finds may be many
        jvm: Any = spark._jvm
        self._to_path = jvm.org.apache.hadoop.fs.Path
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._files = self._to_path(self._path).getFileSystem(configuration)
        self.recover()

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Store the rows of a micro-batch, in place of those of an earlier try."""
        if self._since_fold >= FOLD_EVERY:
            self.fold(batch_id - 1)
            self._since_fold = 0
        self._since_fold += 1
        rows.coalesce(1).write.mode("overwrite").parquet(self._batch_path(batch_id))

    def read_latest(self) -> DataFrame:
        """Return the latest row of each key."""
        return latest_rows(self._spark.read.parquet(self._path), self._keys)

    def fold(self, through: int) -> None:
        """Fold the batches up to `through`, which must all be committed, into one."""
        batches = [batch for batch in self._batches() if batch <= through]
        if len(batches) < 2:
            return
        paths = [self._batch_path(batch) for batch in batches]
        rows = self._spark.read.option("basePath", self._path).parquet(*paths)
        fold = f"{self._path}/{_FOLD}{batches[-1]}"
        latest_rows(rows, self._keys).coalesce(1).write.mode("overwrite").parquet(fold)
        self._take_place(fold, batches[-1])

    def recover(self) -> None:
        """Finish a fold that a crash interrupted, or drop it where it is not whole."""
        for name in self._names(_FOLD):
            fold = f"{self._path}/{name}"
            if self._files.exists(self._to_path(f"{fold}/_SUCCESS")):
                self._take_place(fold, int(name.removeprefix(_FOLD)))
            else:
                self._files.delete(self._to_path(fold), True)

    def _take_place(self, fold: str, through: int) -> None:
        # A crash anywhere here leaves the fold under its own name, which says how to go on.
        for batch in self._batches():
            if batch <= through:
                self._files.delete(self._to_path(self._batch_path(batch)), True)
        self._files.rename(self._to_path(fold), self._to_path(self._batch_path(through)))

    def _batches(self) -> list[int]:
        return sorted(int(name.removeprefix(_PARTITION)) for name in self._names(_PARTITION))

    def _names(self, prefix: str) -> list[str]:
        if not self._files.exists(self._to_path(self._path)):
            return []
        names = (s.getPath().getName() for s in self._files.listStatus(self._to_path(self._path)))
        return [name for name in names if name.startswith(prefix)]

    def _batch_path(self, batch_id: int) -> str:
        return f"{self._path}/{_PARTITION}{batch_id}"


def latest_rows(rows: DataFrame, keys: list[str]) -> DataFrame:
    """Keep, of each key, the row of the greatest `batch_id`; the column is dropped."""
    newest = Window.partitionBy(*keys).orderBy(f.col("batch_id").desc())
    return (
        rows.withColumn("newest", f.row_number().over(newest))
        .where("newest = 1")
        .drop("newest", "batch_id")
    )
