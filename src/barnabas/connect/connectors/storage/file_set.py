"""The open files of one topic's partition: values, and keys and headers beside them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas.connect.connectors.storage.cutting import Placed
from barnabas.connect.connectors.storage.formats.base import FileFormat, FileWriter
from barnabas.connect.connectors.storage.settings import make_format
from barnabas.connect.connectors.storage.store import Claim, FileStore, TakenError, Upload
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import ConnectError, DataError
from barnabas.schemas.data.schema import Schema, Struct
from barnabas.schemas.data.text import java_text

_HEADER: Final = builder.struct_of({"key": builder.STRING, "value": builder.STRING})
_HEADERS: Final = builder.array_of(_HEADER)
_WRAPPED_HEADERS: Final = builder.struct_of({"headers": _HEADERS}, name="RecordHeaders")


@dataclass(slots=True, frozen=True)
class FileNames:
    """The names of files, such as `topics/orders/partition=0/orders+0+0000000042.json`."""

    root: str
    directory_delimiter: str
    file_delimiter: str
    offset_digits: int

    @staticmethod
    def of(values: Mapping[str, Any]) -> FileNames:
        """Take them from parsed settings."""
        return FileNames(
            str(values["topics.dir"]),
            str(values["directory.delim"]),
            str(values["file.delim"]),
            int(values["filename.offset.zero.pad.width"]),
        )

    def stem(self, topic: str, partition: int, directory: str, offset: int) -> str:
        """Return a name without its extension."""
        number = str(offset).zfill(self.offset_digits)
        name = f"{topic}{self.file_delimiter}{partition}{self.file_delimiter}{number}"
        parts = [topic, directory, name]
        if self.root.strip():
            parts.insert(0, self.root)
        return self.directory_delimiter.join(parts)


@dataclass(slots=True, frozen=True)
class FileParts:
    """The parts of records that are stored, and their formats."""

    values: FileFormat
    keys: FileFormat | None
    headers: FileFormat | None
    gzip_level: int | None
    """-1 is the usual one, None is no compression."""

    @staticmethod
    def of(values: Mapping[str, Any], gzip_level: int | None = None) -> FileParts:
        """Take them from parsed settings. Raises ConfigError."""
        keys, headers = values["store.kafka.keys"], values["store.kafka.headers"]
        return FileParts(
            make_format(values["format.class"], values),
            make_format(values["keys.format.class"], values) if keys else None,
            make_format(values["headers.format.class"], values) if headers else None,
            gzip_level,
        )

    @property
    def has_values_only(self) -> bool:
        """True if neither keys nor headers are stored."""
        return self.keys is None and self.headers is None

    def extension(self, format_: FileFormat) -> str:
        """Return the end of names of a format's files."""
        is_packed = format_.is_compressible and self.gzip_level is not None
        return format_.extension + (".gz" if is_packed else "")


class OpenFile:
    """One file on its way."""

    def __init__(
        self,
        store: FileStore,
        name: str,
        format_: FileFormat,
        schema: Schema | None,
        level: int | None,
        claim: Claim | None = None,
    ) -> None:
        self._upload: Upload = store.create(name, claim)
        self._zip: gzip.GzipFile | None = None
        self.name = name
        self.claim = claim
        try:
            output: Any = self._upload
            if level is not None and format_.is_compressible:
                self._zip = gzip.GzipFile(
                    fileobj=output,
                    mode="wb",
                    compresslevel=6 if level < 0 else level,
                    filename="",
                    mtime=0,
                )
                output = self._zip
            self._writer: FileWriter = format_.open(output, schema)
        except BaseException:
            self._upload.abort()
            raise

    def write(self, value: Any) -> None:
        """Add a value. Raises DataError for one that does not fit."""
        self._writer.write(value)

    def complete(self) -> None:
        """Make it visible. Raises TakenError."""
        self._writer.finish()
        if self._zip is not None:
            self._zip.close()
        self._upload.complete()

    def abort(self) -> None:
        """Leave nothing of it."""
        self._writer.discard()
        self._upload.abort()


class DirectoryFiles:
    """The open files of one directory."""

    def __init__(self, make: Callable[[str, FileFormat, Schema | None], OpenFile]) -> None:
        self._make = make
        self._files: dict[str, OpenFile] = {}

    @property
    def is_empty(self) -> bool:
        """True if there is no file yet."""
        return not self._files

    def write(self, parts: FileParts, record: SinkRecord, placed: Placed) -> None:
        """Add a record to all files, or to none of them. Raises DataError."""
        alone = self._files.get("")
        if alone is not None and parts.has_values_only and record.value is not None:
            alone.write(placed.value)
            return
        wanted: list[tuple[str, FileFormat, Schema | None, Any]] = []
        if parts.headers is not None:
            wanted.append((".headers", parts.headers, *_headers(record, parts.headers)))
        if parts.keys is not None:
            wanted.append((".keys", parts.keys, *_key(record, parts.keys)))
        if record.value is not None:
            wanted.append(("", parts.values, placed.schema, placed.value))
        begun = [ending for ending, *_ in wanted if ending not in self._files]
        try:
            for ending, format_, schema, _ in wanted:
                if ending not in self._files:
                    self._files[ending] = self._make(ending, format_, schema)
            for number, (ending, _, _, value) in enumerate(reversed(wanted)):
                self._write_one(ending, value, is_first=not number)
        except DataError:
            for ending in begun:
                file = self._files.pop(ending, None)
                if file is not None:
                    file.abort()
            raise

    def _write_one(self, ending: str, value: Any, *, is_first: bool) -> None:
        try:
            self._files[ending].write(value)
        except DataError as error:
            if is_first:
                raise
            # Left out here alone, it would shift all that follow against the values.
            what = ending.removeprefix(".")
            raise ConnectError(f"{what} do not fit into one file: {error}") from error

    def complete(self, behind: int, *, by_clock: bool) -> list[str]:
        """Make them visible: values last, so that who sees them finds the others.

        They end with the record before `behind`. Those that are there already stay as they are.
        Raises TakenError where the file that is there ends elsewhere.
        """
        for ending in sorted(self._files, reverse=True):
            file = self._files[ending]
            try:
                file.complete()
            except TakenError as taken:
                mine = file.claim
                if mine is None or not mine.ends_alike(taken.claim, behind, by_clock=by_clock):
                    raise
                file.abort()
        return [file.name for file in self._files.values()]

    def abort(self) -> None:
        """Leave nothing of them."""
        for file in self._files.values():
            file.abort()


def _key(record: SinkRecord, format_: FileFormat) -> tuple[Schema | None, Any]:
    if record.key is None:
        raise DataError(f"Key cannot be null for the record at offset {record.offset}")
    if not format_.wraps_keys or record.key_schema is None:
        return record.key_schema, record.key
    schema = builder.struct_of({"key": record.key_schema}, name="RecordKey")
    return schema, Struct(schema, [record.key])


def _headers(record: SinkRecord, format_: FileFormat) -> tuple[Schema, Any]:
    if not record.headers:
        raise DataError(f"Headers cannot be null for the record at offset {record.offset}")
    texts = [Struct(_HEADER, [one.key, java_text(one.value, one.schema)]) for one in record.headers]
    if format_.wraps_headers:
        return _WRAPPED_HEADERS, Struct(_WRAPPED_HEADERS, [texts])
    return _HEADERS, texts
