"""Reads messages from Protobuf's wire format, each field of all messages at once.

A message is a row of tags, each with a value behind it. Writers write fields in the order of their
numbers, and leave out those with a default value. So one pass over the fields, in that order, reads
most messages: each field is taken where its tag is next. What is left then (fields in another
order, unknown ones) is read by more passes over those messages. A message is in doubt if it has
anything for which the codec has special rules: a field with another wire type, numbers
beyond their type, a message or a choice that is there twice, or data that end early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from barnabas.protocol.varint import write_unsigned_varint
from barnabas.sql.columns.cursors import Cursors
from barnabas.sql.columns.vectors import Indexes, Mask, Vector, concatenated

_PASSES_MAX: Final = 8
"""So many passes over the fields before the rest is left to the row reader."""
_UNKNOWN_MAX: Final = 16
"""So many unknown fields are skipped between two passes."""
_REPEATS_MAX: Final = 64
"""So many values of a repeated field that is not packed are read in a pass."""
_LENGTH_BYTES_MAX: Final = 5
_TAG_MAX: Final = 2**32 - 1
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types."""

Take = Callable[[Cursors], Vector]
"""Reads a value at all cursors, and moves them behind it."""


@dataclass(slots=True, frozen=True)
class WireField:
    """A field of a message.

    `default`: a vector of the one value that it has where it is missing. `packed` reads lists of
    values, and gives the place of the message of each. `group`: which other fields may not be in
    the same message; fields that may not be in it twice have one of their own.
    """

    name: str
    number: int
    wire_type: int
    take: Take
    default: Vector
    is_repeated: bool = False
    is_required: bool = False
    group: str | None = None
    packed: Callable[[Cursors], tuple[Indexes, Vector]] | None = None

    def tag(self, wire_type: int) -> bytes:
        """The bytes before a value."""
        made = bytearray()
        write_unsigned_varint(made, self.number << 3 | wire_type)
        return bytes(made)


_Occurrences = list[tuple["Indexes | None", Vector]]
"""Values of a field, and the places of their messages; None for all messages, one for each."""


class Found:
    """The fields of messages that were read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: dict[str, _Occurrences] = {}
        self.seen: dict[str, Mask] = {}
        """Of each group of fields, in which messages one was."""

    def add(self, field: WireField, places: Indexes | None, values: Vector) -> None:
        """Add values of a field."""
        self.values.setdefault(field.name, []).append((places, values))

    def note(self, group: str, places: Indexes | None) -> Mask:
        """Note that a field of the group is in these messages; return in which one was already."""
        seen = self.seen.get(group)
        if seen is None:
            seen = self.seen[group] = np.zeros(self.size, np.bool_)
        if places is None:
            before = seen.copy()
            seen[:] = True
            return before
        before = seen[places]
        seen[places] = True
        return before

    def one(self, field: WireField) -> Vector:
        """The value of a field in each message: the last one, or the default."""
        occurrences = self.values.get(field.name, [])
        if len(occurrences) == 1 and occurrences[0][0] is None:
            return occurrences[0][1]
        order = np.full(self.size, sum(len(values) for _, values in occurrences), np.int64)
        before = 0
        for places, values in occurrences:
            order[slice(None) if places is None else places] = before + np.arange(len(values))
            before += len(values)
        return concatenated([*(values for _, values in occurrences), field.default]).take(order)

    def lists(self, field: WireField) -> tuple[list[Any], list[int]]:
        """The values of a repeated field in all messages behind each other, and where those of
        each message begin, with their number at the end."""
        occurrences = self.values.get(field.name, [])
        if not occurrences:
            return [], [0] * (self.size + 1)
        whole = np.arange(self.size, dtype=np.int64)
        rows = np.concatenate([whole if places is None else places for places, _ in occurrences])
        values = concatenated([values for _, values in occurrences])
        order = np.argsort(rows, kind="stable")
        begins = np.searchsorted(rows[order], np.arange(self.size + 1))
        return values.take(order).to_list(), begins.tolist()


class Messages:
    """Reads messages of one type."""

    def __init__(self, fields: Sequence[WireField], *, skips_unknown: bool) -> None:
        """`skips_unknown`: fields of other numbers are unknown to the codec too."""
        self.fields: Mapping[str, WireField] = {field.name: field for field in fields}
        self._skips_unknown = skips_unknown
        self._numbers = np.array(sorted(field.number for field in fields), np.uint64)
        self._steps: list[tuple[bytes, bool, WireField]] = []
        for field in sorted(fields, key=lambda one: one.number):
            self._steps.append((field.tag(field.wire_type), False, field))
            if field.packed is not None:
                self._steps.append((field.tag(LENGTH), True, field))

    def read(self, cursors: Cursors) -> Found:
        """Read the messages up to their ends."""
        found = Found(len(cursors))
        self._pass(cursors, None, found)
        for _ in range(_PASSES_MAX):
            places = np.flatnonzero((cursors.at < cursors.ends) & ~cursors.odd)
            if not len(places):
                break
            some = cursors.some(places)
            before = some.at
            if self._skips_unknown:
                self._skip(some)
            self._pass(some, places, found)
            some.odd |= some.at == before
            cursors.follow(places, some)
        cursors.odd |= cursors.at < cursors.ends
        for field in self.fields.values():
            if field.is_required:
                assert field.group is not None
                cursors.odd |= ~found.seen.get(field.group, np.zeros(found.size, np.bool_))
        return found

    def _pass(self, cursors: Cursors, places: Indexes | None, found: Found) -> None:
        """Take each field where it is next; the messages are those at the places."""
        for tag, is_packed, field in self._steps:
            for _ in range(_REPEATS_MAX if field.is_repeated else 1):
                there = cursors.begin_with(tag)
                if not there.any():
                    break
                inner, some = None, cursors
                if not there.all():
                    inner = np.flatnonzero(there)
                    some = cursors.some(inner)
                some.forward(len(tag), None)
                whose = places
                if inner is not None:
                    whose = inner if places is None else places[inner]
                if is_packed:
                    assert field.packed is not None
                    rows, values = field.packed(some)
                    found.add(field, rows if whose is None else whose[rows], values)
                else:
                    found.add(field, whose, field.take(some))
                if field.group is not None:
                    some.odd |= found.note(field.group, whose)
                if inner is not None:
                    cursors.follow(inner, some)
            else:
                if field.is_repeated:
                    cursors.odd |= cursors.begin_with(tag)

    def _skip(self, cursors: Cursors) -> None:
        """Move the cursors behind fields with numbers that the message type has not."""
        for _ in range(_UNKNOWN_MAX):
            places = np.flatnonzero((cursors.at < cursors.ends) & ~cursors.odd)
            some = cursors.some(places)
            begins = some.at
            tags = some.varint(None)
            is_tag = (tags >= 8) & (tags <= _TAG_MAX) & (some.at - begins <= _LENGTH_BYTES_MAX)
            unknown = ~some.odd & is_tag & ~np.isin(tags >> np.uint64(3), self._numbers)
            if not unknown.any():
                return
            inner = np.flatnonzero(unknown)
            rest = some.some(inner)
            kinds = (tags[inner] & np.uint64(7)).astype(np.int64)
            _skip_values(rest, kinds)
            cursors.follow(places[inner], rest)


def _skip_values(cursors: Cursors, kinds: Indexes) -> None:
    """Move the cursors behind values of these wire types."""
    for kind, skip in _SKIPPED.items():
        places = np.flatnonzero(kinds == kind)
        if len(places):
            some = cursors.some(places)
            skip(some)
            cursors.follow(places, some)
    cursors.odd |= ~np.isin(kinds, list(_SKIPPED))


_SKIPPED: Final[dict[int, Callable[[Cursors], Any]]] = {
    VARINT: lambda cursors: cursors.varint(None),
    FIXED64: lambda cursors: cursors.forward(8, None),
    LENGTH: lambda cursors: cursors.forward(length_of(cursors), None),
    FIXED32: lambda cursors: cursors.forward(4, None),
}


def length_of(cursors: Cursors) -> Indexes:
    """The length before a value; 0, and doubt, if the record ends before the value does."""
    begins = cursors.at
    lengths = cursors.varint(None).astype(np.int64)
    left = cursors.ends - cursors.at
    bad = (lengths < 0) | (lengths > left) | (cursors.at - begins > _LENGTH_BYTES_MAX)
    cursors.odd |= bad
    return np.where(bad, 0, lengths) if bad.any() else lengths


def within(cursors: Cursors, lengths: Indexes) -> Cursors:
    """New cursors for the next so many bytes; the given ones move behind these."""
    inner = Cursors(cursors.payloads, cursors.at, cursors.at + lengths)
    cursors.at = inner.ends
    return inner
