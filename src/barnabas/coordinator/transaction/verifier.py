"""How the leader of a partition asks whether it is part of a transaction (KIP-890).

The transaction's coordinator may be this node, and is asked without ado then; or another one,
which gets AddPartitionsToTxn with all that is to be asked at the time. With transaction.version 2
asking is adding: the partition becomes part of the transaction if it was not. That must wait
while the transaction before is being completed; the broker waits a little in the producer's place.

The log forgets a `Verification` with the marker of the transaction before, which comes while the
broker waits, or while the question is under way. So no caller holds one: `ask` gets a function
that begins a verification, calls it before each question, and answers with those that still stand.
Kafka too begins a new one for each question (KAFKA-18654), but does not ask anew where a marker
came during the question.
Source: Kafka's AddPartitionsToTxnManager and ReplicaManager.handleProduceAppend.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.base.network import Network
from barnabas.coordinator.promise import Promise, then
from barnabas.coordinator.transaction.service import TRANSACTION_STATE, TransactionCoordinator
from barnabas.coordinator.transaction.transaction import TRANSACTION_VERSION_2
from barnabas.log.producers.verification import Verification
from barnabas.metadata.image import MetadataImage
from barnabas.net.client import Peer, UnsupportedByPeerError
from barnabas.net.dialing import Dialing
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

TRANSACTIONS_PER_REQUEST_MAX: Final = 1000

telemetry = logging.getLogger(__name__)

Errors = dict[TopicPartition, ErrorCode]
Verifications = dict[TopicPartition, Verification]
Begin = Callable[[], Verifications]
"""Begins to verify, or goes on; partitions in which the transaction is under way are missing."""


class Verdict(NamedTuple):
    """What a coordinator said. It holds until other work of the node has its turn."""

    errors: Errors
    """What keeps records out of a partition."""
    verifications: Verifications
    """Under what records are let in where a transaction begins with them."""


NOT_NEEDED: Final = Verdict({}, {})


@dataclass(slots=True, eq=False)
class Question:
    """One transaction, some partitions, and the answer."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: list[TopicPartition]
    adds: bool
    """Whether partitions are to be added that are not part of it."""
    answer: Promise[Errors]


class TransactionVerifier:
    """Asks coordinators. Errors come by partition; those without are part of the transaction."""

    def __init__(
        self,
        node_id: int,
        listener_name: str,
        clock: Clock,
        network: Network,
        image: Callable[[], MetadataImage],
        coordinator: TransactionCoordinator,
        *,
        request_timeout_ms: int,
        dialing: Dialing,
    ) -> None:
        self._node_id = node_id
        self._listener_name = listener_name
        self._clock = clock
        self._network = network
        self._image = image
        self._coordinator = coordinator
        self._request_timeout_ms = request_timeout_ms
        self._dialing = dialing
        self._queued: dict[int, list[Question]] = {}
        self._tasks: dict[int, asyncio.Future[None]] = {}
        """The one request under way to each node."""
        self._peers: dict[int, Peer] = {}
        self._is_closed = False

    def ask(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        begin: Begin,
        *,
        adds: bool,
        knows_abortable: bool,
    ) -> Verdict | Awaitable[Verdict]:
        """Whether partitions are part of a transaction, in the terms of the producer's version.

        At once where nothing is to be asked, or the coordinator is here and need not wait.
        `producer` is its id and epoch. Older clients do not know TRANSACTION_ABORTABLE.
        """
        verifications = begin()
        if not verifications:
            return NOT_NEEDED
        answer = self._ask_once(transactional_id, producer, list(verifications), adds)
        if isinstance(answer, Promise) or (adds and _must_wait(answer)):
            asked = verifications, answer
            return self._ask_on(asked, transactional_id, producer, begin, adds, knows_abortable)
        return Verdict(_as_known(answer, knows_abortable), verifications)

    async def _ask_on(
        self,
        asked: tuple[Verifications, Errors | Promise[Errors]],
        transactional_id: str,
        producer: tuple[int, int],
        begin: Begin,
        adds: bool,
        knows_abortable: bool,
    ) -> Verdict:
        config = self._coordinator.config
        end_ms = self._clock.monotonic_ms() + config.retry_backoff_max_ms
        verifications, answer = asked
        while True:
            errors = await answer if isinstance(answer, Promise) else answer
            left_ms = end_ms - self._clock.monotonic_ms()
            must_wait = adds and _must_wait(errors)
            if must_wait and left_ms > 0:
                await self._wait(transactional_id, min(config.retry_backoff_ms, left_ms))
            now = begin()
            if not now:
                return NOT_NEEDED
            if not must_wait and _still_stand(verifications, errors, now):
                return Verdict(_as_known(errors, knows_abortable), verifications)
            if left_ms <= 0:
                return Verdict(dict.fromkeys(now, ErrorCode.CONCURRENT_TRANSACTIONS), {})
            verifications = now
            answer = self._ask_once(transactional_id, producer, list(verifications), adds)

    async def close(self) -> None:
        """Ask nobody any more."""
        self._is_closed = True
        for peer in self._peers.values():
            peer.close()
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def _wait(self, transactional_id: str, pause_ms: int) -> None:
        """Until the transaction before may be complete."""
        if self._is_coordinated_here(transactional_id):
            await self._coordinator.completed(transactional_id)
            return
        passed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock.call_later(pause_ms, lambda: None if passed.done() else passed.set_result(None))
        await passed

    def _leader(self, transactional_id: str) -> int:
        partition = self._coordinator.partition_for(transactional_id)
        placed = self._image().topics.partition(TRANSACTION_STATE, partition)
        return -1 if placed is None else placed.leader

    def _is_coordinated_here(self, transactional_id: str) -> bool:
        return self._leader(transactional_id) == self._node_id

    def _ask_once(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: list[TopicPartition],
        adds: bool,
    ) -> Errors | Promise[Errors]:
        leader = self._leader(transactional_id)
        if leader == self._node_id:
            return self._ask_here(transactional_id, producer, partitions, adds)
        if self._is_closed or self._address(leader) is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        question = Question(transactional_id, *producer, partitions, adds, Promise())
        self._queued.setdefault(leader, []).append(question)
        self._start(leader)
        return question.answer

    def _ask_here(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        partitions: list[TopicPartition],
        adds: bool,
    ) -> Errors | Promise[Errors]:
        if not adds:
            return self._coordinator.verify(transactional_id, *producer, partitions)
        added = self._coordinator.add_partitions(
            transactional_id, *producer, partitions, TRANSACTION_VERSION_2
        )
        return then(added, lambda error: dict.fromkeys(partitions, error))

    # Other nodes

    def _address(self, node_id: int) -> tuple[str, int] | None:
        broker = self._image().brokers.get(node_id)
        endpoint = None if broker is None else broker.listeners.get(self._listener_name)
        if broker is None or broker.fenced or endpoint is None:
            return None
        return endpoint.host, endpoint.port

    def _start(self, node_id: int) -> None:
        if node_id in self._tasks or node_id not in self._queued:
            return
        task = asyncio.ensure_future(self._send(node_id))
        self._tasks[node_id] = task

    async def _send(self, node_id: int) -> None:
        """Ask all that is queued, each transactional id once."""
        queued = self._queued.pop(node_id)
        asked: dict[str, Question] = {}
        later = []
        for question in queued:
            if question.transactional_id in asked or len(asked) == TRANSACTIONS_PER_REQUEST_MAX:
                later.append(question)
            else:
                asked[question.transactional_id] = question
        if later:
            self._queued[node_id] = later
        try:
            await self._exchange(node_id, asked)
        finally:
            del self._tasks[node_id]
            self._start(node_id)

    async def _exchange(self, node_id: int, asked: dict[str, Question]) -> None:
        error = ErrorCode.NETWORK_EXCEPTION
        response: AddPartitionsToTxnResponse | None = None
        try:
            address = self._address(node_id)
            if address is None:
                raise ConnectionError(f"node {node_id} is gone")
            response = await self._peer(node_id, address).send(_request(asked.values()))
        except UnsupportedByPeerError:
            error = ErrorCode.NONE  # it cannot verify: go on as brokers before KIP-890 did
        except OSError as failure:
            telemetry.info("coordinator %d does not verify: %s", node_id, failure)
        if response is not None and response.error_code:
            error = ErrorCode.of(response.error_code)
            if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                error = ErrorCode.INVALID_TXN_STATE  # nothing that a client could do about
            response = None
        if response is not None:
            for result in response.results_by_transaction:
                question = asked.get(result.transactional_id)
                if question is not None:
                    question.answer.settle(
                        {
                            TopicPartition(topic.name, partition.partition_index): ErrorCode.of(
                                partition.partition_error_code
                            )
                            for topic in result.topic_results
                            for partition in topic.results_by_partition
                        }
                    )
        for question in asked.values():
            question.answer.settle(dict.fromkeys(question.partitions, error))

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
                client_id=f"broker-{self._node_id}-add-partitions-to-txn",
                request_timeout_ms=self._request_timeout_ms,
                dialing=self._dialing,
            )
        return peer


def _must_wait(errors: Errors) -> bool:
    """Whether the transaction before is not complete yet."""
    return ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()


def _still_stand(asked: Verifications, errors: Errors, now: Verifications) -> bool:
    """Whether nothing has happened to the producer in the partitions that may be written to."""
    return all(errors.get(each) or now.get(each) is asked[each] for each in asked)


def _as_known(errors: Errors, knows_abortable: bool) -> Errors:
    """Only what is wrong, as the producer's version knows it."""
    found = {}
    for partition, error in errors.items():
        if error is ErrorCode.PRODUCER_FENCED:
            found[partition] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
            found[partition] = ErrorCode.INVALID_TXN_STATE
        elif error:
            found[partition] = error
    return found


def _request(questions: Any) -> AddPartitionsToTxnRequest:
    request = AddPartitionsToTxnRequest()
    for question in questions:
        topics: dict[str, list[int]] = {}
        for topic, index in question.partitions:
            topics.setdefault(topic, []).append(index)
        request.transactions.append(
            AddPartitionsToTxnTransaction(
                transactional_id=question.transactional_id,
                producer_id=question.producer_id,
                producer_epoch=question.producer_epoch,
                verify_only=not question.adds,
                topics=[
                    AddPartitionsToTxnTopic(name=name, partitions=indexes)
                    for name, indexes in topics.items()
                ],
            )
        )
    return request
