"""Batches read for a share group: the log's bytes, and where each batch begins.

Only headers are looked at. A range of a file costs a short read per batch, so the walk ends
where no record can be acquired any more; what lies behind is not sent.
"""

from collections.abc import Iterator, Sequence
from struct import Struct

from barnabas.base.disk import FileRange
from barnabas.base.network import Part
from barnabas.node.log.batch_walk import walk_headers
from barnabas.protocol.records.batch import (
    CONTROL_MASK,
    LOG_OVERHEAD_BYTES,
    TRANSACTIONAL_MASK,
    CorruptBatchError,
)

_HEADER = Struct(">qi9xhi16xq")
"""Base offset, length, attributes, last offset delta, producer id."""


class FetchedBatches:
    """Batches that follow each other in a log."""

    __slots__ = ("_headers", "_parts", "_places", "bases", "lasts")

    def __init__(self, parts: Sequence[Part], end_offset: int, records_max: int) -> None:
        """Look at `parts` up to the batch after which nothing can be acquired.

        That is some `records_max` offsets beyond `end_offset`, the last that is in flight.
        Raises CorruptBatchError.
        """
        self.bases: list[int] = []
        self.lasts: list[int] = []
        self._places: list[tuple[int, int, int]] = []
        """(part, position in it, size) of each batch."""
        self._headers: list[tuple[int, int]] = []
        """(attributes, producer id) of each batch."""
        self._parts = parts
        limit = None
        for index, part in enumerate(parts):
            for position, size, base, last, attributes, producer_id in _walk(part):
                if limit is None:
                    limit = max(base - 1, end_offset) + records_max
                self.bases.append(base)
                self.lasts.append(last)
                self._places.append((index, position, size))
                self._headers.append((attributes, producer_id))
                if last >= limit:
                    return

    def slice(self, first: int, last: int) -> tuple[list[Part], int]:
        """The bytes of the batches that hold `first`..`last`, and how many they are."""
        bases = self.bases
        begin, end = 0, len(bases)
        while begin + 1 < end and bases[begin + 1] <= first:
            begin += 1
        while end - 1 > begin and bases[end - 1] > last:
            end -= 1
        sliced: list[Part] = []
        size_bytes = 0
        while begin < end:
            index, start, size = self._places[begin]
            stop = start + size
            begin += 1
            while begin < end and self._places[begin][0] == index:
                stop += self._places[begin][2]
                begin += 1
            size_bytes += stop - start
            sliced.append(_cut(self._parts[index], start, stop))
        return sliced, size_bytes

    def aborted(self, transactions: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """(first, last) of the batches that belong to aborted transactions.

        `transactions` are (producer id, first offset). A producer's next marker ends its
        transaction: where that is known to be aborted, the marker is one of an abort.
        """
        pending = sorted(transactions, key=lambda entry: entry[1], reverse=True)
        producers: dict[int, None] = {}
        ranges = []
        for base, last, (attributes, producer_id) in zip(
            self.bases, self.lasts, self._headers, strict=True
        ):
            if producer_id < 0:
                continue
            while pending and pending[-1][1] <= last:
                producers[pending.pop()[0]] = None
            if attributes & CONTROL_MASK:
                producers.pop(producer_id, None)
            elif attributes & TRANSACTIONAL_MASK and producer_id in producers:
                ranges.append((base, last))
        return ranges


def _walk(part: Part) -> Iterator[tuple[int, int, int, int, int, int]]:
    """(position in `part`, size, first, last, attributes, producer id) of each batch."""
    if isinstance(part, FileRange):
        end = part.position + part.size_bytes
        for position, header in walk_headers(part.file, part.position, end):
            yield (
                position - part.position,
                header.size_bytes,
                header.base_offset,
                header.last_offset,
                header.attributes,
                header.producer_id,
            )
        return
    position, end = 0, len(part)
    while position < end:
        if end - position < _HEADER.size:
            raise CorruptBatchError(f"{end - position} bytes are not a batch")
        base, length, attributes, delta, producer_id = _HEADER.unpack_from(part, position)
        size = length + LOG_OVERHEAD_BYTES
        if size < _HEADER.size or position + size > end:
            raise CorruptBatchError(f"a batch of {size} bytes, of which {end - position} are there")
        yield position, size, base, base + delta, attributes, producer_id
        position += size


def _cut(part: Part, start: int, stop: int) -> Part:
    if start == 0 and stop == len(part):
        return part
    if isinstance(part, FileRange):
        return FileRange(part.file, part.position + start, stop - start)
    return memoryview(part)[start:stop]
