"""What records of SQL formats cost on one core: rows to bytes and back, in memory.

    python -m bench.sql_formats

Rows of five small columns (BIGINT, STRING, DOUBLE, BOOLEAN, TIMESTAMP; KAFKA has one BIGINT), the
best of several runs in processor time. Schemas come from a registry in memory.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from functools import partial
from time import process_time

from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import StoredSchema
from barnabas.sql.formats.catalog import FORMATS
from barnabas.sql.formats.format import RecordPart
from barnabas.sql.schema import Column
from barnabas.sql.types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP

COLUMNS = (
    Column("ID", BIGINT),
    Column("NAME", STRING),
    Column("PRICE", DOUBLE),
    Column("OK", BOOLEAN),
    Column("TS", TIMESTAMP),
)
ROW = [123456, "some name", 12.5, True, 1700000000000]
REPEATS = 15
ROWS = 3_000


class OneSchema:
    """A registry that holds the last schema it was given."""

    def __init__(self) -> None:
        self.schema: StoredSchema | None = None

    def register(self, subject: str, schema_type: str, text: str) -> int:
        self.schema = StoredSchema(1, schema_type, text)
        return 1

    def by_id(self, schema_id: int) -> StoredSchema:
        if self.schema is None:
            raise FormatError("no schema")
        return self.schema

    def latest(self, subject: str) -> StoredSchema | None:
        return self.schema


def main() -> None:
    """Print a line for each format."""
    for name, chosen in FORMATS.items():
        if name == "NONE":
            continue
        columns, row = (COLUMNS[:1], ROW[:1]) if name == "KAFKA" else (COLUMNS, ROW)
        store, wraps = OneSchema(), chosen.can_wrap
        part = RecordPart(columns, {}, "topic-value", store, wraps)
        encode, decode = chosen.serializer(part), chosen.deserializer(part)
        data = encode(row)
        if data is None or decode(data) != row:
            raise SystemExit(f"{name} loses the row")
        writing, reading = _us(partial(encode, row)), _us(partial(decode, data))
        print(
            f"{name:14}{len(data):4} bytes   write {writing:5.2f} us ({1e6 / writing:9,.0f}/s)"
            f"   read {reading:5.2f} us ({1e6 / reading:9,.0f}/s)"
        )


def _us(call: Callable[[], object]) -> float:
    """Microseconds of processor time of a call."""
    times = timeit.repeat(call, timer=process_time, number=ROWS, repeat=REPEATS)
    return min(times) / ROWS * 1e6


if __name__ == "__main__":
    main()
