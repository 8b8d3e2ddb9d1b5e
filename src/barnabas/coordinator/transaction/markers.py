"""How the end of a transaction reaches every partition that it wrote to.

Each node that leads some of them gets one WriteTxnMarkers at a time, with the markers of all
transactions that wait for it; this node's own partitions are written to directly. What fails
because a leader moved, or is not there now, is tried again where the metadata says by then. A
partition that is gone from the metadata needs no marker. Source: Kafka's
TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.base.network import Network
from barnabas.coordinator.promise import Promise
from barnabas.metadata.image import MetadataImage
from barnabas.net.client import Peer
from barnabas.net.dialing import Dialing
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

RETRY_MS: Final = 50
NO_NODE: Final = -1
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


Batch = dict[Markers, dict[TopicPartition, None]]


class MarkerSender:
    """Writes markers, here and elsewhere."""

    def __init__(
        self,
        node_id: int,
        listener_name: str,
        clock: Clock,
        network: Network,
        image: Callable[[], MetadataImage],
        write_here: WriteHere,
        *,
        request_timeout_ms: int,
        dialing: Dialing,
    ) -> None:
        """`write_here` does what WriteTxnMarkers does, for partitions that this node leads."""
        self._node_id = node_id
        self._listener_name = listener_name
        self._clock = clock
        self._network = network
        self._image = image
        self._write_here = write_here
        self._request_timeout_ms = request_timeout_ms
        self._dialing = dialing
        self.on_written: Callable[[Markers], None] | None = None
        """Called when every partition of a transaction has its marker."""
        self._pending: dict[str, Markers] = {}
        self._queued: dict[int, Batch] = {}
        self._busy: dict[int, asyncio.Future[None] | None] = {}
        """Nodes with a request under way."""
        self._peers: dict[int, Peer] = {}
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
            before.is_cancelled = True
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
        for peer in self._peers.values():
            peer.close()
        tasks = [task for task in self._busy.values() if task is not None]
        if tasks:
            await asyncio.wait(tasks)

    # Where to

    def _cancel(self, markers: Markers) -> None:
        markers.is_cancelled = True
        if self._pending.get(markers.transactional_id) is markers:
            del self._pending[markers.transactional_id]

    def _route(self, markers: Markers, partitions: Iterable[TopicPartition]) -> None:
        """Queue the markers for the nodes that lead the partitions now."""
        image = self._image()
        for partition in partitions:
            placed = image.topics.partition(*partition)
            if placed is None:
                telemetry.info("%s is gone and needs no marker", partition)
                markers.missing.pop(partition, None)
                continue
            node_id = placed.leader
            if node_id != self._node_id and self._address(image, node_id) is None:
                node_id = NO_NODE
            self._queued.setdefault(node_id, {}).setdefault(markers, {})[partition] = None
        if not markers.missing:
            self._written(markers)
        self._schedule(0)

    def _address(self, image: MetadataImage, node_id: int) -> tuple[str, int] | None:
        broker = image.brokers.get(node_id)
        endpoint = None if broker is None else broker.listeners.get(self._listener_name)
        if broker is None or broker.fenced or endpoint is None:
            return None
        return endpoint.host, endpoint.port

    def _schedule(self, delay_ms: int) -> None:
        """Send soon: what comes meanwhile goes along."""
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._clock.call_later(delay_ms, self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        if self._is_closed:
            return
        lost = self._queued.pop(NO_NODE, None)
        for node_id in list(self._queued):
            if node_id not in self._busy:
                self._start(node_id, self._queued.pop(node_id))
        if lost:
            self._retry_later(lost)

    # Sending

    def _start(self, node_id: int, queued: Batch) -> None:
        batch = {
            markers: partitions
            for markers, partitions in queued.items()
            if not markers.is_cancelled
        }
        if not batch:
            return
        request = _request(batch)
        if node_id == self._node_id:
            self._busy[node_id] = None
            response = self._write_here(request)
            if isinstance(response, Promise):
                response.then(lambda value: self._answered(node_id, batch, value))
            else:
                self._answered(node_id, batch, response)
            return
        task = asyncio.ensure_future(self._ask(node_id, batch, request))
        self._busy[node_id] = task

    async def _ask(self, node_id: int, batch: Batch, request: WriteTxnMarkersRequest) -> None:
        address = self._address(self._image(), node_id)
        try:
            if address is None:
                raise ConnectionError(f"node {node_id} is gone")
            response = await self._peer(node_id, address).send(request)
        except OSError as error:
            telemetry.info("markers for node %d have to wait: %s", node_id, error)
            del self._busy[node_id]
            self._retry_later(batch)
            self._schedule(RETRY_MS)
            return
        self._answered(node_id, batch, response)

    def _peer(self, node_id: int, address: tuple[str, int]) -> Peer:
        peer = self._peers.get(node_id)
        if peer is not None and (peer.host, peer.port) != address:
            peer.close()
            peer = None
        if peer is None:
            peer = self._peers[node_id] = Peer(
                self._network,
                self._clock,
                *address,
                client_id=f"broker-{self._node_id}-txn-marker-sender",
                request_timeout_ms=self._request_timeout_ms,
                dialing=self._dialing,
            )
        return peer

    def _answered(self, node_id: int, batch: Batch, response: WriteTxnMarkersResponse) -> None:
        del self._busy[node_id]
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
        for markers, partitions in batch.items():
            for partition in partitions:
                error = errors.get((markers.producer_id, partition), ErrorCode.UNKNOWN_SERVER_ERROR)
                self._settle(markers, partition, error, failed)
            if not markers.missing:
                self._written(markers)
        if failed:
            self._retry_later(failed)
        if node_id in self._queued:
            self._schedule(0)

    def _settle(
        self, markers: Markers, partition: TopicPartition, error: ErrorCode, failed: Batch
    ) -> None:
        """Take one partition's answer."""
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
                "%s takes no marker of %s now: %s", partition, markers.transactional_id, error.name
            )
            failed.setdefault(markers, {})[partition] = None

    def _retry_later(self, batch: Batch) -> None:
        """Look for the leaders again after a while."""

        def retry() -> None:
            for markers, partitions in batch.items():
                if not markers.is_cancelled:
                    self._route(markers, partitions)

        if not self._is_closed:
            self._clock.call_later(RETRY_MS, retry)

    def _written(self, markers: Markers) -> None:
        if self._pending.get(markers.transactional_id) is markers and not markers.is_cancelled:
            del self._pending[markers.transactional_id]
            if self.on_written is not None:
                self.on_written(markers)


def _request(batch: Batch) -> WriteTxnMarkersRequest:
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
