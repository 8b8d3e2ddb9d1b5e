"""Offsets in the logs of partitions.

ListOffsets (key 2), versions 1-11: KIP-79, 98, 207, 320, 405, 734, 1005, 1023.

A look-up by time is exact to the record. It is answered later where part of the log is remote, or
where much must be looked through. The request's other partitions wait for it, as the connection's
later requests do: a connection has one look-up under way, and connections take turns.
Nothing writes to tiered storage: nothing is known to be tiered, or waits to be.

OffsetForLeaderEpoch (key 23), versions 2-4: KIP-101, 279, 320.

Followers ask, and consumers since KIP-320.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from barnabas.node.broker.authorization import allowed, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.results import LookedUp
from barnabas.node.loop.promise import Promise, flat, then
from barnabas.node.replication.partition import Partition
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from barnabas.protocol.well_known import (
    CONSUMER_ID,
    DEBUG_REPLICA_ID,
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    READ_COMMITTED,
)

NEEDS_VERSION = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
LEADER_EPOCH_FROM = 4
NOT_AVAILABLE_FROM = 5


class Found(NamedTuple):
    """A place in the log; all -1 without one, or if an `error` prevents an answer."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1
    error: ErrorCode = ErrorCode.NONE


def handle_list_offsets(
    services: BrokerServices, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Promise[ListOffsetsResponse]:
    """Look up each partition's offset."""
    seen: set[tuple[str, int]] = set()
    repeated: set[tuple[str, int]] = set()
    for topic in request.topics:
        for entry in topic.partitions:
            key = (topic.name, entry.partition_index)
            (repeated if key in seen else seen).add(key)
    names = {topic.name for topic in request.topics}
    visible = allowed(services, context, Operation.DESCRIBE, ResourceType.TOPIC, names)

    def answer(
        topic: str, entry: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse | Promise[ListOffsetsPartitionResponse]:
        if topic not in visible:
            return _failure(entry, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if (topic, entry.partition_index) in repeated:
            return _failure(entry, ErrorCode.INVALID_REQUEST)
        return _look_up(services, context, request, topic, entry)

    following = (
        answer(topic.name, entry) for topic in request.topics for entry in topic.partitions
    )
    answers: list[ListOffsetsPartitionResponse] = []
    for promise in following:
        if isinstance(promise, Promise):
            return _answer_later(context, request, answers, promise, following)
        answers.append(promise)
    return _response(request, answers)


def _answer_later(
    context: RequestContext,
    request: ListOffsetsRequest,
    answers: list[ListOffsetsPartitionResponse],
    found: Promise[ListOffsetsPartitionResponse],
    following: Iterator[ListOffsetsPartitionResponse | Promise[ListOffsetsPartitionResponse]],
) -> Promise[ListOffsetsResponse]:
    """Wait for `found`, then look up what is `following`, one after another."""
    connection = context.connection
    promise: Promise[ListOffsetsResponse] = Promise()

    def arrived(answer: ListOffsetsPartitionResponse) -> None:
        if connection.is_closed:
            return
        try:
            answers.append(answer)
            for later in following:
                if isinstance(later, Promise):
                    later.then(arrived)
                    return
                answers.append(later)
            promise.settle(_response(request, answers))
        except BaseException:
            connection.close()  # it would wait for ever
            raise

    found.then(arrived)
    return promise


def _response(
    request: ListOffsetsRequest, answers: list[ListOffsetsPartitionResponse]
) -> ListOffsetsResponse:
    following = iter(answers)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=[next(following) for _ in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _look_up(
    services: BrokerServices,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    entry: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse | Promise[ListOffsetsPartitionResponse]:
    partition = _serving(services, request, topic, entry)
    if not isinstance(partition, Partition):
        return _failure(entry, partition)
    timestamp = entry.timestamp
    if timestamp < EARLIEST_PENDING_UPLOAD or context.api_version < NEEDS_VERSION.get(timestamp, 1):
        return _failure(entry, ErrorCode.UNSUPPORTED_VERSION)
    is_consumer = request.replica_id == CONSUMER_ID
    if not is_consumer:
        end_offset = partition.log.log_end_offset
    elif request.isolation_level == READ_COMMITTED:
        end_offset = partition.last_stable_offset
    else:
        end_offset = partition.high_watermark
    connection = context.connection

    def find(end_offset: int) -> Found | Promise[Found]:
        return _find(partition, timestamp, end_offset, lambda: not connection.is_closed)

    def check(result: Found) -> Found | Promise[Found]:
        return _unless_back(find, partition.log.log_end_offset, timestamp, result)

    def answer(result: Found) -> ListOffsetsPartitionResponse:
        return _answer(context, entry, result)

    result = find(end_offset)
    is_later = isinstance(result, Promise)
    if is_consumer and partition.is_catching_up:
        result = flat(result, check)
    if is_later:
        epoch = partition.leader_epoch

        def recheck(result: Found) -> Found:
            now = _serving(services, request, topic, entry)
            if not isinstance(now, Partition):
                return Found(error=now)
            if now is not partition or now.leader_epoch != epoch:
                return Found(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return result

        result = then(result, recheck)
    return then(result, answer)


def _serving(
    services: BrokerServices, request: ListOffsetsRequest, topic: str, entry: ListOffsetsPartition
) -> Partition | ErrorCode:
    """The partition, if it may answer."""
    partition = services.replicas.find(topic, entry.partition_index)
    if not isinstance(partition, Partition):
        return partition
    error = partition.check_epoch(entry.current_leader_epoch)
    if not error and not partition.is_leader and request.replica_id != DEBUG_REPLICA_ID:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return error or partition


def _unless_back(
    find: Callable[[int], Found | Promise[Found]],
    log_end_offset: int,
    timestamp: int,
    result: Found,
) -> Found | Promise[Found]:
    """OFFSET_NOT_AVAILABLE for less than what the leader before may have said (KIP-207).

    A new leader's high watermark rises with its followers' first fetches; the records between
    may have been seen.
    """
    if timestamp == LATEST:
        return Found(error=ErrorCode.OFFSET_NOT_AVAILABLE)
    if result.error or timestamp in (EARLIEST, EARLIEST_LOCAL) or result.offset >= 0:
        return result

    def compare(beyond: Found) -> Found:
        return Found(error=ErrorCode.OFFSET_NOT_AVAILABLE) if beyond.offset >= 0 else beyond

    return then(find(log_end_offset), compare)


def _find(
    partition: Partition, timestamp: int, end_offset: int, is_wanted: Callable[[], bool]
) -> Found | Promise[Found]:
    log = partition.log
    if timestamp == LATEST:
        return Found(offset=end_offset, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset if timestamp == EARLIEST else log.local_start_offset
        return Found(offset=start, leader_epoch=log.epoch_of(start))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return Found()
    try:
        result: LookedUp | Promise[LookedUp] = (
            log.max_timestamp_offset(end_offset, is_wanted)
            if timestamp == MAX_TIMESTAMP
            else log.offset_for_timestamp(timestamp, end_offset, is_wanted)
        )
    except LogDirFailure:
        return Found(error=ErrorCode.KAFKA_STORAGE_ERROR)
    return then(result, _as_found)


def _as_found(result: LookedUp) -> Found:
    if isinstance(result, ErrorCode):
        return Found(error=result)
    return Found() if result is None else Found(*result)


def _answer(
    context: RequestContext, entry: ListOffsetsPartition, result: Found
) -> ListOffsetsPartitionResponse:
    error = result.error
    if error is ErrorCode.OFFSET_NOT_AVAILABLE and context.api_version < NOT_AVAILABLE_FROM:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    if error:
        return _failure(entry, error)
    return ListOffsetsPartitionResponse(
        partition_index=entry.partition_index,
        timestamp=result.timestamp,
        offset=result.offset,
        leader_epoch=result.leader_epoch if context.api_version >= LEADER_EPOCH_FROM else -1,
    )


def _failure(entry: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=entry.partition_index, error_code=error)


EACH_EPOCH = Each("topics", "topics", id)
"""Of one partition several epochs may be asked."""


def handle_offset_for_leader_epoch(
    services: BrokerServices, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Say where each leader epoch ends in our log."""
    visible = {topic.topic for topic in request.topics}
    if not may(
        services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, logs_denial=False
    ):
        visible = allowed(services, context, Operation.DESCRIBE, ResourceType.TOPIC, visible)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _end_offset(services, topic.topic, entry)
                    if topic.topic in visible
                    else OffsetForLeaderEpochEpochEndOffset(
                        partition=entry.partition,
                        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    )
                    for entry in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _end_offset(
    services: BrokerServices, topic: str, entry: OffsetForLeaderPartition
) -> OffsetForLeaderEpochEpochEndOffset:
    partition = services.replicas.find(topic, entry.partition)
    if not isinstance(partition, Partition):
        return OffsetForLeaderEpochEpochEndOffset(partition=entry.partition, error_code=partition)
    error = partition.check_epoch(entry.current_leader_epoch)
    if not error and not partition.is_leader:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error:
        return OffsetForLeaderEpochEpochEndOffset(partition=entry.partition, error_code=error)
    leader_epoch, end_offset = partition.log.end_offset_for_epoch(entry.leader_epoch)
    return OffsetForLeaderEpochEpochEndOffset(
        partition=entry.partition, leader_epoch=leader_epoch, end_offset=end_offset
    )
