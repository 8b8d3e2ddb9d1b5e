"""Cursors: positions in the binary data of many records, to read from all of them at once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from barnabas.sql.columns.vectors import Indexes, Mask, Numbers

_PADDING: Final = 16
"""Bytes behind the payloads, so that a number may be read at the end of the last one."""
_VARINT_SHIFT_MAX: Final = 63


def payloads_of(data: Any) -> tuple[Numbers, Indexes, Indexes]:
    """The bytes of all records behind each other, and where each begins and ends."""
    held = np.frombuffer(data.buffers()[1], np.int32, len(data) + 1, data.offset * 4)
    offsets: Indexes = held.astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    whole = np.zeros(last - first + _PADDING, np.uint8)
    if last > first:
        whole[: last - first] = np.frombuffer(data.buffers()[2], np.uint8)[first:last]
    return whole, offsets[:-1] - first, offsets[1:] - first


class Cursors:
    """The position in each record of a group. `odd`: records that are not as expected; their
    cursors stop at the record's end at the latest."""

    __slots__ = ("at", "ends", "odd", "payloads")

    def __init__(self, payloads: Numbers, at: Indexes, ends: Indexes) -> None:
        self.payloads = payloads
        self.at = at
        self.ends = ends
        self.odd = at > ends

    def __len__(self) -> int:
        return len(self.at)

    def note(self, odd: Mask, mine: Mask | None) -> None:
        """Doubt these records, of `mine`: those that have the field."""
        self.odd |= odd if mine is None else odd & mine

    def forward(self, widths: Any, mine: Mask | None) -> None:
        """Move the cursors of `mine` by so many bytes."""
        at = self.at + (widths if mine is None else np.where(mine, widths, 0))
        self.odd |= at > self.ends
        self.at = np.minimum(at, self.ends)

    def begin_with(self, tag: bytes) -> Mask:
        """Return where these bytes are next."""
        found: Mask = self.at + len(tag) <= self.ends
        for place, byte in enumerate(tag):
            found &= self.payloads[self.at + place] == byte
        return found

    def byte(self, mine: Mask | None) -> Numbers:
        """One byte of each."""
        found: Numbers = self.payloads[self.at]
        self.forward(1, mine)
        return found

    def fixed(self, width: int, mine: Mask | None) -> Numbers:
        """So many bytes of each, as rows."""
        places = self.at[:, None] + np.arange(width)
        found: Numbers = self.payloads[np.minimum(places, len(self.payloads) - 1)]
        self.forward(width, mine)
        return found

    def varint(self, mine: Mask | None) -> Numbers:
        """A number of each of up to 64 bits, seven in a byte, the lowest first."""
        first = self.payloads[self.at]
        value: Numbers = (first & 0x7F).astype(np.uint64)
        widths: Any = 1
        more = first > 0x7F if mine is None else (first > 0x7F) & mine
        if more.any():
            places = np.flatnonzero(more)
            widths = np.ones(len(self), np.int64)
            for shift in range(7, _VARINT_SHIFT_MAX + 1, 7):
                byte = self.payloads[self.at[places] + shift // 7]
                value[places] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
                widths[places] += 1
                if shift == _VARINT_SHIFT_MAX:
                    self.odd[places[byte > 1]] = True
                places = places[byte > 0x7F]
                if not len(places):
                    break
        self.forward(widths, mine)
        return value

    def number(self, mine: Mask | None) -> Indexes:
        """A whole number of each, with its sign in the last bit."""
        value = self.varint(mine)
        one = np.uint64(1)
        found: Indexes = (value >> one).astype(np.int64) ^ -(value & one).astype(np.int64)
        return found

    def pieces(self, lengths: Indexes, mine: Mask | None) -> Any:
        """So many bytes of each, as an Arrow array; NULL beside `mine`."""
        odd = (lengths < 0) | (lengths > self.ends - self.at)
        self.note(odd, mine)
        without = odd if mine is None else odd | ~mine
        if without.any():
            lengths = np.where(without, 0, lengths)
        begins = self.at
        self.at = begins + lengths
        # Every other piece of the payloads is a value; the pieces between them are not taken.
        offsets = np.empty(2 * len(self), np.int32)
        offsets[0::2] = begins
        offsets[1::2] = self.at
        pieces = pa.BinaryArray.from_buffers(
            pa.binary(),
            max(len(offsets) - 1, 0),
            [None, pa.py_buffer(offsets), pa.py_buffer(self.payloads)],
        )
        taken = np.arange(0, len(offsets), 2, dtype=np.int64)
        return pieces.take(pa.array(taken, mask=None if mine is None else ~mine))

    def rest(self) -> Any:
        """The bytes left in each, as an Arrow array."""
        return self.pieces(self.ends - self.at, None)

    def some(self, places: Indexes) -> Cursors:
        """New cursors for the records at these places."""
        return Cursors(self.payloads, self.at[places], self.ends[places])

    def follow(self, places: Indexes, moved: Cursors) -> None:
        """Move the cursors at these places to where others are that began there."""
        at = self.at.copy()  # others may hold it
        at[places] = moved.at
        self.at = at
        self.odd[places] |= moved.odd
