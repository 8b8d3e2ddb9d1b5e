"""The structural check of records that arrive piece by piece.

It accepts what `walk.py` accepts. Of a record whose end has not arrived the beginning is kept, but
of one with more than LARGE_SIZE_BYTES only what is not understood yet: keys and values are passed
over. So the check needs some kilobytes for any batch.
"""

from collections.abc import Callable, Collection, Generator, Iterator
from typing import Final, Protocol

from barnabas.protocol.records.walk import (
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    BadRecordError,
    CutOffError,
    MissingKeyError,
    Walk,
    read_varint,
)

STEP_SIZE_BYTES: Final = 16 * 1024
"""Bytes that are checked between two pauses."""
STEP_RECORDS_MAX: Final = 512
STEP_HEADERS_MAX: Final = 256
LARGE_SIZE_BYTES: Final = STEP_SIZE_BYTES

BEGINNING_SIZE_BYTES: Final = 17
"""Shown of keys, values and headers of large records."""
WATCHED_NAME_SIZE_BYTES_MAX: Final = 32

See = Callable[[int, int], None]
"""Called with a record's index and its timestamp's delta from the batch's base timestamp."""


class Watch(Protocol):
    """Sees all records while they are checked."""

    names: Collection[bytes]
    """Of the headers that it wants."""

    def see_records(self, data: bytes, index: int) -> None:
        """Well-formed records, whole, of which the first is record `index`."""

    def see_large(
        self,
        index: int,
        key: bytes | None,
        value: bytes | None,
        headers: dict[bytes, bytes | None],
    ) -> None:
        """The beginnings of a large record's key, value and last headers that are wanted."""


class StructureCheck:
    """The check of one batch's records: `feed` it all pieces, then `finish`."""

    __slots__ = (
        "_count",
        "_index",
        "_keys_required",
        "_large",
        "_rest",
        "_see",
        "_size_max",
        "_walker",
        "_watch",
    )

    def __init__(
        self,
        count: int,
        *,
        keys_required: bool,
        size_max: int,
        see: See | None = None,
        watch: Watch | None = None,
    ) -> None:
        """`size_max`: a record that says it has more bytes is wrong. `see` gets all timestamps."""
        self._count = count
        self._keys_required = keys_required
        self._size_max = size_max
        self._see = see
        self._watch = watch
        self._walker = Walk(keys_required=keys_required)
        self._index = 0
        self._rest = b""
        """The beginning of the record at `_index`."""
        self._large: _LargeRecord | None = None

    def feed(self, piece: bytes) -> Iterator[None]:
        """Check the next piece, with pauses. Raises BadRecordError for the first bad record."""
        for start in range(0, len(piece), STEP_SIZE_BYTES):
            data = piece[start : start + STEP_SIZE_BYTES]
            large = self._large
            if large is not None:
                yield from large.feed(data)
                if not large.is_over:
                    continue
                self._large = None
                self._index += 1
                data = large.following
            elif self._rest:
                data = self._rest + data
            yield from self._walk(data)

    def finish(self) -> None:
        """All pieces were fed. Raises BadRecordError if a record is missing or cut off."""
        if self._large is not None:
            raise self._large.is_cut_off()
        if self._index < self._count:
            raise BadRecordError(self._index, "ends after the batch")

    def _walk(self, data: bytes) -> Iterator[None]:
        """Check the whole records in `data`, and keep what follows them."""
        position, count = 0, self._count
        cut_off: CutOffError | None = None
        while cut_off is None and self._index < count:
            first = self._index
            last = min(count, first + STEP_RECORDS_MAX)
            try:
                end = self._walker.walk(data, position, first, last)
            except CutOffError as error:
                cut_off, last, end = error, error.index, error.position
            if last > first:
                if self._see is not None:
                    _see_all(self._see, data[position:end], first)
                if self._watch is not None:
                    self._watch.see_records(data[position:end], first)
                self._index, position = last, end
            yield
        self._rest = data[position:]
        if cut_off is not None:
            yield from self._begin()
        elif self._rest:
            raise BadRecordError(count, "is too many: bytes follow the last record")

    def _begin(self) -> Iterator[None]:
        """The record at `_index` begins in `_rest` and does not end there."""
        try:
            length, _ = read_varint(self._rest, 0, self._index, VARINT_BYTES_MAX)
        except IndexError:
            return
        if length > self._size_max:
            raise BadRecordError(self._index, f"has length {length}")
        if length > LARGE_SIZE_BYTES:
            self._large = large = _LargeRecord(
                self._index, self._keys_required, self._see, self._watch
            )
            beginning, self._rest = self._rest, b""
            yield from large.feed(beginning)  # without the record's end


def _see_all(see: See, data: bytes, index: int) -> None:
    position, size = 0, len(data)
    while position < size:
        length, start = read_varint(data, position, index, VARINT_BYTES_MAX)
        delta, _ = read_varint(data, start + 1, index, VARLONG_BYTES_MAX)
        see(index, delta)
        position = start + length
        index += 1


class _LargeRecord:
    """One record that arrives in parts."""

    __slots__ = (
        "_at",
        "_data",
        "_data_position",
        "_index",
        "_keys_required",
        "_length",
        "_parser",
        "_see",
        "_watch",
        "is_over",
    )

    def __init__(
        self, index: int, keys_required: bool, see: See | None, watch: Watch | None
    ) -> None:
        self._index = index
        self._keys_required = keys_required
        self._see = see
        self._watch = watch
        self._data = b""
        self._data_position = 0
        """Where `_data` begins, in the record."""
        self._at = 0
        """The position of the next field in `_data`, or after it."""
        self._length = 0
        self.is_over = False
        self._parser = self._parse()

    @property
    def following(self) -> bytes:
        """The bytes after the record's end."""
        return self._data[self._at :]

    def feed(self, data: bytes) -> Iterator[None]:
        """Check the next part, with pauses. Raises BadRecordError."""
        at = min(self._at, len(self._data))
        self._data_position += at
        self._at -= at
        self._data = self._data[at:] + data
        for needs_more in self._parser:
            if needs_more:
                return
            yield

    def is_cut_off(self) -> BadRecordError:
        """The fault, if nothing more arrives."""
        return BadRecordError(self._index, f"has length {self._length}")

    def _parse(self) -> Iterator[bool]:
        """Pauses: True until more has been fed, False for a step's end."""
        index = self._index
        length = yield from self._varint(VARINT_BYTES_MAX)
        self._length = length
        end = self._position + length
        self._at += 1  # attributes
        timestamp = yield from self._varint(VARLONG_BYTES_MAX)
        delta = yield from self._varint(VARINT_BYTES_MAX)
        if delta != index:
            raise BadRecordError(index, f"has offset delta {delta}")
        key_size = yield from self._varint(VARINT_BYTES_MAX)
        if key_size < 0 and self._keys_required:
            raise MissingKeyError(index)
        key = yield from self._pass(key_size, end)
        value = yield from self._pass((yield from self._varint(VARINT_BYTES_MAX)), end)
        headers: dict[bytes, bytes | None] = {}
        count = yield from self._varint(VARINT_BYTES_MAX)
        if not 0 <= count <= end - self._position:
            raise BadRecordError(index, f"has {count} headers")
        for number in range(count):
            name_size = yield from self._varint(VARINT_BYTES_MAX)
            if name_size < 0:
                raise BadRecordError(index, "has a header without a name")
            name = (yield from self._pass(name_size, end, WATCHED_NAME_SIZE_BYTES_MAX)) or b""
            beginning = yield from self._pass((yield from self._varint(VARINT_BYTES_MAX)), end)
            if self._watch is not None and name in self._watch.names and name_size == len(name):
                headers[name] = beginning
            if number % STEP_HEADERS_MAX == STEP_HEADERS_MAX - 1:
                yield False
        if self._position != end:
            raise BadRecordError(index, f"ends {end - self._position} bytes after its last part")
        while self._at > len(self._data):
            yield True
        if self._see is not None:
            self._see(index, timestamp)
        if self._watch is not None:
            self._watch.see_large(index, key, value, headers)
        self.is_over = True

    @property
    def _position(self) -> int:
        """Of the next field, in the record."""
        return self._data_position + self._at

    def _varint(self, bytes_max: int) -> Generator[bool, None, int]:
        while True:
            try:
                value, self._at = read_varint(self._data, self._at, self._index, bytes_max)
            except IndexError:
                yield True
            else:
                return value

    def _pass(
        self, size: int, end: int, shown_max: int = BEGINNING_SIZE_BYTES
    ) -> Generator[bool, None, bytes | None]:
        """Pass over a field, and return its beginning if it is wanted; a negative size is null."""
        if self._position + max(size, 0) > end:
            raise BadRecordError(self._index, "ends before its last part")
        if size < 0:
            return None
        beginning = b""
        if self._watch is not None:
            shown = min(size, shown_max)
            while self._at + shown > len(self._data):
                yield True
            beginning = self._data[self._at : self._at + shown]
        self._at += size
        return beginning
