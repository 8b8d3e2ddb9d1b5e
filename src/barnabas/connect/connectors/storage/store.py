"""File stores: one small interface over buckets and directories; and claims of their files. Pure.

Readers see only complete files: `create` returns an upload that `complete` makes visible in one
step. It replaces a file of the same name, except, with a claim, one that was cut by the same rules.
Names use `/`. Stores are picklable and connect when first used.

A claim is metadata with which an existing file says which records it holds. If the clock ends
files, two tasks can end a file of the same name at different records: one of them was cut off from
its group, or died before it could commit. So a file never replaces another one with the same claim:
the second task learns from the first one's claim where the file ends, and ends its own there. The
files of several directories that end together follow the first of them, which both tasks would
write first; so both agree on all files.

A claim names the rules by which a file was cut, and the offset before which the clock ended it at
the latest. The same records and the same claim give the same file.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from barnabas.schemas.data.errors import ConnectError

_RULES_DIGITS: Final = 16
_ALSO: Final = ("key.converter", "value.converter", "header.converter")
_GROUPS: Final = ("transforms", "predicates")


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


@dataclass(slots=True, frozen=True)
class Claim:
    """A file's claim about its end; `limit` None means that the clock did not end it."""

    rules: str
    limit: int | None

    def text(self) -> str:
        """Return the claim as it is stored with the file."""
        return f"{self.rules}/{'' if self.limit is None else self.limit}"

    @staticmethod
    def read(text: str) -> Claim | None:
        """Parse a claim; None if the text is not one."""
        rules, separator, limit = text.partition("/")
        if not separator or not (limit == "" or limit.isdecimal()):
            return None
        return Claim(rules, int(limit) if limit else None)

    def ends_alike(self, theirs: Claim, behind: int, *, by_clock: bool) -> bool:
        """Return whether a file that ends with the record before `behind` is the one that exists.

        A file that a rule ended here ended there, too, unless the clock was faster.
        """
        if by_clock:
            return theirs.limit == self.limit
        return theirs.limit is None or behind <= theirs.limit


class TakenError(ConnectError):
    """A file of that name, cut by the same rules, already exists."""

    def __init__(self, name: str, claim: Claim) -> None:
        super().__init__(f"{name} was written in the meantime")
        self.name = name
        self.claim = claim

    def __reduce__(self) -> tuple[type[TakenError], tuple[str, Claim]]:
        return TakenError, (self.name, self.claim)


def rules_of(settings: Mapping[str, str], names: Iterable[str]) -> str:
    """Return a digest of a connector's rules, which changes with the settings of these names.

    Transforms and converters count too, since they change the records.
    """
    counted = {*names, *_ALSO}
    relevant = {
        name: value
        for name, value in settings.items()
        if name in counted or name.partition(".")[0] in _GROUPS
    }
    return _digest(json.dumps(relevant, sort_keys=True))


def of_file(rules: str, first_ms: int | None) -> str:
    """Return the rules of one file: records of a recreated topic have other times."""
    return _digest(f"{rules} {first_ms}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_RULES_DIGITS]
