"""Small converters, transforms and connectors that tests configure by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from barnabas.connect.connectors.base import (
    SinkConnector,
    SinkRange,
    SinkWriter,
    SourceConnector,
    SourceReader,
    TaskContext,
)
from barnabas.connect.converters.base import Converter, HeaderConverter
from barnabas.connect.record import ConnectRecord, SinkRecord, SourceRecord
from barnabas.connect.transforms.base import Predicate, Transform
from barnabas.schemas.data.errors import DataError, RetriableError
from barnabas.schemas.data.schema import Schema


class Text(Converter):
    """UTF-8."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return None if value is None else str(value).encode()

    def to_connect(self, topic: str, data: bytes | None, headers: Any = ()) -> Any:
        try:
            return None, None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise DataError(str(error)) from error


class TextHeader(HeaderConverter):
    """UTF-8."""

    def from_connect(self, topic: str, header: str, schema: Any, value: Any) -> bytes | None:
        return None if value is None else str(value).encode()

    def to_connect(self, topic: str, header: str, data: bytes | None) -> Any:
        return None, None if data is None else data.decode()


class Upper(Transform):
    """Values in capitals; fails at `boom`, and once at each `flaky`."""

    failures: ClassVar[dict[str, int]] = {}

    def configure(self, settings: Mapping[str, Any]) -> None:
        self.suffix = settings.get("suffix", "")

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.value == "boom":
            raise DataError("boom is not allowed")
        if record.value == "drop":
            return None
        if str(record.value).startswith("flaky") and not self.failures.get(record.value):
            self.failures[record.value] = 1
            raise RetriableError("not yet")
        return replace(record, value=str(record.value).upper() + self.suffix)


class IsShort(Predicate):
    """Values of few letters."""

    def configure(self, settings: Mapping[str, Any]) -> None:
        self.letters = int(settings["letters"])

    def test(self, record: ConnectRecord) -> bool:
        return len(record.value) <= self.letters


class Numbers(SourceReader):
    """`count` numbers in steps of five; each step is two splits."""

    def __init__(self, topic: str, count: int, first: int) -> None:
        self.topic, self.count, self.first = topic, count, first
        self.at = first

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"n": self.first}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        self.at = min(self.at + 5, self.count)
        return {"n": self.at}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        return [(start["n"], end["n"], odd) for odd in (0, 1)]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        start, end, odd = partition
        for number in range(start, end):
            if number % 2 == odd:
                yield SourceRecord(
                    source_partition={"odd": odd},
                    source_offset={"n": number + 1},
                    topic=self.topic,
                    key=str(number),
                    value=f"number {number}",
                )

    def offsets(self, end: dict[str, Any]) -> Sequence[Any]:
        return [({"all": True}, end)]


class NumberSource(SourceConnector):
    """Counts."""

    def start(self, context: Any, settings: Any) -> None:
        self.settings = settings

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        return [self.settings]

    def reader(self, context: TaskContext) -> SourceReader:
        assert context.offsets is not None
        stored = context.offsets.offset({"all": True}) or {"n": 0}
        return Numbers(context.settings["topic"], int(context.settings["count"]), stored["n"])


class Collector(SinkWriter):
    """Keeps values in this process; raises the errors in `trouble`."""

    values: ClassVar[list[tuple[str, int, Any]]] = []
    trouble: ClassVar[list[Exception]] = []
    calls: ClassVar[list[str]] = []

    def open(self, partitions: Sequence[Any]) -> None:
        self.calls.append(f"open {sorted(partitions)}")

    def close(self, partitions: Sequence[Any]) -> None:
        self.calls.append(f"close {sorted(partitions)}")

    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> Any:
        if self.trouble:
            raise self.trouble.pop()
        count = 0
        for record in records:
            if record.value == "refused":
                assert self.report is not None
                self.report(record, DataError("refused by the other system"))
                continue
            self.values.append((record.original_topic, record.original_offset, record.value))
            count += 1
        return count

    def commit(self, ranges: Sequence[SinkRange], messages: Sequence[Any]) -> None:
        self.calls.append(f"commit {sum(messages)}")

    def abort(self, ranges: Sequence[SinkRange], messages: Sequence[Any]) -> None:
        self.calls.append("abort")

    def stop(self) -> None:
        self.calls.append("stop")


class CollectorSink(SinkConnector):
    """Collects."""

    def start(self, context: Any, settings: Any) -> None:
        self.settings = settings

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        return [self.settings] * tasks_max

    def writer(self, context: TaskContext) -> SinkWriter:
        return Collector()


class Away(Transform):
    """Waits for another system, as a converter does for a registry that is away."""

    is_away: ClassVar[bool] = False
    tried: ClassVar[list[Any]] = []

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        self.tried.append(record.value)
        if self.is_away:
            raise RetriableError("the other system is away")
        return record
