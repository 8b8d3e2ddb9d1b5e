"""Where files are: one small interface over buckets and directories.

A file is seen once it is whole: `create` gives an upload that `complete` makes visible in one step,
in place of what had its name, or, with a claim, only where none of its rules has it. Names use `/`.
Stores are picklable and connect when first used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from barnabas.connect.connectors.storage.claims import Claim
from barnabas.schemas.data.errors import ConnectError


@dataclass(slots=True, frozen=True)
class StoredFile:
    """A file that is there. `version` differs for each content."""

    name: str
    size_bytes: int
    version: str
    modified_ms: int


class ChangedFileError(ConnectError):
    """A file is another than the one that was listed."""


class Upload(ABC):
    """A file on its way. Not seen before it is complete."""

    @abstractmethod
    def write(self, data: Any, /) -> int:
        """Take bytes. Raises RetriableError, ConnectError."""

    @abstractmethod
    def complete(self) -> None:
        """Make the file visible. Raises TakenError, RetriableError, ConnectError."""

    @abstractmethod
    def abort(self) -> None:
        """Leave nothing of it; never raises."""


class FileStore(ABC):
    """A bucket or a directory."""

    @abstractmethod
    def check(self) -> None:
        """Find out whether it is there and lets us in. Raises ConnectError, RetriableError."""

    @abstractmethod
    def create(self, name: str, claim: Claim | None = None) -> Upload:
        """Begin a file. Raises RetriableError, ConnectError. Not every store knows claims."""

    @abstractmethod
    def open(self, name: str, version: str | None = None) -> BinaryIO:
        """Open a file to read, from its start; it can seek. Raises RetriableError, ConnectError.

        Raises ChangedFileError where it is not of the version, if the store can tell that.
        So do its own methods: an OSError is not one of them.
        """

    @abstractmethod
    def list(self, prefix: str) -> Iterator[StoredFile]:
        """Yield the files below a prefix, by name. Raises RetriableError, ConnectError."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file; nothing happens where it is not. Raises RetriableError, ConnectError."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""
