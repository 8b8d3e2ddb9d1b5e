"""The first record that is not older than some time, in records that arrive piece by piece.

Of each record only length, timestamp and offset are looked at. So the search needs some bytes for
any batch.
"""

from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import CorruptBatchError
from barnabas.protocol.records.walk import (
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    BadRecordError,
    read_varint,
)


class FoundRecord(NamedTuple):
    """A record, by what it adds to its batch's base timestamp and base offset."""

    timestamp_delta: int
    offset_delta: int


class RecordFinder:
    """The search in one batch: `feed` it pieces until it finds a record, else `finish`."""

    __slots__ = ("_count", "_offset_min", "_rest", "_skipped_bytes", "_timestamp_min", "index")

    def __init__(self, count: int, *, timestamp_min: int | None, offset_min: int) -> None:
        """The least deltas; None for a batch whose timestamps are all good."""
        self._count = count
        self._timestamp_min = timestamp_min
        self._offset_min = offset_min
        self._rest = b""
        """The beginning of the next record, too short to be understood."""
        self._skipped_bytes = 0
        """The missing bytes of the record before."""
        self.index = 0
        """The next record's."""

    def feed(self, data: bytes) -> FoundRecord | None:
        """Look through the next piece. Raises CorruptBatchError for a malformed record."""
        at = self._skipped_bytes
        if self._rest:
            data = self._rest + data
        size, count, index = len(data), self._count, self.index
        timestamp_min, offset_min = self._timestamp_min, self._offset_min
        try:
            while at < size and index < count:
                length, start = read_varint(data, at, index, VARINT_BYTES_MAX)
                timestamp, place = read_varint(data, start + 1, index, VARLONG_BYTES_MAX)
                offset, place = read_varint(data, place, index, VARINT_BYTES_MAX)
                if start + length < place:
                    raise BadRecordError(index, f"has length {length}")
                at = start + length
                index += 1
                if (timestamp_min is None or timestamp >= timestamp_min) and offset >= offset_min:
                    return FoundRecord(timestamp, offset)
        except IndexError:
            pass  # the rest of it comes next
        except BadRecordError as error:
            raise CorruptBatchError(str(error), ErrorCode.INVALID_RECORD) from error
        if index >= count and at < size:
            raise CorruptBatchError(f"{size - at} bytes follow the last record")
        self.index = index
        self._rest = data[at:]
        self._skipped_bytes = max(at - size, 0)
        return None

    def finish(self) -> None:
        """All pieces were fed. Raises CorruptBatchError if they are not the whole records."""
        if self.index < self._count or self._skipped_bytes:
            raise CorruptBatchError(f"record {self.index} ends after the batch")
