"""Sources that tests of transactions configure by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from barnabas.connect.connectors.base import (
    SourceConnector,
    SourceReader,
    TaskContext,
    TransactionContext,
)
from barnabas.connect.record import SourceRecord
from barnabas.schemas.data.errors import RetriableError


class Steps(SourceReader):
    """Each character of `text` is a record, each space ends a micro-batch.

    `|` commits behind the record before it, `!` aborts behind it; so do they as a micro-batch's
    last character after a `;`, of the micro-batch. At `?` the reader fails once.
    """

    failed: ClassVar[set[str]] = set()
    committed: ClassVar[list[int]] = []

    def __init__(self, context: TaskContext, first: int) -> None:
        self.topic = context.settings["topic"]
        self.goes_on = context.settings.get("goes.on", "true") == "true"
        self.steps = context.settings["text"].split(" ")
        self.transactions = context.transactions
        self.first = self.at = first

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"n": self.first}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        self.at = min(self.at + 1, len(self.steps))
        return {"n": self.at}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        return [(start["n"], end["n"])]

    def read(self, partition: Any) -> Iterator[SourceRecord]:
        for number in range(*partition):
            step, _, whole = self.steps[number].partition(";")
            self._wish(whole, None)
            for at, letter in enumerate(step):
                if letter == "?" and step not in self.failed:
                    self.failed.add(step)
                    raise RetriableError("not now")
                if letter in "|!?":
                    continue
                record = SourceRecord(
                    source_partition={"text": 0},
                    source_offset={"n": number, "letter": at},
                    topic=self.topic,
                    value=letter,
                )
                self._wish(step[at + 1 : at + 2], record)
                yield record

    def _wish(self, letter: str, record: SourceRecord | None) -> None:
        transactions: TransactionContext | None = self.transactions
        if letter in ("|", "!"):
            assert transactions is not None
            if letter == "|":
                transactions.commit_transaction(record)
            else:
                transactions.abort_transaction(record)

    def offsets(self, end: dict[str, Any]) -> Sequence[Any]:
        return [({"steps": 0}, end)]

    def sent(self, end: dict[str, Any]) -> bool:
        return self.goes_on

    def commit(self, end: dict[str, Any]) -> None:
        self.committed.append(end["n"])


class StepSource(SourceConnector):
    """Reads steps."""

    def start(self, context: Any, settings: Any) -> None:
        self.settings = settings

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        return [self.settings]

    def reader(self, context: TaskContext) -> SourceReader:
        assert context.offsets is not None
        stored = context.offsets.offset({"steps": 0}) or {"n": 0}
        return Steps(context, stored["n"])

    def can_define_transaction_boundaries(self, settings: Mapping[str, str]) -> bool:
        return settings.get("can.define", "true") == "true"


class FailingCommit(Steps):
    """Cannot confirm what is written."""

    def commit(self, end: dict[str, Any]) -> None:
        raise RetriableError("the other system is away")


class UnconfirmedSource(StepSource):
    """Reads steps that it cannot confirm."""

    def reader(self, context: TaskContext) -> SourceReader:
        return FailingCommit(context, 0)
