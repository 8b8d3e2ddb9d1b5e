"""The interface of file formats. A file holds one schema's values: of values, keys or headers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, BinaryIO, ClassVar, Protocol

from barnabas.connect.connectors.storage.formats.plain import part
from barnabas.schemas.data.schema import Schema, Struct, Type


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
