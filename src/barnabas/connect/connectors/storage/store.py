"""File stores: one small interface over buckets and directories.

Readers see only complete files: `create` returns an upload that `complete` makes visible in one
step. It replaces a file of the same name, except, with a claim, one that was cut by the same rules
(see `claims`). Names use `/`. Stores are picklable and connect when first used.
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
    """A file in the store. `version` changes with its content."""

    name: str
    size_bytes: int
    version: str
    modified_ms: int


class ChangedFileError(ConnectError):
    """A file has changed since it was listed."""


class Upload(ABC):
    """A file that is being written; readers do not see it before it is complete."""

    @abstractmethod
    def write(self, data: Any, /) -> int:
        """Take bytes. Raises RetriableError, ConnectError."""

    @abstractmethod
    def complete(self) -> None:
        """Make the file visible. Raises TakenError, RetriableError, ConnectError."""

    @abstractmethod
    def abort(self) -> None:
        """Discard what was written; never raises."""


class FileStore(ABC):
    """A bucket or a directory."""

    @abstractmethod
    def check(self) -> None:
        """Check that it exists and grants access. Raises ConnectError, RetriableError."""

    @abstractmethod
    def create(self, name: str, claim: Claim | None = None) -> Upload:
        """Begin a file. Raises RetriableError, ConnectError. Some stores do not support claims."""

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
