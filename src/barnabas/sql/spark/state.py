"""Stores of one partition of an operator, in one MapState of Spark's.

State that a Python worker has read or written stays in its memory. The state holds a stamp that
changes with each batch: where it is the one that the memory has, nothing is read again. After a
failure, or if another worker had the partition in between, the stamps differ and the memory is
dropped.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol

from barnabas.sql.runtime.stores import Store
from barnabas.sql.spark.paged_store import PagedStore, Pages

CHUNK_BYTES: Final = 8_000
"""Longer messages are cut: Spark 4.0's state server takes what one read() gives for a message."""
PARTITIONS_KEPT_MAX: Final = 64
"""So many partitions' state stays in a worker's memory."""
UNUSED_SECONDS: Final = 300.0
"""State that no micro-batch has used for so long leaves it: nobody tells workers that a query has
ended."""

_STAMP_KEY: Final = b"\x00stamp"
_WHOLE: Final = b"\x00"
_CUT: Final = b"\x01"


class MapState(Protocol):
    """The part of pyspark's MapState that is used here."""

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:  # noqa: N802
        ...

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:  # noqa: N802
        ...

    def removeKey(self, key: tuple[Any, ...]) -> None:  # noqa: N802
        ...


class MapStatePages:
    """A MapState of binary keys and values as a map of bytes; counts its calls."""

    def __init__(self, state: MapState) -> None:
        self._state = state
        self.calls = 0

    def get(self, key: bytes) -> bytes | None:
        self.calls += 1
        row = self._state.getValue((key,))
        return None if row is None or row[0] is None else bytes(row[0])

    def put(self, key: bytes, data: bytes) -> None:
        self.calls += 1
        self._state.updateValue((key,), (data,))

    def remove(self, key: bytes) -> None:
        self.calls += 1
        self._state.removeKey((key,))


class ChunkedPages:
    """Pages of any length over a map whose values are short.

    A key must have been read before it is put again or removed, by this object.
    """

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self._counts: dict[bytes, int] = {}

    def get(self, key: bytes) -> bytes | None:
        data = self.pages.get(key)
        if data is None:
            return None
        if data[:1] == _WHOLE:
            return data[1:]
        count = int.from_bytes(data[1:5], "big")
        self._counts[key] = count
        parts = [data[5:]]
        for number in range(1, count):
            part = self.pages.get(_part_key(key, number))
            assert part is not None, f"part {number} of a page is lost"
            parts.append(part)
        return b"".join(parts)

    def put(self, key: bytes, data: bytes) -> None:
        before = self._counts.pop(key, 1)
        count = 1
        if len(data) < CHUNK_BYTES:
            self.pages.put(key, _WHOLE + data)
        else:
            first = CHUNK_BYTES - 5
            count = 1 + -(-(len(data) - first) // CHUNK_BYTES)
            self._counts[key] = count
            self.pages.put(key, _CUT + count.to_bytes(4, "big") + data[:first])
            for number in range(1, count):
                at = first + (number - 1) * CHUNK_BYTES
                self.pages.put(_part_key(key, number), data[at : at + CHUNK_BYTES])
        self._drop_parts(key, count, before)

    def remove(self, key: bytes) -> None:
        self.pages.remove(key)
        self._drop_parts(key, 1, self._counts.pop(key, 1))

    def _drop_parts(self, key: bytes, start: int, stop: int) -> None:
        for number in range(start, stop):
            self.pages.remove(_part_key(key, number))


def _part_key(key: bytes, number: int) -> bytes:
    return key + b"\x00part" + number.to_bytes(4, "big")


class PartitionState:
    """The stores of one partition: `open` them, work, `flush`."""

    def __init__(self) -> None:
        self.used_at = 0.0
        self._stores: dict[str, tuple[PagedStore, ChunkedPages]] = {}
        self._stamp: bytes | None = None
        self._read_stamp: bytes | None = None
        self._pages: Pages | None = None

    def attach(self, pages: Pages) -> bool:
        """Begin a batch over this view of the state; False if what is in memory was dropped."""
        self._pages = pages
        stamp = pages.get(_STAMP_KEY)
        is_same = stamp is not None and stamp == self._stamp
        if not is_same:
            self._stores.clear()
        # Should the batch fail, what it has left in memory is never taken for the state.
        self._stamp, self._read_stamp = None, stamp
        for _, chunked in self._stores.values():
            chunked.pages = pages
        return is_same

    def open(self, name: str) -> Store:
        if name not in self._stores:
            assert self._pages is not None
            chunked = ChunkedPages(self._pages)
            self._stores[name] = PagedStore(name, chunked), chunked
        return self._stores[name][0]

    def flush(self) -> None:
        """Write what has changed, and a new stamp."""
        assert self._pages is not None
        changed = [store for store, _ in self._stores.values() if store.is_dirty]
        for store in changed:
            store.flush()
        stamp = self._read_stamp
        if changed or stamp is None:
            stamp = os.urandom(16)
            self._pages.put(_STAMP_KEY, stamp)
        self._stamp = stamp
        self._pages = None


_partitions: OrderedDict[tuple[str, int], PartitionState] = OrderedDict()


def partition_state(
    operator: str, partition: int, make: Callable[[], PartitionState] = PartitionState
) -> PartitionState:
    """This process's state of an operator's partition."""
    place = operator, partition
    state = _partitions.get(place)
    if state is None:
        state = _partitions[place] = make()
    _partitions.move_to_end(place)
    state.used_at = time.monotonic()
    for oldest in list(_partitions):
        is_unused = _partitions[oldest].used_at < state.used_at - UNUSED_SECONDS
        if not is_unused and len(_partitions) <= PARTITIONS_KEPT_MAX:
            break
        del _partitions[oldest]
    return state
