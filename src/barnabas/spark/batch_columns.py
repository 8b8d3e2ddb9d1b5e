"""Decodes record batches into Arrow arrays, without a Python step for each field of each record.

    batches ─▶ those that a reader sees ─▶ where each record begins ─▶ its fields ─▶ Arrow arrays

A plain loop finds where records begin, since the length of each gives the begin of the next. NumPy
then reads one field of all records at a time, as numbers of any width. Keys and values are slices
of the batches, which Arrow copies. A record with headers costs a step in Python.

The result is what `protocol.records.decode_records` gives. Source: Kafka's DefaultRecord,
DefaultRecordBatch and CompletedFetch (which records a reader sees).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from barnabas.base.disk import Buffer
from barnabas.protocol.messages.fetch import AbortedTransaction
from barnabas.protocol.records.batch import (
    HEADER_SIZE_BYTES,
    BatchHeader,
    CorruptBatchError,
    TimestampType,
    check_crc,
    iterate_headers,
)
from barnabas.protocol.records.control import ControlType, control_type
from barnabas.protocol.records.records import (
    Header,
    decode_headers,
    decode_records,
    decompressed_records,
)
from barnabas.protocol.records.uniform import RECORD_SIZE_BYTES_MIN
from barnabas.protocol.records.walk import VARINT_BYTES_MAX, VARLONG_BYTES_MAX, BadRecordError

TOGETHER_SIZE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The uncompressed size at which batches that are decoded together become arrays."""
TOGETHER_RECORDS_MAX: Final = 100_000
_PADDING: Final = bytes(16)
"""Appended to the records, so that reading a number that is cut off ends."""
_LOW: Final = np.uint64(0x7F)
_MORE: Final = np.uint8(0x80)
_ONE: Final = np.uint64(1)
_SHORT: Final = [1 + (byte >> 1) for byte in range(0x80)]
"""By the only byte of a record's length, how far the next record is."""
_FIRST: Final = [2 + ((byte & 0x7F) >> 1) for byte in range(0x100)]
_SECOND: Final = [byte << 6 for byte in range(0x80)]
"""The same by the two bytes of a length: the sum of both."""


@dataclass(slots=True)
class BatchColumns:
    """Records of one partition, by offset. `headers` is None if none has any."""

    offsets: Any
    timestamps: Any
    keys: Any
    values: Any
    headers: list[tuple[Header, ...]] | None

    def __len__(self) -> int:
        return len(self.offsets)


class AbortedProducers:
    """Finds the batches of aborted transactions, which a reader of committed records drops.

    `aborted`: of the answer. Source: CompletedFetch.consumeAbortedTransactionsUpTo.
    """

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._open: set[int] = set()

    def drops(self, buffer: Buffer, position: int, header: BatchHeader) -> bool:
        """Return whether a batch, each after those before it, is of an aborted transaction."""
        if not header.is_transactional:
            return False
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._open.add(self._coming.pop().producer_id)
        if header.producer_id not in self._open:
            return False
        if header.is_control:
            records = decode_records(buffer, position)
            if records and control_type(records[0]) is ControlType.ABORT:
                self._open.discard(header.producer_id)
            return False
        return True


@dataclass(slots=True)
class _Section:
    """The records of one batch, uncompressed."""

    header: BatchHeader
    data: Buffer


def columns_of_batches(
    buffer: Buffer,
    first: int,
    until: int,
    aborted: Sequence[AbortedTransaction] | None = None,
) -> Iterator[BatchColumns]:
    """The records from offset `first` on, before `until`, of the whole batches in a buffer.

    `aborted`: transactions whose records are left out; None leaves out none. Control batches always
    are. Raises CorruptBatchError.
    """
    producers = AbortedProducers(aborted or ())
    together: list[_Section] = []
    size_bytes = records = 0
    for position, header in iterate_headers(buffer, allow_partial_tail=True):
        if header.base_offset >= until:
            break
        if not check_crc(buffer, position, header):
            raise CorruptBatchError(f"the batch at offset {header.base_offset} has another CRC")
        is_dropped = producers.drops(buffer, position, header)
        if is_dropped or header.is_control or header.next_offset <= first:
            continue
        section = _section(buffer, position, header)
        if together and (
            size_bytes + len(section.data) > TOGETHER_SIZE_BYTES_MAX
            or records + header.record_count > TOGETHER_RECORDS_MAX
        ):
            yield _columns(together, first, until)
            together, size_bytes, records = [], 0, 0
        together.append(section)
        size_bytes += len(section.data)
        records += header.record_count
    if together:
        yield _columns(together, first, until)


def _section(buffer: Buffer, position: int, header: BatchHeader) -> _Section:
    data: Buffer
    if header.is_compressed:
        data = decompressed_records(buffer, position, header)
    else:
        end = position + header.size_bytes
        data = memoryview(buffer)[position + HEADER_SIZE_BYTES : end]
    if not 0 <= header.record_count <= len(data) // RECORD_SIZE_BYTES_MIN:
        raise CorruptBatchError(f"{header.record_count} records do not fit in {len(data)} bytes")
    return _Section(header, data)


def _columns(sections: Sequence[_Section], first: int, until: int) -> BatchColumns:
    data = b"".join([*(section.data for section in sections), _PADDING])
    size = len(data) - len(_PADDING)
    try:
        starts = np.array(_starts(data, sections), np.int64)
    except IndexError:
        raise CorruptBatchError("a record ends after its batch") from None
    counts = [section.header.record_count for section in sections]
    fields = _Fields(np.frombuffer(data, np.uint8), starts)
    lengths = fields.number(VARINT_BYTES_MAX)
    ends = fields.at + lengths
    fields.at = fields.at + 1  # attributes, unused
    deltas = fields.number(VARLONG_BYTES_MAX)
    offsets = fields.number(VARINT_BYTES_MAX) + _of_each(
        [section.header.base_offset for section in sections], counts
    )
    keys = fields.piece(ends)
    values = fields.piece(ends)
    header_counts = fields.number(VARINT_BYTES_MAX)
    headers = _headers(data, fields.at, ends, header_counts)
    plain = header_counts == 0
    if not (fields.at == ends)[plain].all():
        raise CorruptBatchError("a record ends before or after its last part")
    stamps = _timestamps(sections, counts, deltas)
    seen: Any = None
    if len(offsets) and (offsets.min() < first or offsets.max() >= until):
        seen = np.flatnonzero((offsets >= first) & (offsets < until))
        offsets, stamps = offsets[seen], stamps[seen]
        if headers is not None:
            headers = [headers[place] for place in seen.tolist()]
    buffer = pa.py_buffer(memoryview(data)[:size])
    return BatchColumns(
        pa.array(offsets),
        pa.array(stamps),
        _binary(buffer, keys, seen),
        _binary(buffer, values, seen),
        headers if headers is None or any(headers) else None,
    )


def _starts(data: bytes, sections: Sequence[_Section]) -> list[int]:
    """Return the positions at which the records begin.

    Raises CorruptBatchError where they do not fill their batch, or IndexError.
    """
    short, first_byte, second_byte = _SHORT, _FIRST, _SECOND
    starts = [0] * sum(section.header.record_count for section in sections)
    position = begun = 0
    for section in sections:
        end = position + len(section.data)
        before, begun = begun, begun + section.header.record_count
        for number in range(before, begun):
            starts[number] = position
            byte = data[position]
            if byte < 0x80:
                position += short[byte]
                continue
            second = data[position + 1]
            if second < 0x80:
                position += first_byte[byte] + second_byte[second]
                continue
            raw, shift = byte & 0x7F | (second & 0x7F) << 7, 14
            for place in range(position + 2, position + VARINT_BYTES_MAX):
                byte = data[place]
                raw |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            else:
                raise CorruptBatchError("a record's length is too long")
            position = place + 1 + (raw >> 1)
            if position > end:
                break
        if position != end:
            raise CorruptBatchError("the records do not end where their batch does")
    return starts


class _Fields:
    """Fields of all records: `at` is where each record's next one begins."""

    def __init__(self, data: Any, at: Any) -> None:
        self._data = data
        self._last = len(data) - 1
        self.at = at

    def number(self, bytes_max: int) -> Any:
        """Signed numbers of any width. Raises CorruptBatchError."""
        data = self._data
        low = data[np.minimum(self.at, self._last)]
        raw = (low & np.uint8(0x7F)).astype(np.uint64)
        after = self.at + 1
        open_ = np.flatnonzero(low >= _MORE)
        width = 1
        while len(open_):
            if width == bytes_max:
                raise CorruptBatchError(f"a number has more than {bytes_max} bytes")
            low = data[np.minimum(after[open_], self._last)]
            raw[open_] |= (low & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * width)
            after[open_] += 1
            open_ = open_[low >= _MORE]
            width += 1
        self.at = after
        return (raw >> _ONE).astype(np.int64) ^ -(raw & _ONE).astype(np.int64)

    def piece(self, ends: Any) -> tuple[Any, Any, Any]:
        """Read a piece of each record: its begin, its end, and whether it is null.

        Raises CorruptBatchError.
        """
        sizes = self.number(VARINT_BYTES_MAX)
        is_null = sizes < 0
        begins = self.at
        self.at = begins + np.maximum(sizes, 0)
        if (self.at > ends).any():
            raise CorruptBatchError("a record ends before its last part")
        return begins, self.at, is_null


def _headers(data: bytes, at: Any, ends: Any, counts: Any) -> list[tuple[Header, ...]] | None:
    """The headers of each record; None if none has any."""
    some = np.flatnonzero(counts).tolist()
    if not some:
        return None
    found: list[tuple[Header, ...]] = [()] * len(counts)
    for place in some:
        headers: list[Header] = []
        end = int(ends[place])
        try:
            reached = decode_headers(data, int(at[place]), end, place, int(counts[place]), headers)
        except BadRecordError as error:
            raise CorruptBatchError(str(error)) from error
        except IndexError:
            raise CorruptBatchError("a record ends before its headers") from None
        if reached != end:
            raise CorruptBatchError("a record ends before or after its headers")
        found[place] = tuple(headers)
    return found


def _timestamps(sections: Sequence[_Section], counts: Sequence[int], deltas: Any) -> Any:
    made = deltas + _of_each([section.header.base_timestamp for section in sections], counts)
    for place, section in enumerate(sections):
        if section.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            before = sum(counts[:place])
            made[before : before + counts[place]] = section.header.max_timestamp
    return made


def _of_each(numbers: Sequence[int], counts: Sequence[int]) -> Any:
    """A batch's number for each of its records."""
    return np.repeat(np.array(numbers, np.int64), counts)


def _binary(buffer: Any, piece: tuple[Any, Any, Any], seen: Any) -> Any:
    """An Arrow array of pieces of a buffer, at these places or at all."""
    begins, ends, is_null = piece
    # The pieces asked for are those at even places; `take` leaves out the gaps between them.
    offsets = np.empty(2 * len(begins), np.int32)
    offsets[0::2] = begins
    offsets[1::2] = ends
    pieces = pa.Array.from_buffers(
        pa.binary(), max(len(offsets) - 1, 0), [None, pa.py_buffer(offsets), buffer]
    )
    places = np.arange(len(begins), dtype=np.int64) if seen is None else seen
    is_null = is_null[places]
    return pieces.take(pa.array(2 * places, mask=is_null if is_null.any() else None))
