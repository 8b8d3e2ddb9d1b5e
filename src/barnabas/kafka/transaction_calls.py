"""A producer's requests to coordinators: its id, and its part in transactions.

Errors are confluent-kafka's, as its Producer raises them. Source: KIP-98, before KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from barnabas.kafka.wire import Access, AccessError, Brokers, Connection
from barnabas.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.spark.datasource.control import GROUP_KEY, ControlError, TransactionControl

_CALL_SECONDS: Final = 30.0
_ADD_VERSION_MAX: Final = 3
_END_VERSION_MAX: Final = 4
_OFFSETS_VERSION_MAX: Final = 4
"""The last versions before KIP-890, where a client adds partitions itself."""
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)

Place = tuple[str, int]


@dataclass(slots=True, frozen=True)
class ProducerIdentity:
    """What brokers know a producer by."""

    producer_id: int
    producer_epoch: int


def kafka_error(error: ErrorCode) -> KafkaError:
    """Return a broker's error as confluent-kafka has it, with its words."""
    if error in _FENCED:
        return KafkaError(KafkaError._FENCED, fatal=True)
    return KafkaError(int(error), retriable=error.retriable)


class TransactionCalls:
    """Those of one producer; `transactional_id` is None for one that is only idempotent."""

    def __init__(self, access: Access, transactional_id: str | None, timeout_ms: int) -> None:
        self._brokers = Brokers(access)
        self._control = TransactionControl(access, _CALL_SECONDS, self._brokers)
        self._id = transactional_id
        self._timeout_ms = timeout_ms
        self._added: set[Place] = set()
        self._is_open = False

    def identify(self, seconds: float) -> ProducerIdentity:
        """Take a producer id and epoch. Raises KafkaException."""
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=self._timeout_ms
        )

        def ask(connection: Connection) -> tuple[int, Any]:
            answer = connection.call(INIT_PRODUCER_ID, request)
            return answer.error_code, answer

        self._added.clear()
        self._is_open = False
        answer = self._ask(ask, seconds)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def add_partitions(self, identity: ProducerIdentity, places: Iterable[Place]) -> None:
        """Make partitions part of the transaction. Raises KafkaException."""
        missing = [place for place in places if place not in self._added]
        if not missing:
            return
        topics: dict[str, list[int]] = {}
        for topic, partition in missing:
            topics.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id or "",
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in topics.items()
            ],
        )

        def ask(connection: Connection) -> tuple[int, None]:
            answer = connection.call(ADD_PARTITIONS_TO_TXN, request, _ADD_VERSION_MAX)
            codes = [
                one.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            ]
            return _worst(codes), None

        self._ask(ask, _CALL_SECONDS)
        self._is_open = True
        self._added.update(missing)

    def add_offsets(
        self,
        identity: ProducerIdentity,
        places: Sequence[TopicPartition],
        group: str,
        seconds: float,
    ) -> None:
        """Have the transaction commit offsets of a group. Raises KafkaException."""
        adding = AddOffsetsToTxnRequest(
            transactional_id=self._id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            group_id=group,
        )

        def add(connection: Connection) -> tuple[int, None]:
            return connection.call(ADD_OFFSETS_TO_TXN, adding, _ADD_VERSION_MAX).error_code, None

        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for place in places:
            topics.setdefault(place.topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=place.partition,
                    committed_offset=place.offset,
                    # confluent-kafka stores the end of a C string too, and reads up to one.
                    committed_metadata=f"{place.metadata or ''}\0",
                )
            )
        committing = TxnOffsetCommitRequest(
            transactional_id=self._id or "",
            group_id=group,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            topics=[
                TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )

        def commit(connection: Connection) -> tuple[int, None]:
            answer = connection.call(TXN_OFFSET_COMMIT, committing, _OFFSETS_VERSION_MAX)
            codes = [one.error_code for topic in answer.topics for one in topic.partitions]
            return _worst(codes), None

        self._ask(add, seconds)
        self._is_open = True
        self._ask(commit, seconds, group)

    def commit(self, identity: ProducerIdentity, seconds: float) -> None:
        """Commit, where anything was written. Raises KafkaException."""
        if not self._is_open:
            return
        request = EndTxnRequest(
            transactional_id=self._id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=True,
        )

        def ask(connection: Connection) -> tuple[int, None]:
            return connection.call(END_TXN, request, _END_VERSION_MAX).error_code, None

        self._ask(ask, seconds)
        self._added.clear()
        self._is_open = False

    def close(self) -> None:
        """Close the connections."""
        self._control.close()

    def _ask(
        self,
        ask: Callable[[Connection], tuple[int, Any]],
        seconds: float,
        group: str | None = None,
    ) -> Any:
        try:
            if group is not None:
                code, answer = self._control.ask_coordinator(group, ask, GROUP_KEY, seconds)
            elif self._id is not None:
                code, answer = self._control.ask_coordinator(
                    self._id, ask, patience_seconds=seconds
                )
            else:
                code, answer = self._control.ask_any(ask, seconds)
        except AccessError as error:
            raise KafkaException(KafkaError(KafkaError._AUTHENTICATION, str(error))) from error
        except ControlError as error:
            reason = KafkaError(KafkaError._TIMED_OUT, str(error), retriable=True)
            raise KafkaException(reason) from error
        if code != ErrorCode.NONE:
            reason = kafka_error(ErrorCode.of(code))
            if self._is_open and not reason.fatal():
                reason = KafkaError(reason.code(), reason.str(), txn_requires_abort=True)
            raise KafkaException(reason)
        return answer


def _worst(codes: Sequence[int]) -> int:
    """Return an error that asking again does not help, else one of those that it does, else 0."""
    errors = [code for code in codes if code != ErrorCode.NONE]
    final = [
        code
        for code in errors
        if not ErrorCode.of(code).retriable and code != ErrorCode.OPERATION_NOT_ATTEMPTED
    ]
    return (final or errors or [int(ErrorCode.NONE)])[0]
