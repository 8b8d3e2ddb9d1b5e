"""The base of connectors: classes that check settings, split work, make readers or writers.

A source's reader has the methods of a `DataSourceStreamReader` of Spark's Python Data Source API,
with their names: `initialOffset`, `latestOffset`, `partitions`, `read`, `commit`, `stop`. So a
reader written for Spark is a connector's reader. One micro-batch of a task:

    driver     end = latestOffset(); splits = partitions(start, end)
    executors  for each split: read(split) ─▶ transforms ─▶ converters ─▶ topics
    driver     what was written and how far each source partition has come: one commit
               commit(end)

A sink's micro-batch:

    driver     ranges of offsets of the task's partitions; `plan` may cut or hold them back
    executors  for each range: topic ─▶ converters ─▶ transforms ─▶ write(records)
    driver     commit(messages) ─▶ offsets that the consumer group may commit

Readers and writers are pickled to executors: what cannot be (connections) is opened in `read` and
`write` and left out of `__getstate__`. Source partitions and offsets are JSON objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import sleep
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, Protocol

from barnabas.connect.config.definition import Definition
from barnabas.connect.record import (
    JsonMap,
    RawRecord,
    SinkColumn,
    SinkRecord,
    SourceColumn,
    SourceRecord,
)
from barnabas.schemas.data.errors import ConfigError

Settings = Mapping[str, str]
"""A connector's configuration as it was given, secrets resolved."""
TopicPartition = tuple[str, int]
Figure = tuple[str, tuple[tuple[str, str], ...], float]
"""A name below `kafka_connect_`, labels, and a value, for the worker's /metrics."""


class OffsetReader(Protocol):
    """The offsets that were stored for a connector's source partitions."""

    def offset(self, partition: JsonMap) -> JsonMap | None:
        """Return the offset stored for a source partition; None if absent."""

    def all(self) -> Sequence[tuple[JsonMap, JsonMap]]:
        """Return all (partition, offset) of the connector."""


class ConnectorContext(Protocol):
    """The worker's services for a connector."""

    name: str
    offsets: OffsetReader

    def request_task_reconfiguration(self) -> None:
        """Ask for `task_settings` to be called again, from any thread."""

    def fail(self, error: BaseException) -> None:
        """Let the connector be FAILED."""


class TransactionContext(Protocol):
    """Transaction boundaries of a source's task (KIP-618).

    What is asked of a record holds once that has passed converters and transforms, and should be
    asked before it is yielded; without a record it holds once the micro-batch has passed. A
    transaction that is aborted leaves its offsets behind, so that its records are not read again.
    """

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit behind a record, or behind the micro-batch."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Abort behind a record, or behind the micro-batch."""


@dataclass(slots=True)
class TaskContext:
    """The inputs of a task's reader or writer, on the driver.

    `transactions` are the connector's to end, with `transaction.boundary=connector`; None
    otherwise. `wait` lets seconds pass; it returns true, at once, where the task is to end.
    """

    connector: str
    task: int
    settings: Settings = field(repr=False)
    offsets: OffsetReader | None = None
    session: Callable[[], Any] | None = None
    transactions: TransactionContext | None = None
    wait: Callable[[float], bool | None] = sleep

    @property
    def spark(self) -> Any:
        """Return the Spark session, starting Spark if needed; None in the local engine.

        Raises SparkStartError.
        """
        return None if self.session is None else self.session()


class Receipts(Protocol):
    """Takes note of where the records of one split were written; picklable."""

    def written(self, record: SourceRecord | RawRecord, offset: int) -> None:
        """A record of the split is written at this offset of its topic's partition."""


class SourceReader(ABC):
    """Reads for one task. The method names are those of Spark's Python Data Source API."""

    @abstractmethod
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return where the first micro-batch begins: what is stored, else the beginning."""

    @abstractmethod
    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's
        """Return where the next micro-batch ends; equal to its start if nothing is new.

        It must bound what one micro-batch reads. It may block for up to about 100 ms where that
        saves asking in vain. Raises RetriableError, ConnectError.
        """

    @abstractmethod
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Any]:
        """Return what can be read side by side, as picklable objects.

        Splits are not ordered among each other: what must stay in order is one split.
        """

    def is_worth_distributing(self, partitions: Sequence[Any]) -> bool:
        """Return whether executors read these splits; False if the worker's process does it sooner.

        Asked of connectors that are worth distributing. So it can differ from one micro-batch to
        the next.
        """
        return True

    @abstractmethod
    def read(self, partition: Any) -> Iterator[SourceRecord]:
        """Yield the records of a split, in order; runs on an executor, perhaps more than once."""

    def read_bytes(self, partition: Any) -> Iterator[RawRecord] | None:
        """Return the records of a split as bytes; None where `read` is the only way.

        Asked in place of `read` where all converters are Kafka's for bytes and nothing is
        transformed. The offsets of such records are for `offsets` to tell.
        """
        return None

    def read_columns(self, partition: Any) -> Iterator[SourceColumn] | None:
        """Return the records of a split as columns; None where `read` is the only way.

        Asked in place of `read` if nothing is transformed and the converters are Kafka's of
        texts, bytes or JSON. `read` yields the same records.
        """
        return None

    def receipts(self, partition: Any) -> Receipts | None:
        """Return what takes note of a split's written records, on an executor; None for nothing.

        Only asked if the connector's `has_receipts` is set.
        """
        return None

    def written(self, receipts: Sequence[Any]) -> None:
        """The records of a micro-batch are written: the receipts of its splits, on the driver."""

    def offsets(self, end: dict[str, Any]) -> Sequence[tuple[JsonMap, JsonMap]]:
        """Return (source partition, offset) to store with a micro-batch, beside its records'."""
        return ()

    def sent(self, end: dict[str, Any]) -> bool:
        """All up to `end` is sent, in a transaction that is to stay open (`transaction.boundary`).

        Returns whether `latestOffset` goes on behind `end` though `commit` comes later, for several
        micro-batches at once then. The transaction is committed with each micro-batch otherwise.
        """
        return False

    def commit(self, end: dict[str, Any]) -> None:
        """All up to `end` is written and its offsets are stored."""

    def figures(self) -> Sequence[Figure]:
        """Return the connector's own metrics, on the driver; from any thread while the task
        runs."""
        return ()

    def stop(self) -> None:
        """Close what is open; called exactly once, also after failures."""


@dataclass(slots=True)
class SinkRange:
    """Offsets of one topic's partition: from `start`, up to but without `end`."""

    topic: str
    partition: int
    start: int
    end: int


class SinkWriter(ABC):
    """Writes for one task."""

    report: Callable[[SinkRecord, Exception], None] | None = None
    """Set during `write`, for records that the other system does not take (KIP-610).

    A record goes to the dead letters, or this raises what ends the task, as the connector's
    settings of errors say.
    """

    def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int] | None:
        """Partitions are ours now, on the driver.

        Returns offsets to go on from where the sink itself knows them better than the group.
        """
        return None

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions are no longer ours, on the driver."""

    def plan(self, ranges: Sequence[SinkRange], now_ms: int) -> Sequence[SinkRange]:
        """Return what to write of what there is, in one micro-batch; nothing holds it back.

        Ranges are all that the topics have. If a writer has no `plan`, the engine cuts them, at
        `barnabas.connect.batch.records.max` each.
        """
        return ranges

    @abstractmethod
    def write(self, records: Iterator[SinkRecord], where: SinkRange) -> Any:
        """Write the records of a range, on an executor; returns a picklable message for `commit`.

        Raises RetriableError to be called again with the same records.
        """

    def write_columns(self, columns: Iterator[SinkColumn], where: SinkRange) -> Any:
        """Write the values of a range's records, as `write`.

        A writer that needs nothing but values overrides it; it is then called in place of `write`
        if nothing is transformed and the converters are Kafka's of texts, bytes or JSON.
        """
        raise TypeError(f"{type(self).__name__} takes no columns")

    def commit(
        self, ranges: Sequence[SinkRange], messages: Sequence[Any]
    ) -> Mapping[TopicPartition, int] | None:
        """A micro-batch's ranges are written, on the driver.

        Returns what the consumer group may commit; None means the end of each range.
        """
        return None

    def tick(self, now_ms: int) -> Mapping[TopicPartition, int] | None:
        """Called about once a second on the driver; may end what time ends, as `commit`."""
        return None

    def abort(self, ranges: Sequence[SinkRange], messages: Sequence[Any]) -> None:
        """A micro-batch failed, on the driver; messages are of the ranges that were written."""

    def stop(self) -> None:
        """Close what is open; called exactly once, also after failures."""


EngineKind = Literal["local", "spark", "spark connect"]
"""The engine of a worker: its own threads, its own Spark, or Spark behind `sc://`."""
ALL_ENGINES: Final[frozenset[EngineKind]] = frozenset({"local", "spark", "spark connect"})


class Connector(ABC):
    """One kind of source or sink. The worker makes one for each configured connector."""

    kind: ClassVar[Literal["source", "sink"]]
    definition: ClassVar[Definition] = Definition()
    version: ClassVar[str] = ""
    """Empty means that of Barnabas."""
    _settings: Settings = MappingProxyType({})
    """Those that `start` was given."""

    def validate(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return errors of single settings beyond the definition's; may ask the other system.

        Unless a subclass overrides it, these are the `conflicts` of settings of which each is right
        by itself.
        """
        try:
            values = self.definition.parse(settings)
        except ConfigError:
            return {}  # told with the setting itself
        return self.conflicts(values, settings)

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings; `values` are what they were parsed to."""
        return {}

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Begin; may watch the other system from a separate thread. Raises ConnectError."""
        self._settings = settings

    def files(self, settings: Settings) -> Mapping[str, Sequence[str]]:
        """Return the paths of the worker's machine that settings lead to, by the setting's name.

        The worker refuses those that its `barnabas.connect.paths` does not allow.
        """
        return {}

    def engines(self, settings: Settings) -> frozenset[EngineKind]:
        """Return which engines of a worker can run its tasks."""
        return ALL_ENGINES

    def is_worth_distributing(self, settings: Settings) -> bool:
        """Return whether a worker on Spark has executors do its micro-batches.

        False if each is one part, or if what is read or written is at the worker: the worker's
        process then does them, as with the local engine.
        """
        return True

    def spark_packages(self, settings: Settings) -> Mapping[str, str]:
        """Return the Java packages that tasks need on Spark: name of a class -> coordinates.

        Spark is given those whose class it does not have. So another version wins that the
        worker's `barnabas.connect.spark.packages` names.
        """
        return {}

    @abstractmethod
    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Split the work into at most `tasks_max` tasks, each with its own settings."""

    def stop(self) -> None:
        """End what `start` has begun."""


class SourceConnector(Connector):
    """A connector that reads another system."""

    kind = "source"
    has_receipts: ClassVar[bool] = False
    """True if readers want to hear at which offsets their records were written."""

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """Split the work into at most `tasks_max` tasks; by default one, with all settings."""
        return [dict(self._settings)]

    @abstractmethod
    def reader(self, context: TaskContext) -> SourceReader:
        """Return the reader of a task, on the driver. Raises ConnectError."""

    def exactly_once_support(self, settings: Settings) -> bool | None:
        """Whether each record can be written once (KIP-618); None where it cannot be said."""
        return True

    def can_define_transaction_boundaries(self, settings: Settings) -> bool:
        """Return whether `transaction.boundary=connector` is allowed."""
        return False

    def alter_offsets(
        self, settings: Settings, offsets: Sequence[tuple[JsonMap, JsonMap | None]]
    ) -> bool:
        """Check offsets that a user wants to store (KIP-875); None deletes one.

        Returns whether it was also told to the other system. Raises ConnectError to refuse.
        """
        return True


class SinkConnector(Connector):
    """A connector that writes another system."""

    kind = "sink"

    def task_settings(self, tasks_max: int) -> Sequence[Mapping[str, str]]:
        """By default all tasks have all settings, and share the topics' partitions."""
        return [dict(self._settings) for _ in range(tasks_max)]

    @abstractmethod
    def writer(self, context: TaskContext) -> SinkWriter:
        """Return the writer of a task, on the driver. Raises ConnectError."""

    def alter_offsets(
        self, settings: Settings, offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Check offsets that a user wants to commit (KIP-875); None deletes one."""
        return True
