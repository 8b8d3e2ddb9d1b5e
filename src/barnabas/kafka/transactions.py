"""Transactions: requests of our own producer, and control of other producers' transactions.

`TransactionControl` asks about transactions, commits and aborts them: any process that knows a
transaction's id, producer id and epoch may end it. A client library's producer ends
only its own. `TransactionCalls` are the requests of our own producer.

Source: KIP-98, before KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from barnabas.kafka.wire import (
    GROUP_KEY,
    Access,
    AccessError,
    Brokers,
    Connection,
    CoordinatorError,
    Coordinators,
    WireError,
)
from barnabas.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    TXN_OFFSET_COMMIT,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

_END_TXN_VERSION: Final = 4
"""The epoch stays as it is (KIP-890 raises it from version 5 on), so that to commit again what is
committed succeeds. Nothing that a producer has sent is on its way when its transaction ends."""
_ADD_VERSION_MAX: Final = 3
_OFFSETS_VERSION_MAX: Final = 4
"""The last versions before KIP-890, where a client adds partitions itself."""
_CALL_SECONDS: Final = 30.0
_COMMITTED_STATES: Final = ("PrepareCommit", "CompleteCommit")
_OPEN_STATE: Final = "Ongoing"
_ENDED_OTHERWISE: Final = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)

_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)

Place = tuple[str, int]


class OpenTransaction(Protocol):
    """The credentials that end a transaction."""

    @property
    def transactional_id(self) -> str: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...


@dataclass(slots=True, frozen=True)
class Seen:
    """A coordinator's state of a transactional id."""

    state: str
    producer_id: int
    producer_epoch: int
    started_ms: int = -1
    """When the open transaction began, by the coordinator's clock."""

    def is_by(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether nobody has taken the id since."""
        return (self.producer_id, self.producer_epoch) == (producer_id, producer_epoch)

    @property
    def is_open(self) -> bool:
        """True if a transaction is open and may still be committed."""
        return self.state == _OPEN_STATE

    @property
    def is_committed(self) -> bool:
        """True if the last transaction is committed, for good."""
        return self.state in _COMMITTED_STATES


class TransactionControl:
    """Asks the coordinators of one cluster; each call has `patience_seconds`."""

    def __init__(
        self, access: Access, patience_seconds: float = 60.0, brokers: Brokers | None = None
    ) -> None:
        self._brokers = brokers or Brokers(access)
        self._coordinators = Coordinators(self._brokers, patience_seconds)

    def describe(self, transactional_id: str) -> Seen | None:
        """Return what is known of an id, None for nothing."""
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

        def ask(connection: Connection) -> tuple[int, Seen | None]:
            (state,) = connection.call(DESCRIBE_TRANSACTIONS, request).transaction_states
            if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                return ErrorCode.NONE, None
            seen = Seen(
                state.transaction_state,
                state.producer_id,
                state.producer_epoch,
                state.transaction_start_time_ms,
            )
            return state.error_code, seen

        error, seen = self._coordinators.ask(transactional_id, ask)
        _raise(error, f"cannot ask about {transactional_id}")
        return seen

    def lost(self, transactions: Iterable[OpenTransaction]) -> frozenset[str]:
        """Return the ids of those that are no longer open."""
        gone = set()
        for one in transactions:
            seen = self.describe(one.transactional_id)
            is_ours = seen is not None and seen.is_by(one.producer_id, one.producer_epoch)
            if seen is None or not (is_ours and seen.is_open):
                gone.add(one.transactional_id)
        return frozenset(gone)

    def commit(self, one: OpenTransaction) -> bool:
        """Commit a transaction; False if it is aborted. Raises CoordinatorError."""
        request = EndTxnRequest(
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            committed=True,
        )

        def ask(connection: Connection) -> tuple[int, None]:
            return connection.call(END_TXN, request, _END_TXN_VERSION).error_code, None

        error, _ = self._coordinators.ask(one.transactional_id, ask)
        if error == ErrorCode.NONE:
            return True
        if error not in _ENDED_OTHERWISE:
            _raise(error, f"cannot commit {one.transactional_id}")
        seen = self.describe(one.transactional_id)
        if seen is None:
            raise CoordinatorError(
                f"the brokers have forgotten {one.transactional_id} "
                "(transactional.id.expiration.ms): whether it was committed is not known"
            )
        return seen.is_committed

    def abort(self, transactional_id: str) -> None:
        """Abort what is open under an id, and fence its producer. Raises CoordinatorError."""
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=10_000
        )

        def ask(connection: Connection) -> tuple[int, None]:
            return connection.call(INIT_PRODUCER_ID, request).error_code, None

        error, _ = self._coordinators.ask(transactional_id, ask)
        _raise(error, f"cannot abort {transactional_id}")

    def open_ids(self, prefix: str) -> list[str]:
        """Return the ids with this prefix that have an open transaction, of brokers that answer."""
        request = ListTransactionsRequest(state_filters=[_OPEN_STATE])
        ids = []
        for host, port in self._coordinators.patiently(
            lambda: (ErrorCode.NONE, self._brokers.addresses())
        )[1]:
            try:
                answer = self._brokers.at(host, port).call(LIST_TRANSACTIONS, request)
            except WireError:
                self._coordinators.forget()
                continue
            ids += [one.transactional_id for one in answer.transaction_states]
        return [one for one in ids if one.startswith(prefix)]

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()


def _raise(error: int, what: str) -> None:
    if error != ErrorCode.NONE:
        code = ErrorCode.of(error)
        raise CoordinatorError(f"{what}: {code.name}, {code.message}")


@dataclass(slots=True, frozen=True)
class ProducerIdentity:
    """A producer's identity at the brokers."""

    producer_id: int
    producer_epoch: int


def kafka_error(error: ErrorCode) -> KafkaError:
    """Return a broker's error as confluent-kafka has it, with its words."""
    if error in _FENCED:
        return KafkaError(KafkaError._FENCED, fatal=True)
    return KafkaError(int(error), retriable=error.retriable)


class TransactionCalls:
    """A producer's requests to coordinators: its id, and its part in transactions.

    `transactional_id` is None for a producer that is only idempotent. Errors are confluent-kafka's,
    as its Producer raises them.
    """

    def __init__(self, access: Access, transactional_id: str | None, timeout_ms: int) -> None:
        self._brokers = Brokers(access)
        self._coordinators = Coordinators(self._brokers, _CALL_SECONDS)
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
        """Commit, if anything was written. Raises KafkaException."""
        if not self._is_open:
            return
        request = EndTxnRequest(
            transactional_id=self._id or "",
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            committed=True,
        )

        def ask(connection: Connection) -> tuple[int, None]:
            return connection.call(END_TXN, request, _END_TXN_VERSION).error_code, None

        self._ask(ask, seconds)
        self._added.clear()
        self._is_open = False

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()

    def _ask(
        self,
        ask: Callable[[Connection], tuple[int, Any]],
        seconds: float,
        group: str | None = None,
    ) -> Any:
        try:
            if group is not None:
                code, answer = self._coordinators.ask(group, ask, GROUP_KEY, seconds)
            elif self._id is not None:
                code, answer = self._coordinators.ask(self._id, ask, patience_seconds=seconds)
            else:
                code, answer = self._coordinators.patiently(
                    lambda: ask(self._brokers.any()), seconds
                )
        except AccessError as error:
            raise KafkaException(KafkaError(KafkaError._AUTHENTICATION, str(error))) from error
        except CoordinatorError as error:
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
