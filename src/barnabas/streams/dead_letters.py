"""Dead letters of rows for which a function of the user's fails.

Their headers are those of Kafka Connect's dead letter queues: where the record lay and what was
wrong. Dead letters of records that cannot be read are in `sources.py`.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.accumulators import AccumulatorParam

from barnabas.streams.names import KEY, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

PREFIX: Final = "__connect.errors."
STAGE: Final = "TRANSFORMATION"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class FailedRow(NamedTuple):
    """A dead letter: the row as JSON; `at` is its event time in milliseconds, None without one."""

    key: bytes | None
    value: bytes
    at: int | None
    headers: tuple[tuple[str, bytes | None], ...]


Place = tuple[int, int, int]
"""Stage, partition, and which of the task's: what a task that is run again finds again."""


class _Merged(AccumulatorParam[dict[Place, FailedRow]]):
    def zero(self, value: dict[Place, FailedRow]) -> dict[Place, FailedRow]:
        return {}

    def addInPlace(  # noqa: N802  Spark's name
        self, value1: dict[Place, FailedRow], value2: dict[Place, FailedRow]
    ) -> dict[Place, FailedRow]:
        return {**value1, **value2}


class FailedRows:
    """The failed rows of one query."""

    def __init__(self, spark: SparkSession, pipeline: str) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._gathered: list[Accumulator[dict[Place, FailedRow]]] = []

    def collector(self) -> Collector:
        """Return what goes into a function of Spark's."""
        rows = self._spark.sparkContext.accumulator({}, _Merged())
        self._gathered.append(rows)
        return Collector(self._pipeline, rows)

    def take(self) -> list[FailedRow]:
        """Return what came since the last call, each row once."""
        failed: dict[FailedRow, None] = {}
        for rows in self._gathered:
            # Two branches of a query that end in one each call the function.
            failed |= dict.fromkeys(rows.value.values())
            rows.value = {}
        return list(failed)


class Collector:
    """Collects failed rows in one task."""

    def __init__(self, pipeline: str, rows: Accumulator[dict[Place, FailedRow]]) -> None:
        self._pipeline = pipeline
        self._rows = rows
        self._count = 0

    def add(
        self,
        row: Mapping[str, Any],
        record: Mapping[str, Any],
        function: Callable[..., Any],
        error: Exception,
    ) -> None:
        """Take a row, given with its record columns, and why it failed."""
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        place = (task.stageId(), task.partitionId(), self._count)
        self._count += 1
        self._rows.add({place: failed_row(self._pipeline, row, record, function, error)})


def failed_row(
    pipeline: str,
    row: Mapping[str, Any],
    record: Mapping[str, Any],
    function: Callable[..., Any],
    error: Exception,
) -> FailedRow:
    """Return the dead letter of a row, with the headers of Kafka Connect's."""
    kind = type(error)
    told = {
        **{name: record.get(f"_{name}") for name in ("topic", "partition", "offset")},
        "connector.name": pipeline,
        "task.id": "0",
        "stage": STAGE,
        "class.name": getattr(function, "__qualname__", type(function).__qualname__),
        "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
        "exception.message": str(error),
        "exception.stacktrace": "".join(traceback.format_exception(error)),
    }
    own = [(header["key"], _bytes(header["value"])) for header in record.get("_headers") or ()]
    ours = [(f"{PREFIX}{name}", str(value).encode()) for name, value in told.items()
            if value is not None]  # fmt: skip
    at = record.get(TIMESTAMP)
    at_ms = None if at is None else (at.astimezone(UTC) - _EPOCH) // _MILLISECOND
    return FailedRow(_key(record.get(KEY)), _json(row), at_ms, (*own, *ours))


def _key(key: Any) -> bytes | None:
    if key is None or isinstance(key, bytes | bytearray):
        return _bytes(key)
    return key.encode() if isinstance(key, str) else _json(key)


def _json(value: Any) -> bytes:
    return json.dumps(value, default=_text, separators=(",", ":")).encode()


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
