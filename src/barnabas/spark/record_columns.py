"""Records as columns, encoded into Kafka's batches without a step for each record.

    keys, values, timestamps ─▶ partition of each key ─▶ pieces of at most a batch ─▶ its bytes

A batch is the one that `protocol.records.encode_batch` makes of the same records, byte for byte:
lengths and deltas become varints in NumPy, and Arrow puts them between keys and values.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from struct import Struct
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.java.hash import murmur2
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES, TRANSACTIONAL_MASK, Codec
from barnabas.protocol.records.records import Header, encode_headers, framed_batch

BATCH_SIZE_BYTES_MAX: Final = 900_000
"""Brokers take a megabyte, unless a topic says otherwise: then a batch is halved."""
BATCH_RECORDS_MAX: Final = 8_192
"""With two bytes for the place of each record in the batch: a node of Barnabas checks such batches
three times as fast as longer ones."""
TOGETHER_MIN: Final = 50
"""Fewer keys of one size are hashed one by one: a step over four bytes of a few keys takes NumPy as
long as one over this many, and a key may have a megabyte."""
_RECORD_OVERHEAD_BYTES: Final = 24
"""At most, of a record whose lengths are below a megabyte: all but key, value and headers."""
_NOTHING: Final = -1
"""The length of what is null."""
_NO_HEADERS: Final = pa.array([b"\0"], pa.binary())
_POSITIVE: Final = 0x7FFFFFFF
_MIX: Final = np.uint32(0x5BD1E995)
_SEED: Final = np.uint32(0x9747B28C)


class RecordColumns:
    """Records: Arrow arrays of bytes, and NumPy's milliseconds.

    `headers` has those of each record as it ends with them; None if no record has any.
    `suffix_bytes`: so many bytes at the end of a key do not decide on its partition.
    """

    def __init__(
        self, keys: Any, values: Any, timestamps: Any, headers: Any = None, suffix_bytes: int = 0
    ) -> None:
        self._keys, self._values, self._timestamps = keys, values, timestamps
        self._headers = headers
        self._suffix_bytes = suffix_bytes

    @classmethod
    def of(
        cls,
        keys: Any,
        values: Any,
        timestamps: Any,
        headers: Sequence[Sequence[Header]] | None = None,
        *,
        marks: Sequence[Header] = (),
        suffix_bytes: int = 0,
    ) -> RecordColumns:
        """The same of arrays or lists. `marks`: headers of every record, behind its own."""
        stamps = np.asarray(timestamps, np.int64)
        blocks = None
        if headers is not None:
            own = [bytes(encode_headers([*given, *marks])) for given in headers]
            blocks = pa.array(own, pa.binary())
        elif marks:
            same = pa.scalar(bytes(encode_headers(marks)), pa.binary())
            blocks = pa.repeat(same, len(keys))
        return cls(_array(keys), _array(values), stamps, blocks, suffix_bytes)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def earliest_ms(self) -> int:
        """The earliest timestamp of the records; there must be at least one."""
        return int(self._timestamps.min())

    def spread(self, partitions: int) -> Iterator[tuple[int, RecordColumns]]:
        """Batches and their partitions, to which Java's producer sends these keys.

        Records without a key go together to one of the partitions.
        """
        hashes = murmur2_of_all(self._keys, self._suffix_bytes)
        targets = (hashes.astype(np.int64) & _POSITIVE) % partitions
        if self._keys.null_count:
            is_null = self._keys.is_null().to_numpy(zero_copy_only=False)
            targets[is_null] = random.randrange(partitions)
        for partition in np.unique(targets).tolist():
            at = np.flatnonzero(targets == partition)
            of_one = self if len(at) == len(self) else self._taken(at)
            for batch in of_one._cut():
                yield partition, batch

    def halves(self) -> tuple[RecordColumns, RecordColumns]:
        """The records as two batches."""
        half = len(self) // 2
        return self._slice(0, half), self._slice(half, len(self))

    def encoded(
        self,
        codec: Codec = Codec.NONE,
        compression_level: int | None = None,
        *,
        is_transactional: bool = False,
        **identity: int,
    ) -> bytearray:
        """One batch; `identity` is the producer's, with the sequence number of the first record."""
        count = len(self)
        base_ms = int(self._timestamps[0])
        return framed_batch(
            bytearray(HEADER_SIZE_BYTES) + self._body(base_ms),
            count,
            codec=codec,
            compression_level=compression_level,
            attributes=TRANSACTIONAL_MASK if is_transactional else 0,
            last_offset_delta=count - 1,
            base_timestamp=base_ms,
            max_timestamp=int(self._timestamps.max()),
            **identity,
        )

    def _body(self, base_ms: int) -> memoryview:
        key_sizes, value_sizes = _sizes(self._keys), _sizes(self._values)
        stamps = _Varints(self._timestamps - base_ms)
        offsets = _Varints(np.arange(len(self), dtype=np.int64))
        keys, values = _Varints(key_sizes), _Varints(value_sizes)
        sizes = (
            1  # attributes
            + (stamps.widths + offsets.widths + keys.widths + values.widths)
            + np.maximum(key_sizes, 0)
            + np.maximum(value_sizes, 0)
            + (1 if self._headers is None else _sizes(self._headers))
        )
        attributes = _Varints(np.zeros(len(self), np.int64))
        parts = [
            _pieces(_Varints(sizes), attributes, stamps, offsets, keys),
            self._keys,
            _pieces(values),
            self._values,
            _NO_HEADERS if self._headers is None else self._headers,
        ]
        joined = _by_record(parts)
        return _data(joined)

    def _cut(self) -> Iterator[RecordColumns]:
        """Pieces of at most so many records and bytes, or of one record."""
        sizes = np.maximum(_sizes(self._keys), 0) + np.maximum(_sizes(self._values), 0)
        if self._headers is not None:
            sizes += _sizes(self._headers)
        ends = np.cumsum(sizes + _RECORD_OVERHEAD_BYTES)
        start = 0
        while start < len(self):
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + BATCH_SIZE_BYTES_MAX, side="right"))
            stop = min(max(stop, start + 1), start + BATCH_RECORDS_MAX)
            yield self._slice(start, stop)
            start = stop

    def _slice(self, start: int, stop: int) -> RecordColumns:
        return RecordColumns(
            self._keys[start:stop],
            self._values[start:stop],
            self._timestamps[start:stop],
            None if self._headers is None else self._headers[start:stop],
            self._suffix_bytes,
        )

    def _taken(self, at: Any) -> RecordColumns:
        places = pa.array(at)
        return RecordColumns(
            self._keys.take(places),
            self._values.take(places),
            self._timestamps[at],
            None if self._headers is None else self._headers.take(places),
            self._suffix_bytes,
        )

    def parts(self) -> tuple[Any, Any, Any, Any]:
        """All that the records hold, as buffers. Those of many records are the buffers of pieces
        of them behind each other."""
        headers = self._headers
        ones = np.ones(len(self), np.int64)
        sizes = (_sizes(self._keys), _sizes(self._values))
        numbers = (*sizes, ones if headers is None else _sizes(headers), self._timestamps)
        return (
            np.column_stack(numbers),
            _data(self._keys),
            _data(self._values),
            bytes(len(self)) if headers is None else _data(headers),
        )


class ColumnsChecksum:
    """A checksum of records in their order, the same however they are split into pieces."""

    _SUMS: Final = Struct(">4I")

    def __init__(self) -> None:
        self._sums = [0, 0, 0, 0]

    def add(self, columns: RecordColumns) -> None:
        """Take in the next records."""
        pairs = zip(columns.parts(), self._sums, strict=True)
        self._sums = [crc32(part, before) for part, before in pairs]

    @property
    def value(self) -> int:
        """The checksum, of 63 bits."""
        digest = blake2b(self._SUMS.pack(*self._sums), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1


def _array(data: Any) -> Any:
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    if not isinstance(data, pa.Array):
        return pa.array(data, pa.binary())
    return data if data.type == pa.binary() else data.cast(pa.binary())


def _data(array: Any) -> memoryview:
    """The bytes of all values of an Arrow array behind each other."""
    if array.null_count:
        array = array.fill_null(b"")
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return memoryview(b"")
    first, last = np.frombuffer(offsets, np.int32)[[array.offset, array.offset + len(array)]]
    return memoryview(data)[int(first) : int(last)]


def _sizes(data: Any) -> Any:
    lengths = pc.binary_length(data).fill_null(_NOTHING)
    return lengths.to_numpy(zero_copy_only=False).astype(np.int64)


class _Varints:
    """Numbers as zigzag varints: `bytes` has a row for each, `widths` how many of it count."""

    def __init__(self, numbers: Any) -> None:
        rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
        widths = np.ones(len(rest), np.int64)
        columns = []
        while True:
            low = (rest & np.uint64(0x7F)).astype(np.uint8)
            rest = rest >> np.uint64(7)
            goes_on = rest > 0
            columns.append(low | (goes_on.astype(np.uint8) << np.uint8(7)))
            if not goes_on.any():
                break
            widths += goes_on
        self.bytes = np.column_stack(columns)
        self.widths = widths

    def counts(self) -> Any:
        """Which bytes of each row count."""
        return np.arange(self.bytes.shape[1]) < self.widths[:, None]


def _pieces(*parts: _Varints) -> Any:
    """An Arrow array of bytes: for each record its varints, behind each other."""
    widths = sum(part.widths for part in parts)
    offsets = np.zeros(len(parts[0].bytes) + 1, np.int32)
    np.cumsum(widths, out=offsets[1:])
    if len(parts) == 1:
        data = parts[0].bytes[parts[0].counts()]
    else:
        counts = np.concatenate([part.counts() for part in parts], axis=1)
        data = np.concatenate([part.bytes for part in parts], axis=1)[counts]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _by_record(parts: Sequence[Any]) -> Any:
    """An Arrow array of the parts of the first record, those of the second, and so on.

    A part that is the same in all records may be an array of one. Arrow's `take` copies them in
    two thirds of the time that joining them as texts takes.
    """
    count = len(parts[0])
    places = np.empty((count, len(parts)), np.int64)
    start = 0
    for number, part in enumerate(parts):
        places[:, number] = np.arange(start, start + count) if len(part) == count else start
        start += len(part)
    return pa.concat_arrays(parts).take(pa.array(places.ravel()))


def murmur2_of_all(keys: Any, suffix_bytes: int = 0) -> Any:
    """Hash an Arrow array of bytes, without so many at their ends, by Kafka's murmur2.

    Returns NumPy's uint32; null is hashed as if it were empty.
    """
    found = np.full(len(keys), _finished(np.array([_SEED]))[0], np.uint32)
    sizes = np.maximum(_sizes(keys) - suffix_bytes, 0)
    _, offsets, data = keys.buffers()
    if data is None:
        return found
    starts = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys)]
    whole = np.frombuffer(data, np.uint8)
    for size in np.unique(sizes[sizes > 0]).tolist():
        at = np.flatnonzero(sizes == size)
        if len(at) >= TOGETHER_MIN:
            found[at] = _murmur2(whole, starts[at].astype(np.int64), size)
            continue
        for place in at.tolist():
            start = starts[place]
            found[place] = murmur2(whole[start : start + size].tobytes())
    return found


def _murmur2(data: Any, starts: Any, size: int) -> Any:
    """Of pieces of one size, which start at these places of the data."""
    mixed = np.full(len(starts), _SEED ^ np.uint32(size), np.uint32)
    whole = size & ~3
    for at in range(0, whole, 4):
        word = _little(data, starts + at, 4) * _MIX
        mixed = (mixed * _MIX) ^ ((word ^ (word >> np.uint32(24))) * _MIX)
    if size != whole:
        mixed = (mixed ^ _little(data, starts + whole, size - whole)) * _MIX
    return _finished(mixed)


def _finished(mixed: Any) -> Any:
    mixed = (mixed ^ (mixed >> np.uint32(13))) * _MIX
    return mixed ^ (mixed >> np.uint32(15))


def _little(data: Any, places: Any, size: int) -> Any:
    """Numbers of so many bytes, the lowest first."""
    word = data[places].astype(np.uint32)
    for more in range(1, size):
        word |= data[places + more].astype(np.uint32) << np.uint32(8 * more)
    return word
