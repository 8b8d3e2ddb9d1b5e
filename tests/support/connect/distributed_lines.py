"""Connectors of files that a worker on Spark distributes, for tests of that.

Kafka's own are done in the worker's process: a file is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.connectors.base import SourceReader, TaskContext
from barnabas.connect.connectors.file.connectors import FileStreamSink, FileStreamSource
from barnabas.connect.connectors.file.reader import FileReader


class DistributedLines(FileStreamSource):
    """Executors read the lines."""

    def is_worth_distributing(self, settings: Mapping[str, str]) -> bool:
        return True


class DistributedLinesSink(FileStreamSink):
    """Executors write the lines."""

    def is_worth_distributing(self, settings: Mapping[str, str]) -> bool:
        return True


class AlternatingReader(FileReader):
    """Executors read every other micro-batch, the worker those between."""

    is_odd = False

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        self.is_odd = not self.is_odd
        return super().partitions(start, end)

    def is_worth_distributing(self, partitions: Sequence[Any]) -> bool:
        return self.is_odd


class AlternatingLines(DistributedLines):
    """Its reader says who reads."""

    def reader(self, context: TaskContext) -> SourceReader:
        made = object.__new__(AlternatingReader)
        made.__dict__.update(super().reader(context).__dict__)
        return made
