"""The transaction coordinator's door: requests of the protocol in, responses out.

Each method returns the response, or a promise of it where it must wait for a commit. If a producer
id is needed, one is fetched and the request is decided again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.coordinator.coordinator import Coordinator
from barnabas.node.coordinator.decision import Decision, Moment
from barnabas.node.coordinator.partition_writer import PartitionWriter
from barnabas.node.coordinator.transaction.ending import EndRequest
from barnabas.node.coordinator.transaction.initializing import InitRequest
from barnabas.node.coordinator.transaction.markers import Markers, MarkerSender
from barnabas.node.coordinator.transaction.shard import (
    Listing,
    NeedsProducerId,
    TransactionShard,
    end_error,
)
from barnabas.node.coordinator.transaction.states import TransactionState
from barnabas.node.coordinator.transaction.transaction import Transaction
from barnabas.node.loop.promise import Promise, then
from barnabas.node.net.request_trace import OpenSpan, RequestTrace
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    TRANSACTION_RECORDS,
    EndTxnResponse,
    InitProducerIdResponse,
)
from barnabas.protocol.records.batch import NO_PRODUCER_ID
from barnabas.protocol.records.control import TRANSACTION_VERSION_2


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Kafka's settings under their meaning; the defaults are Kafka's."""

    state_partitions: int = 50
    timeout_max_ms: int = 900_000
    id_expiration_ms: int = 7 * 24 * 3_600_000
    write_timeout_ms: int = 30_000
    retry_backoff_ms: int = 20
    retry_backoff_max_ms: int = 100
    """The maximum that the broker itself waits for the previous transaction to complete."""

    @classmethod
    def from_node(cls, config: NodeConfig) -> "TransactionConfig":
        """Read `transaction.*` and what belongs to it."""
        return cls(
            state_partitions=config.get_int("transaction.state.log.num.partitions"),
            timeout_max_ms=config.get_int("transaction.max.timeout.ms"),
            id_expiration_ms=config.get_int("transactional.id.expiration.ms"),
            write_timeout_ms=config.get_int("request.timeout.ms"),
            retry_backoff_ms=config.get_int("add.partitions.to.txn.retry.backoff.ms"),
            retry_backoff_max_ms=config.get_int("add.partitions.to.txn.retry.backoff.max.ms"),
        )


RETRY_MS = 100

R = TypeVar("R")

telemetry = logging.getLogger(__name__)

AllocateProducerId = Callable[[], Awaitable[int | ErrorCode]]


class TransactionCoordinator(Coordinator[TransactionShard]):
    """The transactions whose partitions of `__transaction_state` this node leads."""

    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        writer: PartitionWriter,
        sender: MarkerSender,
        allocate_producer_id: AllocateProducerId,
        transaction_version: Callable[[], int],
    ) -> None:
        """`transaction_version` tells the finalized level of that feature."""
        super().__init__(
            clock,
            writer,
            lambda: TransactionShard(transaction_version, self._prepared),
            TRANSACTION_RECORDS,
            partition_count=config.state_partitions,
            write_timeout_ms=config.write_timeout_ms,
        )
        self.config = config
        self._clock = clock
        self._sender = sender
        self._allocate_producer_id = allocate_producer_id
        self._traces: dict[str, RequestTrace] = {}
        """Traced requests that end a transaction, by transactional id, until it is prepared."""
        self._waiting: dict[str, list[Promise[None]]] = {}
        """The requests that wait for a transaction to complete."""
        sender.on_written = self._markers_written

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        """Another node leads the partition (or none): its transactions are found elsewhere."""
        self._sender.forget(partition)
        self._traces.clear()
        super().unload(partition, leader_epoch)

    async def close(self) -> None:
        """Answer all that waits and serve nobody any more."""
        await super().close()
        await self._sender.close()

    # Producers

    async def init_producer_id(
        self, transactional_id: str, request: InitRequest
    ) -> InitProducerIdResponse:
        """Make the sender the producer of a transactional id."""
        if not transactional_id:
            return _init_error(ErrorCode.INVALID_REQUEST)
        if not 0 < request.timeout_ms <= self.config.timeout_max_ms:
            return _init_error(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return await self._with_producer_id(
            transactional_id,
            lambda shard, producer_id, now: shard.init_producer_id(
                transactional_id, request, producer_id, now
            ),
            _init_error,
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        client_version: int,
    ) -> ErrorCode | Promise[ErrorCode]:
        """Make partitions part of the producer's transaction, which begins if need be."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        added = tuple(partitions)
        return self.run(
            transactional_id,
            lambda shard, _, now: shard.add_partitions(
                transactional_id, (producer_id, producer_epoch), added, client_version, now
            ),
            lambda error: error,
        )

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
    ) -> dict[TopicPartition, ErrorCode] | Promise[dict[TopicPartition, ErrorCode]]:
        """Check whether partitions are part of the producer's transaction."""
        if not transactional_id:
            return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        return self.run(
            transactional_id,
            lambda shard, _waiter, _now: shard.verify(
                transactional_id, (producer_id, producer_epoch), partitions
            ),
            lambda error: dict.fromkeys(partitions, error),
        )

    def end(
        self, transactional_id: str, request: EndRequest, trace: RequestTrace | None = None
    ) -> EndTxnResponse | Awaitable[EndTxnResponse]:
        """Commit or abort; the answer comes when the decision is committed.

        `trace` is of the request, if that is traced; the markers' spans come later.
        """
        if not transactional_id:
            return end_error(ErrorCode.INVALID_REQUEST)
        if trace is None:
            return self._end(transactional_id, request)
        # While an end is under way, a second one only repeats it.
        self._traces.setdefault(transactional_id, trace)
        attributes: dict[str, str | int | bool] = {
            "barnabas.transactional_id": transactional_id,
            "barnabas.state_partition": self.partition_for(transactional_id),
            "barnabas.is_commit": request.is_commit,
        }
        span = trace.begin("prepare", **attributes)
        response = self._end(transactional_id, request)
        if isinstance(response, EndTxnResponse):
            self._note_prepared(transactional_id, trace, span, response)
            return response
        return self._end_traced(transactional_id, trace, span, response)

    async def _end_traced(
        self,
        transactional_id: str,
        trace: RequestTrace,
        span: OpenSpan,
        response: Awaitable[EndTxnResponse],
    ) -> EndTxnResponse:
        found = await response
        self._note_prepared(transactional_id, trace, span, found)
        return found

    def _note_prepared(
        self, transactional_id: str, trace: RequestTrace, span: OpenSpan, response: EndTxnResponse
    ) -> None:
        error = ErrorCode.of(response.error_code)
        span.end(error.name if error else None)
        # An end that was refused, or had been completed before, leaves no markers to trace.
        if self._traces.get(transactional_id) is trace:
            del self._traces[transactional_id]

    def _end(
        self, transactional_id: str, request: EndRequest
    ) -> EndTxnResponse | Awaitable[EndTxnResponse]:
        response: Any = self.run(
            transactional_id,
            lambda shard, _, now: shard.end(transactional_id, request, NO_PRODUCER_ID, now),
            end_error,
        )
        if isinstance(response, EndTxnResponse):
            return response
        return self._end_later(transactional_id, request, response)

    async def _end_later(
        self, transactional_id: str, request: EndRequest, response: Any
    ) -> EndTxnResponse:
        outcome = await response if isinstance(response, Promise) else response
        if isinstance(outcome, EndTxnResponse):
            return outcome
        return await self._with_producer_id(
            transactional_id,
            lambda shard, producer_id, now: shard.end(transactional_id, request, producer_id, now),
            end_error,
        )

    async def completed(self, transactional_id: str) -> None:
        """Wait until the markers of the id's transaction are written, but not for long."""
        shard = self.runtime.shard(self.partition_for(transactional_id))
        transaction = None if shard is None else shard.transactions.get(transactional_id)
        if transaction is None or not transaction.state.is_prepared:
            return
        promise: Promise[None] = Promise()
        waiting = self._waiting.setdefault(transactional_id, [])
        waiting.append(promise)
        timer = self._clock.call_later(
            self.config.retry_backoff_max_ms, lambda: promise.settle(None)
        )
        try:
            await promise
        finally:
            timer.cancel()
            waiting.remove(promise)
            if not waiting and self._waiting.get(transactional_id) is waiting:
                del self._waiting[transactional_id]

    # Looking

    def describe(
        self, transactional_id: str
    ) -> Transaction | ErrorCode | Promise[Transaction | ErrorCode]:
        """One transaction, or why it cannot be described."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        return self.run(
            transactional_id,
            lambda shard, _waiter, _now: shard.describe(transactional_id),
            lambda error: error,
        )

    def list_transactions(
        self, listing: Listing
    ) -> ErrorCode | list[tuple[str, Transaction]] | Promise[Any]:
        """The transactions of this node; an error while one of its partitions loads."""
        return self.collect(lambda shard, _waiter, now: shard.list_transactions(listing, now))

    # What time brings

    async def abort_overdue(self) -> None:
        """Abort what has been open for too long.

        To be called each `transaction.abort.timed.out.transaction.cleanup.interval.ms`.
        """
        now = self._now()
        overdue = [
            transactional_id
            for partition in self.runtime.partitions()
            if (shard := self.runtime.shard(partition)) is not None
            for transactional_id in shard.overdue(now)
        ]
        for transactional_id in overdue:
            error = await self._abort_overdue(transactional_id)
            if not error:
                telemetry.info(
                    "aborted the transaction of %s, which exceeded its time-out", transactional_id
                )
            else:
                telemetry.info(
                    "cannot abort the transaction of %s yet: %s", transactional_id, error.name
                )

    async def _abort_overdue(self, transactional_id: str) -> ErrorCode:
        return await self._with_producer_id(
            transactional_id,
            lambda shard, producer_id, now: shard.abort_overdue(transactional_id, producer_id, now),
            lambda error: error,
        )

    def expire_ids(self) -> None:
        """Forget transactional ids that nobody uses any more.

        To be called each `transaction.remove.expired.transaction.cleanup.interval.ms`.
        """
        self.remove_everywhere(
            "expired transactional ids",
            lambda shard, _waiter, now: shard.expire_ids(self.config.id_expiration_ms, now),
        )

    # Markers

    def _prepared(self, transactional_id: str, transaction: Transaction) -> None:
        """The outcome is in the log for good: have the markers written."""
        partition = self.partition_for(transactional_id)
        self._sender.send(
            Markers(
                state_partition=partition,
                coordinator_epoch=self.runtime.leader_epoch(partition),
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                is_commit=transaction.state is TransactionState.PREPARE_COMMIT,
                transaction_version=transaction.client_version,
                missing=dict(transaction.partitions),
                trace=self._traces.pop(transactional_id, None),
            )
        )

    def _markers_written(self, markers: Markers) -> None:
        transactional_id = markers.transactional_id

        def failed(error: ErrorCode) -> ErrorCode:
            if error is ErrorCode.COORDINATOR_NOT_AVAILABLE and not self.is_closed:
                self._clock.call_later(RETRY_MS, lambda: self._markers_written(markers))
            return error

        span = None if markers.trace is None else markers.trace.begin("complete")
        completed: Any = self.run(
            transactional_id,
            lambda shard, _, now: shard.complete(
                transactional_id, markers.producer_id, markers.producer_epoch, now
            ),
            failed,
        )
        if span is not None:
            then(completed, lambda error: span.end(error.name if error else None))
        for promise in self._waiting.get(transactional_id, ()):
            promise.settle(None)

    # Helpers

    def _now(self) -> Moment:
        return Moment(self._clock.now_ms(), self._clock.monotonic_ms())

    async def _with_producer_id(
        self,
        transactional_id: str,
        step: Callable[[TransactionShard, int, Moment], Decision],
        on_error: Callable[[ErrorCode], R],
    ) -> R:
        """A step that may need a new producer id, which is fetched then."""
        producer_id = NO_PRODUCER_ID
        while True:
            response: Any = self.run(
                transactional_id,
                lambda shard, _, now, new_id=producer_id: step(shard, new_id, now),  # type: ignore[misc]  # mypy cannot infer a default
                on_error,
            )
            if isinstance(response, Promise):
                response = await response
            if not isinstance(response, NeedsProducerId):
                outcome: R = response
                return outcome
            allocated = await self._allocate_producer_id()
            if isinstance(allocated, ErrorCode):
                return on_error(allocated)
            producer_id = allocated


def client_version_of(api_version: int, version_2_from: int) -> int:
    """The transaction.version that a client works with, as the version of its request tells."""
    return TRANSACTION_VERSION_2 if api_version >= version_2_from else 0


def _init_error(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
