"""Requests about transactions and the producers of partitions, as in Kafka's Admin API (KIP-664).

Functions raise AdminError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.base.ids import TopicPartition
from barnabas.kafka.wire_admin import AbsentError, RefusedError, SenselessError, WireAdmin
from barnabas.kafka.wire_routing import (
    TRANSACTION,
    ask_all,
    ask_broker,
    ask_coordinator,
    ask_leader,
    ask_leaders,
    ask_together,
    partitions,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TopicRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

FENCE_TIMEOUT_MS: Final = 60_000
"""Transaction time-out that a producer id is renewed with when its transaction is terminated."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id in full; `partitions` are those still without a marker."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ProducerOf:
    """A producer's state in a partition's log."""

    place: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    last_sequence: int
    last_timestamp_ms: int
    start_offset: int | None
    """Of its open transaction in this partition; None without one."""


def list_transactions(
    admin: WireAdmin,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[Listed]:
    """The transactional ids of all coordinators, by name."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=longer_than_ms,
        transactional_id_pattern=pattern,
    )
    found = []
    for broker, answer in ask_all(admin, request, lambda one: [one.error_code]):
        if answer.error_code != ErrorCode.NONE:
            raise RefusedError(answer.error_code, None, f"node {broker}")
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise SenselessError(f"there is no transaction state {unknown}")
        found += [
            Listed(item.transactional_id, broker, item.producer_id, item.transaction_state)
            for item in answer.transaction_states
        ]
    return sorted(found, key=lambda item: (item.transactional_id, item.coordinator))


def describe_transaction(admin: WireAdmin, transactional_id: str) -> Transaction:
    """One transactional id. Raises RefusedError with TRANSACTIONAL_ID_NOT_FOUND without one."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    coordinator, answer = ask_coordinator(
        admin,
        transactional_id,
        TRANSACTION,
        request,
        lambda answer: [item.error_code for item in answer.transaction_states],
    )
    (state,) = answer.transaction_states
    if state.error_code != ErrorCode.NONE:
        raise RefusedError(state.error_code, None, transactional_id)
    return _transaction(coordinator, state)


def describe_listed(admin: WireAdmin, listed: Iterable[Listed]) -> dict[str, Transaction]:
    """Transactional ids in full; each coordinator is asked for those that it has listed at once.

    Those that another broker coordinates by now, or nobody, are left out.
    """
    by_broker: dict[int, list[str]] = {}
    for one in listed:
        by_broker.setdefault(one.coordinator, []).append(one.transactional_id)
    requests = [
        (broker, DescribeTransactionsRequest(transactional_ids=names))
        for broker, names in by_broker.items()
    ]
    return {
        state.transactional_id: _transaction(broker, state)
        for (broker, _), answer in zip(requests, ask_together(admin, requests), strict=True)
        for state in answer.transaction_states
        if state.error_code == ErrorCode.NONE
    }


def _transaction(coordinator: int, state: Any) -> Transaction:
    return Transaction(
        state.transactional_id,
        coordinator,
        state.producer_id,
        state.producer_epoch,
        state.transaction_state,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None,
        tuple(
            TopicPartition(topic.topic, number)
            for topic in state.topics
            for number in topic.partitions
        ),
    )


def producers_of(
    admin: WireAdmin, place: TopicPartition, broker: int | None = None
) -> list[ProducerOf]:
    """The producers that a partition's leader knows, or another replica."""

    def request() -> DescribeProducersRequest:
        topic = TopicRequest(name=place.topic, partition_indexes=[place.partition])
        return DescribeProducersRequest(topics=[topic])

    if broker is None:
        answer = ask_leader(admin, place, request, _partition_codes)
    else:
        answer = ask_broker(admin, request(), broker)
    ((_, part),) = _parts(answer)
    if part.error_code != ErrorCode.NONE:
        raise RefusedError(part.error_code, part.error_message, str(place))
    return _producers(place, part)


def _parts(answer: Any) -> list[tuple[TopicPartition, Any]]:
    return [
        (TopicPartition(topic.name, part.partition_index), part)
        for topic in answer.topics
        for part in topic.partitions
    ]


def _partition_codes(answer: Any) -> list[int]:
    return [part.error_code for _, part in _parts(answer)]


def _producers(place: TopicPartition, part: Any) -> list[ProducerOf]:
    return [
        ProducerOf(
            place,
            item.producer_id,
            item.producer_epoch,
            item.coordinator_epoch if item.coordinator_epoch >= 0 else None,
            item.last_sequence,
            item.last_timestamp,
            item.current_txn_start_offset if item.current_txn_start_offset >= 0 else None,
        )
        for item in sorted(part.active_producers, key=lambda item: item.producer_id)
    ]


# -- transactions that hang


def find_hanging(
    admin: WireAdmin,
    *,
    topic: str | None,
    partition: int | None,
    broker: int | None,
    timeout_ms: int,
    now_ms: int,
    among: Collection[TopicPartition] | None = None,
) -> list[ProducerOf]:
    """Open transactions, idle for `timeout_ms`, that no coordinator will ever end.

    Searched are all partitions, those of a topic or one of it, or those `among` some; with
    `broker`, only the replicas that it has. Source: Kafka's TransactionsCommand.
    """
    topics = None if topic is None else [topic]
    if topics is None and among is not None:
        topics = sorted({place.topic for place in among})
    states = partitions(admin, topics)
    if among is not None:
        states = [state for state in states if state.key in among]
    if partition is not None:
        states = [state for state in states if state.index == partition]
        if not states:
            place = TopicPartition(str(topic), partition)
            raise AbsentError(f"there is no partition {place}")
    by_broker: dict[int, list[TopicPartition]] = {}
    for state in states:
        if broker is not None and broker in state.replicas:
            by_broker.setdefault(broker, []).append(state.key)
        elif broker is None and state.leader >= 0:
            by_broker.setdefault(state.leader, []).append(state.key)
    candidates = [
        item
        for item in _producers_of_all(admin, by_broker)
        if item.start_offset is not None and now_ms - item.last_timestamp_ms > timeout_ms
    ]
    if not candidates:
        return []
    ids = sorted({item.producer_id for item in candidates})
    names = {item.producer_id: item for item in list_transactions(admin, producer_ids=ids)}
    awaited = _awaited_places(admin, {item.transactional_id for item in names.values()})
    return [
        item
        for item in candidates
        if item.producer_id not in names
        or item.place not in awaited[names[item.producer_id].transactional_id]
    ]


def _producers_of_all(
    admin: WireAdmin, by_broker: Mapping[int, Sequence[TopicPartition]]
) -> Iterable[ProducerOf]:
    for place, part in ask_leaders(admin, by_broker, _of_places, _parts).items():
        if part.error_code != ErrorCode.NONE:
            raise RefusedError(part.error_code, part.error_message, str(place))
        yield from _producers(place, part)


def _of_places(places: Iterable[TopicPartition]) -> DescribeProducersRequest:
    numbers: dict[str, list[int]] = {}
    for place in places:
        numbers.setdefault(place.topic, []).append(place.partition)
    return DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=found) for name, found in numbers.items()]
    )


def _awaited_places(admin: WireAdmin, names: Iterable[str]) -> dict[str, frozenset[TopicPartition]]:
    """Partitions in which the coordinator will write a marker, by transactional id."""
    awaited = {}
    for name in names:
        try:
            awaited[name] = frozenset(describe_transaction(admin, name).partitions)
        except RefusedError as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            awaited[name] = frozenset()
    return awaited


def abort(
    admin: WireAdmin,
    place: TopicPartition,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
) -> None:
    """Write an abort marker into one partition, without asking the coordinator."""

    def request() -> WriteTxnMarkersRequest:
        topic = WritableTxnMarkerTopic(name=place.topic, partition_indexes=[place.partition])
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[topic],
            coordinator_epoch=coordinator_epoch,
        )
        return WriteTxnMarkersRequest(markers=[marker])

    def codes(answer: Any) -> list[int]:
        return [
            part.error_code
            for marker in answer.markers
            for topic in marker.topics
            for part in topic.partitions
        ]

    answer = ask_leader(admin, place, request, codes)
    for code in codes(answer):
        if code != ErrorCode.NONE:
            raise RefusedError(code, None, str(place))


def terminate(admin: WireAdmin, transactional_id: str) -> None:
    """Abort the transaction of a transactional id and fence its producer."""
    describe_transaction(admin, transactional_id)  # else an id that nobody has would be made
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=FENCE_TIMEOUT_MS
    )
    _, answer = ask_coordinator(
        admin, transactional_id, TRANSACTION, request, lambda answer: [answer.error_code]
    )
    if answer.error_code != ErrorCode.NONE:
        raise RefusedError(answer.error_code, None, transactional_id)
