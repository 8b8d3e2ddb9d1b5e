"""The interface of file formats, and Connect's values as the formats' libraries take them.

A file holds one schema's values: of values, keys or headers. They become dicts, lists and what is
in them, compiled per schema; logical types stay what they are: dates, times, moments and decimals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, BinaryIO, ClassVar, Protocol

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.data.recursive import refuse_recursion
from barnabas.schemas.data.schema import DECIMAL, Schema, Struct, Type

Plain = Callable[[Any], Any]


class FileOutput(Protocol):
    """The receiver of a file's bytes, in order."""

    def write(self, data: Any, /) -> int:
        """Take bytes. Raises RetriableError, ConnectError."""


class FileWriter(ABC):
    """Writes one file."""

    @abstractmethod
    def write(self, value: Any) -> None:
        """Add a value. Raises DataError for one that does not fit; the file stays whole then."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is still held back; the output stays open."""

    def discard(self) -> None:
        """Free what is held; nothing of the file is wanted."""


class FileFormat(ABC):
    """One format with its settings. Picklable."""

    is_compressible: ClassVar[bool] = False
    """True if whole files may be compressed, which then shows in their names."""
    wraps_keys: ClassVar[bool] = False
    wraps_headers: ClassVar[bool] = False
    """True if keys or headers are put into a struct, where the format stores nothing else."""

    @property
    @abstractmethod
    def extension(self) -> str:
        """The end of files' names, with its dot."""

    @abstractmethod
    def open(self, output: FileOutput, schema: Schema | None) -> FileWriter:
        """Begin a file for values of a schema. Raises DataError if it cannot hold them."""

    @abstractmethod
    def read(self, source: BinaryIO) -> Iterator[tuple[Schema | None, Any]]:
        """Yield schema and value of each record of a file. Raises DataError."""


# Plain values as Connect's, compiled per schema: what readers of files make records of.

Make = Callable[[Any], Any]


def maker(schema: Schema) -> Make:
    """Return what makes a value of the schema from dicts, lists and what is in them."""
    make = _maker(schema)
    return lambda value: None if value is None else make(value)


def _maker(schema: Schema) -> Make:
    match schema.type:
        case Type.STRUCT:
            names = [field.name for field in schema.fields]
            makes = [maker(field.schema) for field in schema.fields]

            def struct(value: Mapping[str, Any]) -> Struct:
                pairs = zip(names, makes, strict=True)
                return Struct(schema, [make(value.get(name)) for name, make in pairs])

            return struct
        case Type.ARRAY:
            items = maker(part(schema.value_schema))
            return lambda value: [items(item) for item in value]
        case Type.MAP:
            keys, values = maker(part(schema.key_schema)), maker(part(schema.value_schema))

            def mapping(value: Any) -> dict[Any, Any]:
                pairs = value.items() if isinstance(value, Mapping) else value
                return {keys(key): values(item) for key, item in pairs}

            return mapping
    return _logical


def _logical(value: Any) -> Any:
    """Milliseconds are the finest that Connect's times have; datetimes are whole ones to it."""
    if isinstance(value, (datetime, time)):
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    return value


def is_text_keyed(schema: Schema) -> bool:
    """Return whether a map's keys are texts that are never null, as Avro's are."""
    keys = schema.key_schema
    return keys is not None and keys.type is Type.STRING and not keys.optional


def part(schema: Schema | None) -> Schema:
    """Return the schema of a part. Raises DataError if none exists."""
    if schema is None:
        raise DataError("The schema does not say what its items are")
    return schema


def plain(schema: Schema, *, maps_as_pairs: bool) -> Plain | None:
    """Return what makes values plain; None where they are already.

    Maps become dicts or, where asked or where their keys are not texts, lists of pairs: tuples for
    Arrow, `{"key": …, "value": …}` for Avro.
    """
    made = _plain(schema, maps_as_pairs)
    default = schema.default
    if default is None:
        if made is None:
            return None
        some = made
        return lambda value: None if value is None else some(value)
    inner = made or _same
    return lambda value: inner(default if value is None else value)


def _plain(schema: Schema, maps_as_pairs: bool) -> Plain | None:
    refuse_recursion(schema, "a table or file of columns")
    match schema.type:
        case Type.STRUCT:
            return _struct(schema, maps_as_pairs)
        case Type.ARRAY:
            items = plain(part(schema.value_schema), maps_as_pairs=maps_as_pairs)
            return None if items is None else lambda value: [items(item) for item in value]
        case Type.MAP:
            return _map(schema, maps_as_pairs)
        case Type.BYTES if schema.name != DECIMAL:
            return bytes
    return None


def _struct(schema: Schema, maps_as_pairs: bool) -> Plain:
    names = [field.name for field in schema.fields]
    parts = [plain(field.schema, maps_as_pairs=maps_as_pairs) for field in schema.fields]
    changes = [(name, change) for name, change in zip(names, parts, strict=True) if change]

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, Struct):
            raise DataError(f"A struct was expected, not {type(value).__name__}")
        row = dict(zip(names, value.values, strict=True))
        for name, change in changes:
            row[name] = change(row[name])
        return row

    return convert


def _map(schema: Schema, maps_as_pairs: bool) -> Plain:
    keys = plain(part(schema.key_schema), maps_as_pairs=maps_as_pairs) or _same
    items = plain(part(schema.value_schema), maps_as_pairs=maps_as_pairs) or _same
    if maps_as_pairs:
        return lambda value: [(keys(key), items(item)) for key, item in value.items()]
    if is_text_keyed(schema):
        return lambda value: {key: items(item) for key, item in value.items()}
    return lambda value: [{"key": keys(k), "value": items(item)} for k, item in value.items()]


def _same(value: Any) -> Any:
    return value
