"""Transaction markers, sent to every partition that a transaction wrote to.

Each node that leads some of them gets one WriteTxnMarkers at a time, with the markers of all
transactions that wait for it; this node's own partitions are written to directly. What fails
because a leader moved, or is not there now, is tried again where the metadata says by then. A
partition that is gone from the metadata needs no marker. Source: Kafka's
TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.node.loop.promise import Promise
from barnabas.node.metadata.broker_peers import BrokerPeers
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.net.question_queue import QuestionQueue
from barnabas.node.net.request_trace import OpenSpan, RequestTrace
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

RETRY_MS: Final = 50
MARKERS_PER_REQUEST_MAX: Final = 10_000
"""More wait for the next request to the same node."""
FENCED: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED}
)
"""Somebody else has the transaction: it is not ours to end any more."""

telemetry = logging.getLogger(__name__)

WriteHere = Callable[[WriteTxnMarkersRequest], WriteTxnMarkersResponse | Promise[Any]]


@dataclass(slots=True, eq=False)
class Markers:
    """The markers of one transaction, until all are written."""

    state_partition: int
    coordinator_epoch: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    transaction_version: int
    missing: dict[TopicPartition, None] = field(default_factory=dict)
    is_cancelled: bool = False
    trace: RequestTrace | None = None
    """The request that ended the transaction, if that is traced."""
    spans: dict[TopicPartition, OpenSpan] = field(default_factory=dict)
    """The markers that are under way, of a traced one."""

    def note_sending(self, partition: TopicPartition, leader: int) -> None:
        """A marker begins to go to a leader; -1: to none yet."""
        if self.trace is not None and partition not in self.spans:
            attributes: dict[str, str | int | bool] = {
                "messaging.destination.name": partition.topic,
                "messaging.destination.partition.id": str(partition.partition),
                "barnabas.leader": leader,
                "barnabas.producer_id": self.producer_id,
                "barnabas.producer_epoch": self.producer_epoch,
            }
            self.spans[partition] = self.trace.begin("write marker", **attributes)

    def note_settled(self, partition: TopicPartition, error: str | None = None) -> None:
        """A marker is written, or is to be tried again, or never."""
        span = self.spans.pop(partition, None)
        if span is not None:
            span.end(error)


Batch = dict[Markers, dict[TopicPartition, None]]
_Marker = tuple[Markers, TopicPartition]


class MarkerSender:
    """Writes markers, here and elsewhere."""

    def __init__(
        self,
        clock: Clock,
        peers: BrokerPeers,
        image: Callable[[], MetadataImage],
        write_here: WriteHere,
    ) -> None:
        """`write_here` does what WriteTxnMarkers does, for partitions that this node leads."""
        self._node_id = peers.node_id
        self._clock = clock
        self._image = image
        self._write_here = write_here
        self._others = peers.channel("txn-marker-sender")
        self._queue: QuestionQueue[int, _Marker] = QuestionQueue(
            self._others.ask,
            lambda _, queued: _request(_batch_of(queued)),
            lambda _, queued, response: self._answered(queued, response),
            self._failed,
            key=lambda queued: queued,
            batch_max=MARKERS_PER_REQUEST_MAX,
        )
        self.on_written: Callable[[Markers], None] | None = None
        """Called when every partition of a transaction has its marker."""
        self._pending: dict[str, Markers] = {}
        self._here: Batch = {}
        """Markers for partitions that this node leads."""
        self._is_writing = False
        self._is_scheduled = False
        self._is_closed = False

    @property
    def pending(self) -> Sequence[Markers]:
        """The transactions whose markers are not all written."""
        return list(self._pending.values())

    def send(self, markers: Markers) -> None:
        """Have markers written; what was under way for the same transactional id is given up."""
        before = self._pending.get(markers.transactional_id)
        if before is not None:
            self._cancel(before)
        self._pending[markers.transactional_id] = markers
        self._route(markers, list(markers.missing))

    def forget(self, state_partition: int) -> None:
        """Another coordinator has the transactions of `state_partition`."""
        for markers in self.pending:
            if markers.state_partition == state_partition:
                self._cancel(markers)

    async def close(self) -> None:
        """Give everything up and wait for what is under way."""
        self._is_closed = True
        for markers in self.pending:
            self._cancel(markers)
        self._others.close()
        await self._queue.close()

    # Where to

    def _cancel(self, markers: Markers) -> None:
        markers.is_cancelled = True
        for partition in list(markers.spans):
            markers.note_settled(partition, "given up")
        if self._pending.get(markers.transactional_id) is markers:
            del self._pending[markers.transactional_id]

    def _route(self, markers: Markers, partitions: Iterable[TopicPartition]) -> None:
        """Queue the markers for the nodes that lead the partitions now."""
        image = self._image()
        lost: Batch = {}
        for partition in partitions:
            placed = image.topics.partition(*partition)
            if placed is None:
                telemetry.info("%s was deleted and needs no marker", partition)
                markers.missing.pop(partition, None)
                markers.note_settled(partition)
                continue
            if markers.trace is not None:
                markers.note_sending(partition, placed.leader)
            if placed.leader == self._node_id:
                self._here.setdefault(markers, {})[partition] = None
            elif not self._others.reaches(placed.leader) or not self._queue.put(
                placed.leader, (markers, partition)
            ):
                lost.setdefault(markers, {})[partition] = None
        if not markers.missing:
            self._written(markers)
        if lost:
            self._retry_later(lost)
        self._schedule()

    # Here

    def _schedule(self) -> None:
        """Write soon: markers that arrive in the meantime are sent along."""
        if self._here and not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._clock.call_later(0, self._write)

    def _write(self) -> None:
        self._is_scheduled = False
        if self._is_closed or self._is_writing:
            return
        queued, self._here = self._here, {}
        batch = _wanted(queued)
        if not batch:
            return
        request = _request(batch)
        assert request is not None
        self._is_writing = True
        response = self._write_here(request)
        if isinstance(response, Promise):
            response.then(lambda value: self._is_here(batch, value))
        else:
            self._is_here(batch, response)

    def _is_here(self, batch: Batch, response: WriteTxnMarkersResponse) -> None:
        self._is_writing = False
        self._answered(_queued_of(batch), response)
        self._schedule()

    # What came of it

    def _failed(self, node_id: int, queued: list[_Marker], error: Exception) -> None:
        telemetry.info("cannot send markers to node %d yet: %s", node_id, error)
        for markers, partition in queued:
            markers.note_settled(partition, "cannot be sent yet")
        self._retry_later(_batch_of(queued))

    def _answered(self, queued: Iterable[_Marker], response: WriteTxnMarkersResponse) -> None:
        errors: dict[tuple[int, TopicPartition], ErrorCode] = {
            (
                result.producer_id,
                TopicPartition(topic.name, partition.partition_index),
            ): ErrorCode.of(partition.error_code)
            for result in response.markers
            for topic in result.topics
            for partition in topic.partitions
        }
        failed: Batch = {}
        try:
            for markers, partition in queued:
                if markers.is_cancelled:
                    continue
                error = errors.get((markers.producer_id, partition), ErrorCode.UNKNOWN_SERVER_ERROR)
                self._settle(markers, partition, error, failed)
                if not markers.missing:
                    self._written(markers)
        finally:
            if failed:
                self._retry_later(failed)

    def _settle(
        self, markers: Markers, partition: TopicPartition, error: ErrorCode, failed: Batch
    ) -> None:
        """Take one partition's answer."""
        if markers.spans:
            markers.note_settled(partition, error.name if error else None)
        if not error or error is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
            markers.missing.pop(partition, None)
        elif error in FENCED:
            if not markers.is_cancelled:
                telemetry.warning(
                    "%s refused the marker of %s: %s",
                    partition,
                    markers.transactional_id,
                    error.name,
                )
            self._cancel(markers)
        else:
            telemetry.info(
                "%s cannot take a marker of %s yet: %s",
                partition,
                markers.transactional_id,
                error.name,
            )
            failed.setdefault(markers, {})[partition] = None

    def _retry_later(self, batch: Batch) -> None:
        """Look for the leaders again after a while."""

        def retry() -> None:
            for markers, partitions in batch.items():
                if not markers.is_cancelled:
                    self._route(markers, [each for each in partitions if each in markers.missing])

        if not self._is_closed:
            self._clock.call_later(RETRY_MS, retry)

    def _written(self, markers: Markers) -> None:
        if self._pending.get(markers.transactional_id) is markers and not markers.is_cancelled:
            del self._pending[markers.transactional_id]
            if self.on_written is not None:
                self.on_written(markers)


def _batch_of(queued: Iterable[_Marker]) -> Batch:
    batch: Batch = {}
    for markers, partition in queued:
        batch.setdefault(markers, {})[partition] = None
    return batch


def _queued_of(batch: Batch) -> Iterator[_Marker]:
    return (
        (markers, partition) for markers, partitions in batch.items() for partition in partitions
    )


def _wanted(batch: Batch) -> Batch:
    return {
        markers: partitions for markers, partitions in batch.items() if not markers.is_cancelled
    }


def _request(batch: Batch) -> WriteTxnMarkersRequest | None:
    """A request for what is wanted by now; None if that is nothing."""
    batch = _wanted(batch)
    if not batch:
        return None
    request = WriteTxnMarkersRequest()
    for markers, partitions in batch.items():
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        request.markers.append(
            WritableTxnMarker(
                producer_id=markers.producer_id,
                producer_epoch=markers.producer_epoch,
                transaction_result=markers.is_commit,
                topics=[
                    WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
                    for topic, indexes in topics.items()
                ],
                coordinator_epoch=markers.coordinator_epoch,
                transaction_version=markers.transaction_version,
            )
        )
    return request
