"""A task of a lake's sink, step by step: the test says what it writes and when it commits."""

from __future__ import annotations

from barnabas.connect.connectors.base import SinkRange, SinkWriter
from barnabas.connect.connectors.lake.sink import RangeRows
from barnabas.connect.record import SinkRecord
from barnabas.schemas.data import builder
from barnabas.schemas.data.errors import RetriableError
from barnabas.schemas.data.schema import Struct

TOPIC = "orders"
KEYS = 3
SCHEMA = builder.struct_of({"key": builder.INT32, "offset": builder.INT64})
_TRIES_MAX = 5


class LakeTask:
    """Writes records of `orders-0` whose rows are their offset and a key of three."""

    def __init__(self, writer: SinkWriter) -> None:
        self._writer = writer

    def written(self, start: int, end: int) -> tuple[SinkRange, RangeRows]:
        """Write a range; nothing is in the table yet."""
        where = SinkRange(TOPIC, 0, start, end)
        return where, self._writer.write(map(_record, range(start, end)), where)

    def commit(self, where: SinkRange, message: RangeRows) -> None:
        """Commit what was written."""
        offsets = self._writer.commit([where], [message])
        assert offsets == {(TOPIC, 0): where.end}

    def commit_until_done(self, start: int, end: int) -> None:
        """Write and commit a range, again where it is refused."""
        for _ in range(_TRIES_MAX):
            try:
                return self.commit(*self.written(start, end))
            except RetriableError:
                continue
        raise AssertionError(f"{start} to {end} is refused again and again")


def _record(offset: int) -> SinkRecord:
    return SinkRecord(
        topic=TOPIC,
        partition=0,
        offset=offset,
        original_topic=TOPIC,
        original_partition=0,
        original_offset=offset,
        value_schema=SCHEMA,
        value=Struct.of(SCHEMA, {"key": offset % KEYS, "offset": offset}),
    )
