"""Readings: what was decoded of a batch of records, for all queries that get the same batch.

    batch ─▶ key's vectors, value's vectors ─▶ frame of the records that can be read

The name of a reading is all that decides what it contains: streams over one topic that differ in
columns, types or formats have other names. Readings belong to their batch, and are freed with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, TypeVar

from barnabas.schemas.registry_client import RegistryClient
from barnabas.sql.columns.frames import Frame
from barnabas.sql.formats.format import RecordPart

_KEPT_MAX: Final = 32
"""So many readings a batch keeps; it forgets the oldest."""
_JOINED_MAX: Final = 4
"""The same of longer batches that begin with it."""
Batch = TypeVar("Batch")
T = TypeVar("T")


class Readings(Generic[Batch]):
    """The readings of a batch, by name, and the longer batches that begin with it."""

    __slots__ = ("__weakref__", "_joined", "_kept")

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}
        self._joined: list[tuple[list[weakref.ref[Readings[Batch]]], Batch]] = []

    def of(self, name: Hashable, read: Callable[[], T]) -> T:
        """The reading of that name; the first time, `read` makes it."""
        found: T | None = self._kept.get(name)
        if found is None:
            found = self._kept[name] = read()
            while len(self._kept) > _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return found

    def forget(self, name: Hashable) -> None:
        """Let the next one read again."""
        del self._kept[name]

    def joined(self, behind: Sequence[Readings[Batch]], join: Callable[[], Batch]) -> Batch:
        """The batch of this one and those with these readings behind it, which `join` makes."""
        for parts, batch in self._joined:
            if len(parts) == len(behind) and all(
                part() is one for part, one in zip(parts, behind, strict=True)
            ):
                return batch
        batch = join()
        # Weak: the parts may have it themselves, and would stay until the garbage collector runs.
        self._joined.append(([weakref.ref(one) for one in behind], batch))
        del self._joined[:-_JOINED_MAX]
        return batch


def name_of(format_name: str, part: RecordPart) -> Hashable:
    """The name of the reading of a part: equal for sources that decode the same."""
    schemas = part.schemas
    return (
        format_name,
        part.subject,
        part.wraps,
        tuple(part.columns),
        tuple(sorted(part.properties.items())),
        schemas.identity if isinstance(schemas, RegistryClient) else schemas,
    )


def unchangeable(frame: Frame) -> Frame:
    """The frame, whose arrays refuse changes in place."""
    vectors = [*frame.columns, *frame.keys]
    arrays = [frame.places, frame.has_key, frame.timestamps, frame.doubt]
    arrays += [vector.valid for vector in vectors]
    arrays += [vector.data for vector in vectors if not vector.is_arrow]
    for array in arrays:
        if array is not None:
            array.flags.writeable = False
    return frame
