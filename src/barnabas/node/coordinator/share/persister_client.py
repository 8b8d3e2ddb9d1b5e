"""The persister of every node: it asks the share coordinator of each key, wherever that is.

A coordinator on this node is asked directly. Others get what is to be asked at the time, all
of a group in one request, one request of each kind and group under way to each node. What passes
(a coordinator that moves or loads, a lost connection) is asked again with a growing pause.

Writes of one share-partition are kept in order: while one is under way, those behind it are
joined into one that follows, and a read waits for them. Not as in Kafka, where a write that is
asked again may come after one that was later, and take the start offset back.
Source: Kafka's PersisterStateManager and DefaultStatePersister.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.backoff import ExponentialBackoff
from barnabas.base.clock import Clock
from barnabas.base.ids import Uuid
from barnabas.node.coordinator.share.batches import combine
from barnabas.node.coordinator.share.operations import (
    DELETE,
    INITIALIZE,
    READ,
    SUMMARY,
    WRITE,
    Operation,
    outcomes_of,
    request_for,
)
from barnabas.node.coordinator.share.service import ShareCoordinator
from barnabas.node.coordinator.share.state import (
    UNINITIALIZED_OFFSET,
    Failure,
    SharePartitionKey,
    ShareState,
    ShareStateError,
    ShareSummary,
    StateBatch,
)
from barnabas.node.loop.promise import Promise
from barnabas.node.metadata.broker_peers import BrokerPeers
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.net.question_queue import QuestionQueue
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_state
from barnabas.protocol.schema import Message
from barnabas.protocol.well_known import SHARE_GROUP_STATE

ATTEMPTS_MAX: Final = 8
PAUSE_MS: Final = 100
"""The first pause; each is twice the one before, 12.7 s in all. Kafka's are four, 15 s in all."""
PARTITIONS_PER_REQUEST_MAX: Final = 2_000
RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)

telemetry = logging.getLogger(__name__)


_Lane = tuple[int, Operation[Message], str]
"""A node, what it is asked, and for which group: of each, one request is under way."""


@dataclass(slots=True, eq=False)
class _Queued:
    """One question for another node, and its outcome."""

    topic_id: Uuid
    question: Any
    answer: Promise[Any]


@dataclass(slots=True, eq=False)
class _Write:
    """Writes of one share-partition that leave together."""

    epochs: tuple[int, int]
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    answer: Promise[Any] = field(default_factory=Promise)


class CoordinatorPersister:
    """Keeps share states with the cluster's share coordinators (a `Persister`)."""

    def __init__(
        self,
        clock: Clock,
        peers: BrokerPeers,
        image: Callable[[], MetadataImage],
        coordinator: ShareCoordinator,
        *,
        source: random.Random,
        create_topic: Callable[[], Coroutine[Any, Any, object]],
    ) -> None:
        """`create_topic` makes `__share_group_state`, or returns without it."""
        self._node_id = peers.node_id
        self._clock = clock
        self._image = image
        self._coordinator = coordinator
        self._backoff = ExponentialBackoff(PAUSE_MS, PAUSE_MS << ATTEMPTS_MAX, source)
        self._create_topic = create_topic
        self._others = others = peers.channel("persister")
        self._queue: QuestionQueue[_Lane, _Queued] = QuestionQueue(
            lambda lane, request: others.ask(lane[0], request),
            _request,
            _answered,
            _failed,
            key=lambda queued: (queued.topic_id, queued.question.partition),
            batch_max=PARTITIONS_PER_REQUEST_MAX,
        )
        self._writes: dict[SharePartitionKey, list[_Write]] = {}
        """The write under way, and those that wait for it."""
        self._creating: asyncio.Future[object] | None = None
        self._writers: dict[asyncio.Future[None], None] = {}
        self._pauses: dict[Promise[None], None] = {}
        self._is_closed = False

    # Persister

    async def read(
        self, group_id: str, topic_id: Uuid, partition: int, leader_epoch: int
    ) -> ShareState:
        """Read the stored state, with this node's writes under way; earlier leaders are fenced.

        A share partition that is closed and opened again in one leader epoch would otherwise
        begin without what it wrote last, and nothing would keep that from being kept later.
        Writes of an earlier epoch fail from here on, so there is no need to wait for those.
        """
        key = SharePartitionKey(group_id, topic_id, partition)
        while any(write.epochs[1] >= leader_epoch for write in self._writes.get(key, ())):
            await self._writes[key][-1].answer
        question = share_state.ReadShareGroupStatePartitionData(
            partition=partition, leader_epoch=leader_epoch
        )
        state: ShareState = await self._ask(READ, key, question)
        return state

    async def write(
        self,
        group_id: str,
        topic_id: Uuid,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> None:
        """Keep what has changed, after all that was to be kept before."""
        key = SharePartitionKey(group_id, topic_id, partition)
        write = _Write(
            (state_epoch, leader_epoch),
            start_offset,
            delivery_complete_count,
            tuple(batches),
        )
        waiting = self._writes.get(key)
        if waiting is None:
            self._writes[key] = [write]
            await self._write_all(key)
        else:
            last = waiting[-1]
            if len(waiting) > 1 and last.epochs == write.epochs:
                _join(last, write)
                write = last
            else:
                waiting.append(write)
        outcome = await write.answer
        if isinstance(outcome, Failure):
            raise ShareStateError(*outcome)

    async def initialize(
        self, group_id: str, topic_id: Uuid, partition: int, state_epoch: int, start_offset: int
    ) -> None:
        """Initialize or reinitialize a share-partition."""
        question = share_state.InitializeShareGroupStatePartitionData(
            partition=partition, state_epoch=state_epoch, start_offset=start_offset
        )
        await self._ask(INITIALIZE, SharePartitionKey(group_id, topic_id, partition), question)

    async def delete(self, group_id: str, topic_id: Uuid, partition: int) -> None:
        """Keep nothing any more."""
        question = share_state.DeleteShareGroupStatePartitionData(partition=partition)
        await self._ask(DELETE, SharePartitionKey(group_id, topic_id, partition), question)

    async def read_summary(
        self, group_id: str, topic_id: Uuid, partition: int, leader_epoch: int = -1
    ) -> ShareSummary:
        """The stored state without the batches."""
        key = SharePartitionKey(group_id, topic_id, partition)
        question = share_state.ReadShareGroupStateSummaryPartitionData(
            partition=partition, leader_epoch=leader_epoch
        )
        summary: ShareSummary = await self._ask(SUMMARY, key, question)
        return summary

    async def close(self) -> None:
        """Ask nobody any more; who waits gets COORDINATOR_NOT_AVAILABLE."""
        self._is_closed = True
        for over in list(self._pauses):
            over.settle(None)
        if self._creating is not None:
            self._creating.cancel()
            await asyncio.wait([self._creating])
        self._others.close()
        await self._queue.close()
        while self._writers:
            await asyncio.wait(list(self._writers))

    # Writes in order

    async def _write_all(self, key: SharePartitionKey) -> None:
        """Carry out the first write; a separate task sends what arrived in between."""
        waiting = self._writes[key]
        write = waiting[0]
        question = share_state.WriteShareGroupStatePartitionData(
            partition=key.partition,
            state_epoch=write.epochs[0],
            leader_epoch=write.epochs[1],
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=[batch.encoded() for batch in write.batches],
        )
        outcome: Any = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The write was given up.")
        try:
            outcome = await self._ask_again(WRITE, key, question)
        finally:
            waiting.pop(0)
            write.answer.settle(outcome)
            if waiting:
                writer = asyncio.ensure_future(self._write_all(key))
                self._writers[writer] = None
                writer.add_done_callback(lambda done: self._writers.pop(done, None))
            else:
                del self._writes[key]

    # Asking

    async def _ask(
        self, operation: Operation[Message], key: SharePartitionKey, question: Any
    ) -> Any:
        outcome = await self._ask_again(operation, key, question)
        if isinstance(outcome, Failure):
            raise ShareStateError(*outcome)
        return outcome

    async def _ask_again(
        self, operation: Operation[Message], key: SharePartitionKey, question: Any
    ) -> Any:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            outcome = await self._ask_once(operation, key, question)
            if not isinstance(outcome, Failure) or outcome.error not in RETRIABLE:
                return outcome
            if attempt == ATTEMPTS_MAX or self._is_closed:
                break
            await self._pause(self._backoff.after(attempt - 1))
        telemetry.info("cannot %s the state of %s: %s", operation.name, key, outcome.message)
        return outcome

    async def _pause(self, duration_ms: float) -> None:
        """Wait, but not for longer than there is something to wait for."""
        over: Promise[None] = Promise()
        self._pauses[over] = None
        timer = self._clock.call_later(duration_ms, lambda: over.settle(None))
        try:
            await over
        finally:
            timer.cancel()
            del self._pauses[over]

    async def _ask_once(
        self, operation: Operation[Message], key: SharePartitionKey, question: Any
    ) -> Any:
        if self._is_closed:
            return Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The node is shutting down.")
        leader = self._leader(key)
        if leader is None:
            await self._have_topic_created()
            leader = self._leader(key)
        if leader == self._node_id:
            outcome = operation.ask(self._coordinator, key, question)
            return await outcome if isinstance(outcome, Promise) else outcome
        queued = _Queued(key.topic_id, question, Promise())
        if (
            leader is None
            or not self._others.reaches(leader)
            or not self._queue.put((leader, operation, key.group_id), queued)
        ):
            return Failure(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                ErrorCode.COORDINATOR_NOT_AVAILABLE.message,
            )
        return await queued.answer

    async def _have_topic_created(self) -> None:
        """Wait for the one creation that is under way; begin it if none exists."""
        if self._creating is None or self._creating.done():
            self._creating = asyncio.ensure_future(self._create_topic())
        creating = self._creating
        await asyncio.wait([creating])
        if not creating.cancelled():
            creating.result()

    def _leader(self, key: SharePartitionKey) -> int | None:
        """The coordinator of the key; -1 if there is no leader, None if there is no topic."""
        partition = self._coordinator.partition_for(key.coordinator_key)
        placed = self._image().topics.partition(SHARE_GROUP_STATE, partition)
        return None if placed is None else placed.leader


# Other nodes


def _request(lane: _Lane, asked: list[_Queued]) -> Message:
    _, operation, group_id = lane
    return request_for(
        operation, group_id, [(queued.topic_id, queued.question) for queued in asked]
    )


def _answered(lane: _Lane, asked: Iterable[_Queued], response: Any) -> None:
    outcomes = outcomes_of(lane[1], response)
    left_out = Failure(ErrorCode.UNKNOWN_SERVER_ERROR, "The answer leaves the partition out.")
    for queued in asked:
        place = queued.topic_id, queued.question.partition
        queued.answer.settle(outcomes.get(place, left_out))


def _failed(lane: _Lane, asked: list[_Queued], error: Exception) -> None:
    telemetry.info("share coordinator %d does not answer: %s", lane[0], error)
    for queued in asked:
        queued.answer.settle(Failure(ErrorCode.NETWORK_EXCEPTION, str(error)))


# Writes in order


def _join(last: _Write, write: _Write) -> None:
    """Add a write to the one before it, which has not left yet."""
    if write.start_offset != UNINITIALIZED_OFFSET:
        last.start_offset = write.start_offset
    last.delivery_complete_count = write.delivery_complete_count
    last.batches = combine(
        combine((), last.batches, UNINITIALIZED_OFFSET), write.batches, last.start_offset
    )
