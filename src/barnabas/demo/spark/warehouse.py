"""The Parquet warehouse: a directory per table, upserts by micro-batch, exactly once.

`<table>/batch_id=<n>/` holds the rows of micro-batch n. A micro-batch that is replayed after a
crash overwrites its own directory with the same rows. Rows are upserts: the row with the greatest
`batch_id` counts (`read_latest`); any Parquet reader sees them all and can do the same.

Folding: every `FOLD_EVERY` batches the directories so far, all of committed batches, are folded
into that of the last, keeping the latest row of each key. The fold is written beside the table's
data (a name with an underscore is no data to any reader), then takes their place; a crash in
between is finished by the next `recover`.

Written with Arrow and not by Spark jobs: a job costs hundreds of milliseconds, a file of some rows
takes five.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

FOLD_EVERY: Final = 50
_PARTITION: Final = "batch_id="
_FOLD: Final = "_fold_through_"
_FILE: Final = "part-0.parquet"
_UNFINISHED: Final = "_unfinished"

Rows = list[dict[str, Any]]


def schema_of(row: Any) -> pa.Schema:
    """Return the columns of a TypedDict of strings, integers, and lists of such dicts."""
    return pa.schema([pa.field(name, _type_of(hint)) for name, hint in get_type_hints(row).items()])


def _type_of(hint: Any) -> pa.DataType:
    if get_origin(hint) is list:
        (entry,) = get_args(hint)
        return pa.list_(pa.struct(list(schema_of(entry))))
    types: Mapping[Any, pa.DataType] = {str: pa.string(), int: pa.int64()}
    return types[hint]


class WarehouseTable:
    """One table. `keys` are the columns that identify a row; none for a table of one row.

    `warehouse` is a path or a URI that Arrow knows (`file:`, `s3:`, `gs:`, `hdfs:`).
    """

    def __init__(self, warehouse: str, name: str, schema: pa.Schema, keys: Sequence[str]) -> None:
        self._files, root = pafs.FileSystem.from_uri(warehouse)
        self._path = f"{root.rstrip('/')}/{name}"
        self._schema = schema
        self._keys = list(keys)
        self._since_fold = FOLD_EVERY  # a fold soon after the start: what it finds may be many
        self.recover()

    def write(self, rows: Rows, batch_id: int) -> None:
        """Store the rows of a micro-batch, in place of those of an earlier try."""
        if self._since_fold >= FOLD_EVERY:
            self.fold(batch_id - 1)
            self._since_fold = 0
        self._since_fold += 1
        self._write(pa.Table.from_pylist(rows, self._schema), self._batch_path(batch_id))

    def read_latest(self) -> Rows:
        """Return the latest row of each key."""
        return list(self._latest(self._batches()).to_pylist())

    def fold(self, through: int) -> None:
        """Fold the batches up to `through`, which must all be committed, into one."""
        batches = [batch for batch in self._batches() if batch <= through]
        if len(batches) < 2:
            return
        fold = f"{self._path}/{_FOLD}{batches[-1]}"
        self._write(self._latest(batches), fold)
        self._take_place(fold, batches[-1])

    def recover(self) -> None:
        """Finish a fold that a crash interrupted, or drop it where it is not whole."""
        for name in self._names(self._path, _FOLD):
            fold = f"{self._path}/{name}"
            if self._data_files(fold):
                self._take_place(fold, int(name.removeprefix(_FOLD)))
            else:
                self._files.delete_dir(fold)

    def _write(self, table: pa.Table, directory: str) -> None:
        """Write a directory of one file, which appears whole or not at all."""
        if self._exists(directory):
            self._files.delete_dir(directory)
        self._files.create_dir(directory)
        pq.write_table(table, f"{directory}/{_UNFINISHED}", filesystem=self._files)
        self._files.move(f"{directory}/{_UNFINISHED}", f"{directory}/{_FILE}")

    def _latest(self, batches: list[int]) -> pa.Table:
        """Return, of each key, the row of the greatest batch."""
        newest_first = [self._read(batch) for batch in reversed(batches)]
        rows = pa.concat_tables([self._schema.empty_table(), *newest_first])
        if not self._keys:
            return rows.slice(0, 1)
        places = rows.select(self._keys).append_column("place", pa.array(range(rows.num_rows)))
        first = places.group_by(self._keys).aggregate([("place", "min")])
        return rows.take(first["place_min"])

    def _read(self, batch: int) -> pa.Table:
        tables = [
            pq.read_table(path, filesystem=self._files, partitioning=None)
            for path in self._data_files(self._batch_path(batch))
        ]
        rows = pa.concat_tables(tables) if tables else self._schema.empty_table()
        return rows.select(self._schema.names).cast(self._schema)

    def _take_place(self, fold: str, through: int) -> None:
        # A crash anywhere here leaves the fold under its own name, which says how to go on.
        for batch in self._batches():
            if batch <= through:
                self._files.delete_dir(self._batch_path(batch))
        self._files.move(fold, self._batch_path(through))

    def _batches(self) -> list[int]:
        names = self._names(self._path, _PARTITION)
        return sorted(int(name.removeprefix(_PARTITION)) for name in names)

    def _data_files(self, directory: str) -> list[str]:
        names = self._names(directory, "part-")
        return [f"{directory}/{name}" for name in names if name.endswith(".parquet")]

    def _names(self, directory: str, prefix: str) -> list[str]:
        files = self._files.get_file_info(pafs.FileSelector(directory, allow_not_found=True))
        return [entry.base_name for entry in files if entry.base_name.startswith(prefix)]

    def _exists(self, path: str) -> bool:
        return bool(self._files.get_file_info(path).type != pafs.FileType.NotFound)

    def _batch_path(self, batch_id: int) -> str:
        return f"{self._path}/{_PARTITION}{batch_id}"
