"""Writes each record's value as a line, as Java prints it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, Final

from barnabas.connect.connectors.base import SinkRange, SinkWriter
from barnabas.connect.connectors.files.local_store import failed
from barnabas.connect.record import SinkColumn, SinkRecord
from barnabas.schemas.data.errors import ConnectError
from barnabas.schemas.data.schema import Schema
from barnabas.schemas.data.text import java_text

_BLOCK_BYTES: Final = 64 * 1024


class FileStreamWriter(SinkWriter):
    """Appends to a file, or to standard output."""

    def __init__(self, filename: str | None) -> None:
        self._filename = filename

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> Any:
        """Append the lines of a range, all or none. Raises RetriableError, ConnectError."""
        self._write(_line(record.value, record.value_schema) for record in records)

    def write_columns(self, columns: Iterator[SinkColumn], where: SinkRange) -> Any:
        """Append the lines of a range, all or none. Raises RetriableError, ConnectError."""
        self._write(map(_text, columns))

    def _write(self, texts: Iterator[str]) -> None:
        if self._filename is None:
            for text in texts:
                sys.stdout.write(_encoded(text).decode())
            sys.stdout.flush()
            return
        try:
            descriptor = os.open(
                self._filename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666
            )
        except OSError as error:
            raise ConnectError(
                f"Couldn't find or create file '{self._filename}' for FileStreamSinkTask"
            ) from error
        try:
            _Appended(descriptor, self._filename).write(texts)
        finally:
            os.close(descriptor)


class _Appended:
    """Lines behind what a file holds. A failed write is undone; otherwise its last line could be
    torn.

    Other tasks that append to the file wait.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name

    def write(self, texts: Iterator[str]) -> None:
        start = self._lock()
        try:
            block = bytearray()
            for text in texts:
                block += _encoded(text)
                if len(block) >= _BLOCK_BYTES:
                    self._append(block)
                    block = bytearray()
            self._append(block)
        except BaseException:
            if start is not None:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, start)
            raise

    def _lock(self) -> int | None:
        """Return the file's size; None if writes cannot be undone, for a pipe or a device."""
        try:
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                return None
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)  # until it is closed
            return os.fstat(self._descriptor).st_size
        except OSError:  # a file system without locks
            return None

    def _append(self, block: bytearray) -> None:
        left = memoryview(block)
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            raise failed(f"cannot write to '{self._name}'", error) from error


def _text(column: SinkColumn) -> str:
    values = column.values
    if set(map(type, values)) == {str}:
        return "\n".join(values) + "\n"
    return "".join([_line(value, column.schema) for value in values])


def _encoded(text: str) -> bytes:
    """As Java prints it: half a pair of UTF-16 is a question mark."""
    return text.encode(errors="replace")


def _line(value: Any, schema: Schema | None) -> str:
    if isinstance(value, bytes):  # Java prints what array it is, not what is in it
        return f"[B@{id(value):x}\n"
    return java_text(value, schema) + "\n"
