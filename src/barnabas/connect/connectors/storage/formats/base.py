"""What a format of files is. A file holds one schema's values: of values, keys or headers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar, Protocol

from barnabas.schemas.data.schema import Schema


class Output(Protocol):
    """Where a file's bytes go, in order."""

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
    """Whether whole files may be compressed, which then shows in their names."""
    wraps_keys: ClassVar[bool] = False
    wraps_headers: ClassVar[bool] = False
    """Whether keys or headers are put into a struct, where the format stores nothing else."""

    @property
    @abstractmethod
    def extension(self) -> str:
        """The end of files' names, with its dot."""

    @abstractmethod
    def open(self, output: Output, schema: Schema | None) -> FileWriter:
        """Begin a file for values of a schema. Raises DataError if it cannot hold them."""

    @abstractmethod
    def read(self, source: BinaryIO) -> Iterator[tuple[Schema | None, Any]]:
        """Yield schema and value of each record of a file. Raises DataError."""
