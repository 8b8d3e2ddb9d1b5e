"""Files of lines: JSON, one value each, and bytes with a separator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar

from barnabas.connect.connectors.storage.formats.base import FileFormat, FileOutput, FileWriter
from barnabas.connect.converters.json import JsonConverter, plain_json
from barnabas.schemas.data.builder import OPTIONAL_BYTES
from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.schema import Schema

_READ_BYTES = 256 * 1024


class _Lines(FileWriter):
    def __init__(self, output: FileOutput) -> None:
        self._output = output

    def finish(self) -> None:
        pass


class JsonFormat(FileFormat):
    """One JSON value a line, without schemas."""

    is_compressible = True
    wraps_headers: ClassVar[bool] = True

    def __init__(self, decimal_format: str = "BASE64") -> None:
        self._decimal_format = decimal_format

    @property
    def extension(self) -> str:
        """`.json`."""
        return ".json"

    def open(self, output: FileOutput, schema: Schema | None) -> FileWriter:
        """Begin a file."""
        return _JsonLines(output, schema, plain_json(self._decimal_format))

    def read(self, source: BinaryIO) -> Iterator[tuple[Schema | None, Any]]:
        """Yield the values, which have no schema."""
        for number, line in enumerate(split(source, b"\n"), 1):
            if line.strip():
                try:
                    yield None, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"line {number} is not JSON: {error}") from None


class _JsonLines(_Lines):
    def __init__(self, output: FileOutput, schema: Schema | None, converter: JsonConverter) -> None:
        super().__init__(output)
        self._schema = schema
        self._converter = converter

    def write(self, value: Any) -> None:
        line = self._converter.from_connect("", self._schema, value)
        self._output.write((b"null" if line is None else line) + b"\n")


class BytesFormat(FileFormat):
    """The bytes of values, with a separator behind each."""

    is_compressible = True

    def __init__(self, extension: str = ".bin", separator: bytes = b"\n") -> None:
        self._extension = extension
        self._separator = separator

    @property
    def extension(self) -> str:
        """As `format.bytearray.extension` says."""
        return self._extension

    def open(self, output: FileOutput, schema: Schema | None) -> FileWriter:
        """Begin a file."""
        return _BytesLines(output, self._separator)

    def read(self, source: BinaryIO) -> Iterator[tuple[Schema | None, Any]]:
        """Yield what stands between separators; without one, the whole file."""
        for line in split(source, self._separator):
            yield OPTIONAL_BYTES, line


class _BytesLines(_Lines):
    def __init__(self, output: FileOutput, separator: bytes) -> None:
        super().__init__(output)
        self._separator = separator

    def write(self, value: Any) -> None:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise DataError(f"ByteArrayFormat stores bytes only, not {type(value).__name__}")
        self._output.write(bytes(value) + self._separator)


def split(source: BinaryIO, separator: bytes) -> Iterator[bytes]:
    """Yield what stands between separators; what follows the last one counts unless empty."""
    rest = b""
    while True:
        data = source.read(_READ_BYTES) if separator else source.read()
        if not data or not separator:
            rest += data
            break
        *whole, rest = (rest + data).split(separator)
        yield from whole
    if rest:
        yield rest
