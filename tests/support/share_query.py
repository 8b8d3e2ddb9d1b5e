"""A query over `format("barnabas-share")` without Spark: its calls, in its order, in one process.

It keeps two logs in a directory as Spark does, `offsets` and `commits`, and what each run of a
batch read in `runs`. As a program it runs until it is killed.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from barnabas.spark.datasource.share import ShareReader, read_options
from support.patience import PATIENCE_S

Row = dict[str, Any]
Work = Callable[[int, list[Row]], None]


def begin_at_the_start(admin: AdminClient, group: str, **config: str) -> None:
    """Have a share group that does not exist yet read topics from their beginning."""
    wanted = {"share.auto.offset.reset": "earliest", **config}
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in wanted.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


class ShareQuery:
    """One run of a query; a new one in the same directory is a restart."""

    def __init__(self, directory: Path, options: Mapping[str, str]) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.reader = ShareReader(read_options(options))
        self.offsets = self.log("offsets")
        if not self.offsets:
            self._append("offsets", self.reader.initialOffset())
            self._append("commits", 0)
        else:
            self.reader.partitions(self.offsets[-1], self.offsets[-1])

    def log(self, name: str) -> list[Any]:
        """Entries of `offsets`, `commits` or `runs`; one that is cut off does not count."""
        path = self.directory / name
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1:] == "\n"]

    def committed(self) -> list[Row]:
        """What a sink that is idempotent by batch holds at the end: the last run of each batch."""
        commits = set(self.log("commits"))
        runs = {batch: rows for batch, rows in self.log("runs") if batch in commits}
        return [row for rows in runs.values() for row in rows]

    def step(self, work: Work = lambda batch, rows: None) -> int:
        """A micro-batch, if there is one. Returns how many records it had."""
        batch = len(self.offsets) - 1
        if batch in self.log("commits"):
            offset = json.loads(json.dumps(self.reader.latestOffset()))
            if offset == self.offsets[-1]:
                return 0
            self._append("offsets", offset)
            if batch:
                self.reader.commit(self.offsets[-2])
            batch += 1
        rows = self._read(self.offsets[-2], self.offsets[-1])
        self._append("runs", [batch, rows])
        work(batch, rows)
        self._append("commits", batch)
        return len(rows)

    def run(
        self, count: int, *, idle_max: int = 300, work: Work = lambda batch, rows: None
    ) -> list[Row]:
        """Run until a number of records is committed, or nothing more comes."""
        idle = 0
        while len(self.committed()) < count and idle < idle_max:
            idle = 0 if self.step(work) else idle + 1
        return self.committed()

    def _read(self, start: Any, end: Any) -> list[Row]:
        rows: list[Row] = []
        for partition in self.reader.partitions(start, end):
            for batch in self.reader.read(pickle.loads(pickle.dumps(partition))):
                rows += [
                    {
                        "partition": row["partition"],
                        "offset": row["offset"],
                        "value": row["value"].decode(),
                        "count": row["deliveryCount"],
                    }
                    for row in batch.to_pylist()
                ]
        return rows

    def _append(self, name: str, entry: Any) -> None:
        if name == "offsets":
            self.offsets = [*self.offsets, entry]
        with open(self.directory / name, "a") as file:
            file.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    query = ShareQuery(Path(sys.argv[1]), json.loads(sys.argv[2]))
    while True:
        query.step()
        sys.stdout.write(".")
        sys.stdout.flush()
        if os.getppid() == 1:  # the test is gone
            break
