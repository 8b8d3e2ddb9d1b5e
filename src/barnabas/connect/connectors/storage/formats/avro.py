"""Avro's object container files."""

from __future__ import annotations

import bz2
import io
import json
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import cramjam
import fastavro

from barnabas.connect.connectors.storage.formats.avro_schema import avro_of, connect_of
from barnabas.connect.connectors.storage.formats.base import (
    FileFormat,
    FileOutput,
    FileWriter,
    maker,
    plain,
)
from barnabas.schemas.data.errors import ConnectError, DataError
from barnabas.schemas.data.schema import Schema

_BLOCK_BYTES: Final = 64 * 1024
_MAGIC: Final = b"Obj\x01"
_SYNC_BYTES: Final = 16
_HEADER: Final = fastavro.parse_schema({"type": "map", "values": "bytes"})


def _deflated(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


def _snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data)) + zlib.crc32(data).to_bytes(4, "big")


_CODECS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "null": bytes,
    "deflate": _deflated,
    "snappy": _snappy,
    "bzip2": bz2.compress,
}
CODECS: Final = tuple(_CODECS)
_DAMAGE: Final = (
    *(ValueError, TypeError, EOFError, LookupError, ArithmeticError, RecursionError),
    *(zlib.error, cramjam.DecompressionError),
    *(fastavro.schema.SchemaParseException, fastavro.schema.UnknownType),
    OSError,  # bzip2's; stores' own errors are not OSErrors
)


class AvroFormat(FileFormat):
    """Files with the schema in them."""

    def __init__(self, codec: str = "null", *, has_meta: bool = True) -> None:
        self._codec = codec
        self._has_meta = has_meta

    @property
    def extension(self) -> str:
        """`.avro`."""
        return ".avro"

    def open(self, output: FileOutput, schema: Schema | None) -> FileWriter:
        """Begin a file."""
        if schema is None:
            raise DataError("Avro files need records with schemas; these have none")
        try:
            return _AvroFile(output, schema, self._codec, has_meta=self._has_meta)
        except (ValueError, TypeError, fastavro.schema.SchemaParseException) as error:
            raise DataError(f"The schema has no counterpart in Avro: {error}") from None

    def read(self, source: BinaryIO) -> Iterator[tuple[Schema | None, Any]]:
        """Yield the records."""
        try:
            reader = fastavro.reader(source)
            schema = connect_of(reader.writer_schema)
            make = maker(schema)
            for value in reader:
                yield schema, make(value)
        except ConnectError:
            raise
        except _DAMAGE as error:
            raise DataError(f"The file is not Avro, or is damaged: {error}") from error


class _AvroFile(FileWriter):
    """Blocks are made here: a record that does not fit must leave nothing of it in one."""

    def __init__(self, output: FileOutput, schema: Schema, codec: str, *, has_meta: bool) -> None:
        described = avro_of(schema, has_meta=has_meta)
        self._schema = fastavro.parse_schema(json.loads(json.dumps(described)))
        self._plain = plain(schema, maps_as_pairs=False)
        self._output = output
        self._compress = _CODECS[codec]
        self._sync = os.urandom(_SYNC_BYTES)
        self._block = io.BytesIO()
        self._records = 0
        header = io.BytesIO()
        meta = {"avro.codec": codec.encode(), "avro.schema": json.dumps(described).encode()}
        fastavro.schemaless_writer(header, _HEADER, meta)
        output.write(_MAGIC + header.getvalue() + self._sync)

    def write(self, value: Any) -> None:
        row = value if self._plain is None else self._plain(value)
        start = self._block.tell()
        try:
            fastavro.schemaless_writer(self._block, self._schema, row)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            self._block.seek(start)
            self._block.truncate()
            raise DataError(f"The record does not fit its schema: {error}") from None
        self._records += 1
        if self._block.tell() >= _BLOCK_BYTES:
            self.finish()

    def finish(self) -> None:
        if not self._records:
            return
        data = self._compress(self._block.getvalue())
        self._output.write(_long(self._records) + _long(len(data)) + data + self._sync)
        self._block = io.BytesIO()
        self._records = 0


def _long(value: int) -> bytes:
    """Avro's long, of a number that is not negative."""
    value <<= 1
    made = bytearray()
    while value > 0x7F:  # seven bits a byte
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
