"""Bundles: several records of one key as one entry of a store.

A join of two streams keeps what columns give it as bundles: an entry for each record costs far more
than the record does in columns. An entry is

    (segment, *key, timestamp, number) -> row        a record
                                       -> bytes      a bundle, whose last record this is

The records of a bundle are sorted by timestamp and number, and lie in one segment and one interval
of the bundles' span. A search for timestamps reads entries up to the end of the latest one's
interval, and filters. That adds few: records later than those of a search are rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from barnabas.sql.runtime.records import Row
from barnabas.sql.runtime.rows_encoding import pack, unpack
from barnabas.sql.types import Value

BUNDLE_RECORDS_MAX: Final = 256


class Bundle(NamedTuple):
    """Timestamps, numbers, and the values of each column."""

    times_ms: Sequence[int]
    numbers: Sequence[int]
    columns: Sequence[Sequence[Value]]

    def rows(self) -> Iterable[Row]:
        """The records' rows."""
        if not self.columns:
            return ([] for _ in self.times_ms)
        return map(list, zip(*self.columns, strict=True))


def bundled(
    back_ms: Sequence[int], back: Sequence[int], columns: Sequence[Sequence[Value]]
) -> bytes:
    """A bundle's bytes. `back_ms`, `back`: what its timestamps and numbers are less than those of
    its last record, which are in the entry's key."""
    return pack((back_ms, back, *columns))


def bundle_of(time_ms: int, number: int, value: bytes | Sequence[Value]) -> Bundle:
    """The records of an entry with that timestamp and number."""
    if not isinstance(value, bytes):
        return Bundle((time_ms,), (number,), list(zip(value, strict=True)))
    back_ms, back, *columns = unpack(value)
    return Bundle([time_ms - less for less in back_ms], [number - less for less in back], columns)


def entries_of(time_ms: int, number: int, value: Any) -> list[tuple[int, int, Row]]:
    """The same as timestamp, number and row of each."""
    if not isinstance(value, bytes):
        return [(time_ms, number, list(value))]
    bundle = bundle_of(time_ms, number, value)
    return list(zip(bundle.times_ms, bundle.numbers, bundle.rows(), strict=True))
