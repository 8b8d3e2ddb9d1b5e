"""Writes each record's value as a line, as Java prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TextIO

from barnabas.connect.connectors.base import SinkRange, SinkWriter
from barnabas.connect.data.schema import Struct
from barnabas.connect.errors.kinds import ConnectError
from barnabas.connect.record import SinkRecord


class FileWriter(SinkWriter):
    """Appends to a file, or to standard output."""

    def __init__(self, filename: str | None) -> None:
        self._filename = filename

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> Any:
        """Append the lines of a range."""
        if self._filename is None:
            _print(records, sys.stdout)
            return None
        try:
            file = open(self._filename, "a", encoding="utf-8", newline="\n")  # noqa: SIM115  # see below
        except OSError as error:
            raise ConnectError(
                f"Couldn't find or create file '{self._filename}' for FileStreamSinkTask"
            ) from error
        with file:
            _print(records, file)
        return None


def _print(records: Iterator[SinkRecord], file: TextIO) -> None:
    for record in records:
        value = record.value
        file.write(value + "\n" if isinstance(value, str) else java_text(value) + "\n")
    file.flush()


def java_text(value: Any) -> str:
    """Return what Java prints for a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Struct():
            pairs = (
                f"{field.name}={java_text(one)}"
                for field, one in zip(value.schema.fields, value.values, strict=True)
                if one is not None
            )
            return f"Struct{{{','.join(pairs)}}}"
        case dict():
            pairs = (f"{java_text(key)}={java_text(one)}" for key, one in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list():
            return f"[{', '.join(java_text(one) for one in value)}]"
        case bytes():
            return f"[B@{id(value):x}"
        case _:
            return str(value)
