"""A source's micro-batch on Spark, exactly once: one transaction per split and one for the offsets.

All are left open until the driver has decided durably that together they are the micro-batch (see
`spark.datasource`). A run that starts finishes what was decided, aborts what was not, and no
earlier run decides anything from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException

from barnabas.connect.record import RawRecord, offset_key, offset_value
from barnabas.connect.tasks.clients import java_settings
from barnabas.connect.tasks.kafka_errors import as_connect_error
from barnabas.connect.tasks.kafka_output import decisions_name
from barnabas.connect.tasks.kafka_transport import KafkaTransport
from barnabas.connect.tasks.topics import TopicCreation, read_groups
from barnabas.connect.tasks.transport import BatchAbortedError, Offsets
from barnabas.kafka.transactions import TransactionControl
from barnabas.kafka.wire import CoordinatorError
from barnabas.schemas.data.errors import ConfigError, ConnectError, RetriableError
from barnabas.spark.datasource.committer import Committer, task_prefix
from barnabas.spark.datasource.options import (
    PRODUCER_SETTINGS,
    OptionError,
    SinkOptions,
    read_options,
)
from barnabas.spark.datasource.protocol import (
    CommitError,
    LostTransactionError,
    NotPreparedError,
    Prepared,
)
from barnabas.spark.datasource.task import POOL, Transaction, WriteError

_log = logging.getLogger(__name__)
_SECURITY = ("bootstrap.servers", "security.protocol", "sasl.", "ssl.")
_BY_KEY = -1


@dataclass(slots=True, frozen=True)
class TransactionPlace:
    """The data with which an executor fills a transaction; picklable."""

    options: SinkOptions = field(repr=False)
    prefix: str
    batch: int
    decided: int | None
    """The batch that the next run commits once more: its ids stay as they are."""


def sink_options(transport: KafkaTransport) -> SinkOptions:
    """Return how transactions reach the brokers. Raises ConfigError."""
    given = java_settings("producer", transport.settings, transport.worker)
    passed = {
        f"kafka.{name}": value
        for name, value in given.items()
        if name in PRODUCER_SETTINGS or name.startswith(_SECURITY)
    }
    try:
        return read_options(passed)
    except OptionError as error:
        raise ConfigError(str(error)) from error


class SplitTransaction:
    """An Output that fills one transaction and leaves it open."""

    def __init__(self, place: TransactionPlace, topics: TopicCreation) -> None:
        self._place = place
        self._topics = topics
        self._transaction: Transaction | None = None

    def send(self, record: RawRecord, on_written: Callable[[int], None] | None = None) -> None:
        """Queue a record."""
        self._topics.ensure(record.topic)
        partition = _BY_KEY if record.partition is None else record.partition
        headers = list(record.headers) or None
        outgoing = (
            record.topic,
            record.value,
            record.key,
            partition,
            record.timestamp_ms,
            headers,
        )
        try:
            if self._transaction is None:
                place = self._place
                self._transaction = Transaction(
                    place.options,
                    lambda: POOL.take(place.prefix, place.batch, place.decided),
                    has_receipts=on_written is not None,
                )
            self._transaction.send_record(outgoing, on_written)
        except KafkaException as error:
            raise as_connect_error("cannot write", error) from error
        except WriteError as error:
            raise ConnectError(str(error)) from error

    def send_values(
        self, topic: str, values: Sequence[bytes | None], timestamp_ms: int | None
    ) -> None:
        """Queue records that have nothing else."""
        for value in values:
            self.send(RawRecord(topic=topic, value=value, timestamp_ms=timestamp_ms))

    def prepare(self, split: int) -> tuple[Prepared, ...]:
        """Wait until all is acknowledged; empty if nothing was sent."""
        if self._transaction is None:
            return ()
        try:
            return self._transaction.prepare(split)
        except KafkaException as error:
            raise as_connect_error("cannot write", error) from error
        except WriteError as error:
            raise ConnectError(str(error)) from error
        except CoordinatorError as error:
            raise RetriableError(str(error)) from error

    def abort(self) -> None:
        """Take back what was sent."""
        if self._transaction is not None:
            self._transaction.abort()

    def heed(self, stopping: object) -> None:
        """Executors are not told that a task stops."""

    def flush(self, stopping: object) -> Sequence[tuple[RawRecord, Exception]]:
        """`prepare` does the waiting."""
        return ()

    def close(self) -> None:
        """Take back what was sent."""
        self.abort()


class BatchCommits:
    """The driver's part, for one task."""

    def __init__(self, transport: KafkaTransport, options: SinkOptions) -> None:
        if transport.offsets_topic is None:
            raise ConfigError("exactly once needs a topic of offsets: run the worker distributed")
        self._offsets_topic = transport.offsets_topic
        self._connector = transport.connector_name
        self._options = options
        self._name = decisions_name(transport.transactional_id)
        self._fenced_id = transport.transactional_id
        self._committer = Committer(options, self._name, retakes=False)
        self._batch = 0

    def take_over(self) -> None:
        """Fence earlier runs and finish what they decided. Raises ConnectError."""
        try:
            # Transactions that the local engine may have left open, under the id of Kafka's worker.
            control = TransactionControl(self._options.access)
            control.abort(self._fenced_id)
            control.close()
            last = self._committer.take_over()
            if last is not None:
                self._batch = last.batch
                self._finish(last.batch)
            self._committer.sweep()
        except CommitError as error:
            raise ConnectError(f"the last micro-batch cannot be finished: {error}") from error
        except (KafkaException, CoordinatorError) as error:
            raise RetriableError(f"cannot take over from an earlier run: {error}") from error

    def _finish(self, batch: int) -> None:
        """Commit the decided batch, or forget it if none of it can be committed any more."""
        try:
            self._committer.commit(batch, (), was_retried=False)
        except LostTransactionError as error:
            if not error.is_whole:
                raise
            _log.warning(
                "%s: all transactions of micro-batch %d timed out before they were committed: it "
                "is read again",
                *(self._name, batch),
            )
            self._committer.take_over()
            self._committer.finish()

    def next_place(self) -> TransactionPlace:
        """Return where the splits of the next micro-batch write."""
        self._batch += 1
        return TransactionPlace(
            self._options, task_prefix(self._name), self._batch, self._committer.decided
        )

    def commit(
        self, place: TransactionPlace, prepared: Sequence[Prepared], offsets: Offsets
    ) -> None:
        """Commit a micro-batch with its offsets. Raises BatchAbortedError, ConnectError."""
        output = SplitTransaction(place, TopicCreation())
        for partition, offset in offsets:
            output.send(
                RawRecord(
                    topic=self._offsets_topic,
                    key=offset_key(self._connector, partition),
                    value=offset_value(offset),
                )
            )
        own = output.prepare(len(prepared))
        both = [*prepared, *own]
        try:
            self._committer.commit(place.batch, both, was_retried=False)
        except NotPreparedError as error:
            self.drop(both)
            raise BatchAbortedError(str(error)) from error
        except KafkaException as error:
            raise _not_ended("commit", error) from error
        except (CommitError, CoordinatorError) as error:
            raise ConnectError(f"cannot commit a micro-batch: {error}") from error

    def finish(self) -> None:
        """Say that all decided is committed. Raises ConnectError."""
        try:
            self._committer.finish()
        except KafkaException as error:
            raise _not_ended("finish", error) from error

    def drop(self, prepared: Sequence[Prepared]) -> None:
        """Abort what belongs to a micro-batch that failed."""
        try:
            self._committer.drop(prepared)
            self._committer.sweep()
        except CoordinatorError as error:
            _log.warning("transactions of %s may stay open for a while: %s", self._name, error)

    def close(self) -> None:
        """Say that nothing is left to be done, and close the connections."""
        try:
            self._committer.finish()
        except KafkaException as error:
            _log.warning("%s: %s", self._name, error.args[0].str())
        self._committer.close()


def _not_ended(action: str, error: KafkaException) -> ConnectError:
    if error.args[0].code() == KafkaError._FENCED:
        return ConnectError("another run has taken over")
    return ConnectError(f"cannot {action} a micro-batch: {error.args[0].str()}")


def split_transaction(place: TransactionPlace, transport: KafkaTransport) -> SplitTransaction:
    """Return the output of a split, on an executor."""
    groups = read_groups(transport.settings, transport.worker)
    return SplitTransaction(place, TopicCreation(groups, transport.admin))
