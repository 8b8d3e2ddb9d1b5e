"""Messages between the event loop and the worker, as plain values; and the worker's throttle."""

from dataclasses import dataclass
from typing import Any

from barnabas.node.log.index.txn_index import AbortedTransaction


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The record of an active producer that must stay: its last data offset (-1: none), or its
    epoch.
    """

    last_offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Source:
    """A segment to be read."""

    base_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CleanJob:
    """One round of cleaning one log, [0, end_offset) of it. Times are ms.

    `sources` are all segments below `end_offset`, which is the base offset of the first that is
    left alone. `aborted` are aborted transactions whose markers are there or later; those of
    `sources` are read from their indexes.
    """

    directory: str
    start_offset: int
    """The first dirty offset."""
    end_offset: int
    sources: list[Source]
    producers: dict[int, LastRecord]
    aborted: list[AbortedTransaction]
    now_ms: int
    delete_retention_ms: int
    index_interval_bytes: int
    map_bytes_max: int
    map_load_factor: float
    io_buffer_bytes: int
    bytes_per_second_max: float

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> "CleanJob":
        """From what JSON makes of `dataclasses.asdict`."""
        values["sources"] = [Source(**source) for source in values["sources"]]
        values["producers"] = {
            int(producer_id): LastRecord(**last)
            for producer_id, last in values["producers"].items()
        }
        values["aborted"] = [AbortedTransaction(*entry) for entry in values["aborted"]]
        return cls(**values)


@dataclass(frozen=True, slots=True)
class MapBuilt:
    """The map of latest offsets is there; it takes in everything below `end_offset`."""

    end_offset: int
    bytes_read: int
    records_read: int
    keys: int
    utilization: float
    """Share of the keys that the map may hold."""


@dataclass(frozen=True, slots=True)
class GroupCleaned:
    """A group of segments was rewritten to `.cleaned` files, which are synced.

    Without `is_changed` the files say what the one segment of the group says already, and were
    removed again.
    """

    base_offset: int
    size_bytes: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_written: int
    keyless_records: int
    """Records without a key, which a compacted log cannot keep."""
    is_changed: bool


WINDOW_S = 0.3
"""The interval at which the throttle decides to wait. Unused bytes are not saved for the next."""


class Throttle:
    """Limits the bytes per second of a worker; it only calculates. Source: Kafka's Throttler.

    Times are seconds of any monotonic clock.
    """

    __slots__ = ("_bytes", "_bytes_per_second_max", "_since_s")

    def __init__(self, bytes_per_second_max: float, now_s: float) -> None:
        self._bytes_per_second_max = bytes_per_second_max
        self._since_s = now_s
        self._bytes = 0

    def delay_s(self, size_bytes: int, now_s: float) -> float:
        """Count bytes that were read or written. Returns how long to wait before the next."""
        self._bytes += size_bytes
        elapsed_s = now_s - self._since_s
        if self._bytes_per_second_max == float("inf"):
            return 0.0
        if elapsed_s < WINDOW_S and self._bytes < self._bytes_per_second_max * WINDOW_S:
            return 0.0
        delay_s = max(0.0, self._bytes / self._bytes_per_second_max - elapsed_s)
        self._since_s = now_s + delay_s
        self._bytes = 0
        return delay_s
