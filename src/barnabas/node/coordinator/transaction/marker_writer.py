"""Writing markers into partitions that this node leads (WriteTxnMarkers).

Each marker is a separate batch. The answer comes when the markers are committed. Those of
`__consumer_offsets` go through the group coordinator, where they decide on committed offsets.
Source: Kafka's KafkaApis.handleWriteTxnMarkersRequest.
"""

import logging
from typing import Final

from barnabas.base.clock import Clock
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import AppendOrigin
from barnabas.node.log.producers.verification import AppendTerms
from barnabas.node.loop.promise import Promise, gather
from barnabas.node.replication.partition import Partition
from barnabas.node.replication.replica_manager import ReplicaManager
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.records.control import encode_end_txn
from barnabas.protocol.well_known import CONSUMER_OFFSETS

COORDINATOR_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)

telemetry = logging.getLogger(__name__)


class MarkerWriter:
    """Ends transactions in the partitions of this node."""

    def __init__(
        self,
        clock: Clock,
        replicas: ReplicaManager,
        groups: GroupCoordinator,
        *,
        timeout_ms: int,
    ) -> None:
        """`timeout_ms` bounds how long a marker may take to be committed."""
        self._clock = clock
        self._replicas = replicas
        self._groups = groups
        self._timeout_ms = timeout_ms

    def write(
        self, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse | Promise[WriteTxnMarkersResponse]:
        """Write every marker of the request."""
        outcomes: list[ErrorCode | Promise[ErrorCode]] = [
            self._write_one(marker, topic.name, index)
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        ]
        return gather(outcomes, lambda errors: _respond(request, errors))

    def _write_one(
        self, marker: WritableTxnMarker, topic: str, index: int
    ) -> ErrorCode | Promise[ErrorCode]:
        partition = self._replicas.find(topic, index)
        if not isinstance(partition, Partition):
            if partition is ErrorCode.KAFKA_STORAGE_ERROR:
                return partition
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if topic == CONSUMER_OFFSETS:
            return self._end_offsets(marker, index)
        if partition.is_under_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        now_ms = self._clock.now_ms()
        batch = encode_end_txn(
            is_commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            timestamp_ms=now_ms,
        )
        try:
            result = partition.append(
                batch,
                now_ms,
                AppendOrigin.COORDINATOR,
                AppendTerms(transaction_version=marker.transaction_version),
            )
        except LogDirFailure as failure:
            telemetry.error("cannot append to %s: %s", partition.topic_partition, failure)
            return ErrorCode.KAFKA_STORAGE_ERROR
        if result.error:
            return result.error
        return self._when_committed(partition, result.last_offset + 1)

    def _when_committed(
        self, partition: Partition, end_offset: int
    ) -> ErrorCode | Promise[ErrorCode]:
        if partition.high_watermark >= end_offset:
            return _verdict(partition, ErrorCode.NONE)
        promise: Promise[ErrorCode] = Promise()

        def committed(error: ErrorCode) -> None:
            timer.cancel()
            promise.settle(_verdict(partition, error))

        def expire() -> None:
            partition.forget_commit_waiter(committed)
            promise.settle(ErrorCode.REQUEST_TIMED_OUT)

        timer = self._clock.call_later(self._timeout_ms, expire)
        partition.when_committed(end_offset, committed)
        return promise

    def _end_offsets(self, marker: WritableTxnMarker, index: int) -> ErrorCode | Promise[ErrorCode]:
        outcome = self._groups.end_transaction(index, marker)
        if not isinstance(outcome, Promise):
            return _to_leader(outcome)
        changed: Promise[ErrorCode] = Promise()
        outcome.then(lambda error: changed.settle(_to_leader(error)))
        return changed


def _to_leader(error: ErrorCode) -> ErrorCode:
    """A transaction coordinator knows leaders of partitions, not coordinators of groups."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in COORDINATOR_ELSEWHERE else error


def _verdict(partition: Partition, error: ErrorCode) -> ErrorCode:
    if not error and partition.has_too_few_replicas:
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return error


def _respond(request: WriteTxnMarkersRequest, errors: list[ErrorCode]) -> WriteTxnMarkersResponse:
    """One result for each producer id, as in Kafka, whichever marker an error came from."""
    outcomes = iter(errors)
    by_producer: dict[int, dict[str, dict[int, ErrorCode]]] = {}
    for marker in request.markers:
        topics = by_producer.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            partitions = topics.setdefault(topic.name, {})
            for index in topic.partition_indexes:
                partitions[index] = next(outcomes)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error
                            )
                            for index, error in partitions.items()
                        ],
                    )
                    for name, partitions in topics.items()
                ],
            )
            for producer_id, topics in by_producer.items()
        ]
    )
