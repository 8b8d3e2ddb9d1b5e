"""Reads lines from a file that grows, or from standard input."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, repeat
from typing import Any, Final

from barnabas.connect.connectors.base import SourceReader
from barnabas.connect.record import JsonMap, SourceColumn, SourceRecord
from barnabas.schemas.data.errors import ConnectError
from barnabas.schemas.data.schema import Schema, Type

FILENAME: Final = "filename"
POSITION: Final = "position"
_STRING: Final = Schema(Type.STRING)
_LINE_END: Final = re.compile(rb"\r\n|\r(?!\Z)|\n")
"""A carriage return that nothing follows yet may be half of two."""
_CHUNK_BYTES: Final = 1 << 20
_WAIT_SECONDS: Final = 0.1
BATCHES_MAX: Final = 10
"""One micro-batch reads up to so many of what Kafka's task reads in a poll."""


class FileReader(SourceReader):
    """A file is one split: its lines stay in order."""

    def __init__(
        self, filename: str | None, topic: str, batch_size: int, stored: JsonMap | None
    ) -> None:
        self._filename = filename
        self._topic = topic
        self._lines_max = batch_size * BATCHES_MAX
        position = 0 if stored is None else stored.get(POSITION, 0)
        if not isinstance(position, int):
            raise ConnectError("Offset position is the incorrect type")
        self._start = position
        self._end = position
        self._typed: list[str] = []
        self._rest = b""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return where to begin."""
        return {POSITION: self._start}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return the end of a line, up to which the next micro-batch reads."""
        if self._filename is None:
            return self._typed_until()
        try:
            self._end = self._end_of_lines(self._filename, self._end)
        except FileNotFoundError:
            time.sleep(_WAIT_SECONDS)
        except OSError as error:
            raise ConnectError(f"cannot read {self._filename}: {error}") from error
        return {POSITION: self._end}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return one split, from here to there."""
        if self._filename is None:
            return [self._typed[: end[POSITION] - start[POSITION]]]
        return [(start[POSITION], end[POSITION])]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the lines."""
        for column in self.read_columns(partition):
            yield from column.records()

    def read_columns(self, partition: Any) -> Iterator[SourceColumn]:
        """Yield the lines, many at once."""
        now_ms = time.time_ns() // 1_000_000
        if self._filename is None:
            if partition:
                yield self._column(partition, lambda: repeat(None, len(partition)), None, now_ms)
            return
        position, end = partition
        with open(self._filename, "rb") as file:
            file.seek(position)
            rest = b""
            while position + len(rest) < end:
                data = rest + file.read(min(_CHUNK_BYTES, end - position - len(rest)))
                if len(data) == len(rest):
                    raise ConnectError(f"{self._filename} is shorter than it was")
                lines, length = _lines(data)
                rest = data[length:]
                if rest and position + len(data) >= end:  # a carriage return at its end
                    lines.append(rest.rstrip(b"\r").decode("utf-8", "replace"))
                    rest, length = b"", len(data)
                if lines:
                    ends = partial(_ends, data[:length], position)
                    yield self._column(lines, ends, position + length, now_ms)
                position += length

    def sent(self, end: dict[str, Any]) -> bool:
        """A file is read on; what was typed is kept until it is written."""
        return self._filename is not None

    def commit(self, end: dict[str, Any]) -> None:
        """Forget what was typed and is written."""
        if self._filename is None:
            del self._typed[: end[POSITION] - self._start]
            self._start = end[POSITION]

    def _column(
        self,
        lines: Sequence[str],
        ends: Callable[[], Iterable[int | None]],
        end: int | None,
        now_ms: int,
    ) -> SourceColumn:
        return SourceColumn(
            topic=self._topic,
            schema=_STRING,
            values=lines,
            timestamp_ms=now_ms,
            source_partition={FILENAME: self._filename},
            offsets=lambda: [{POSITION: one} for one in ends()],
            end={POSITION: end},
        )

    def _end_of_lines(self, filename: str, position: int) -> int:
        """Return the position behind the last whole line of a micro-batch."""
        with open(filename, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= position:
                time.sleep(_WAIT_SECONDS)
                return position
            file.seek(position)
            lines, end, at = 0, position, position
            rest = b""
            while lines < self._lines_max:
                data = file.read(_CHUNK_BYTES)
                if not data:
                    break
                data = rest + data
                count, begin = _counted(data, self._lines_max - lines)
                lines += count
                at += begin
                rest = data[begin:]
                if begin:
                    end = at
            if end == position:
                time.sleep(_WAIT_SECONDS)
            return end

    def _typed_until(self) -> dict[str, Any]:
        """Take what was typed; how often, is the offset, which is not stored."""
        ready, _, _ = select.select([sys.stdin], [], [], _WAIT_SECONDS)
        data = os.read(sys.stdin.fileno(), _CHUNK_BYTES) if ready else b""
        if data:
            *lines, self._rest = _LINE_END.split(self._rest + data)
            self._typed += [line.decode("utf-8", "replace") for line in lines]
            self._end += len(lines)
        else:
            time.sleep(_WAIT_SECONDS if ready else 0)
        return {POSITION: self._end}


def _lines(data: bytes) -> tuple[list[str], int]:
    """Return the lines that have ended, and the length of all with their ends.

    A line is decoded as if it were alone: no character goes on behind a line's end.
    """
    if b"\r" not in data:
        *lines, _ = data.decode("utf-8", "replace").split("\n")
        return lines, data.rfind(b"\n") + 1
    lines, begin = [], 0
    for line_end in _LINE_END.finditer(data):
        lines.append(data[begin : line_end.start()].decode("utf-8", "replace"))
        begin = line_end.end()
    return lines, begin


def _counted(data: bytes, lines_max: int) -> tuple[int, int]:
    """Return how many lines have ended, at most so many, and their length with their ends."""
    if b"\r" not in data:
        pieces = data.split(b"\n", lines_max)
        return len(pieces) - 1, len(data) - len(pieces[-1])
    count = begin = 0
    for line_end in islice(_LINE_END.finditer(data), lines_max):
        count, begin = count + 1, line_end.end()
    return count, begin


def _ends(data: bytes, position: int) -> list[int]:
    """Return where the lines of data end, which all have ended; the data begin at a position."""
    ends = [position + found.end() for found in _LINE_END.finditer(data)]
    if not ends or ends[-1] < position + len(data):  # a carriage return at the end
        ends.append(position + len(data))
    return ends
