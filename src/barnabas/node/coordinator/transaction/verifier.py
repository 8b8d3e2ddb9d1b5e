"""Transaction verification: a leader asks the coordinator whether its partition takes part
(KIP-890).

The transaction's coordinator may be this node, and is asked directly then; or another one,
which gets AddPartitionsToTxn with all that is to be asked at the time. With transaction.version 2
asking is adding: the partition becomes part of the transaction if it was not. That must wait
while the transaction before is being completed; the broker waits a little in the producer's place.

The log forgets a `Verification` with the marker of the transaction before, which comes while the
broker waits, or while the question is under way. So no caller holds one: `ask` gets a function
that begins a verification, calls it before each question, and answers with those that still stand.
Kafka too begins a new one for each question (KAFKA-18654), but does not ask again if a marker
arrived during the question.
Source: Kafka's AddPartitionsToTxnManager and ReplicaManager.handleProduceAppend.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition
from barnabas.node.coordinator.transaction.service import TransactionCoordinator
from barnabas.node.log.producers.verification import Verification
from barnabas.node.loop.promise import Promise, then
from barnabas.node.metadata.broker_peers import BrokerPeers
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.net.client import UnsupportedByPeerError
from barnabas.node.net.question_queue import QuestionQueue
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.records.control import TRANSACTION_VERSION_2
from barnabas.protocol.well_known import TRANSACTION_STATE

TRANSACTIONS_PER_REQUEST_MAX: Final = 1000

telemetry = logging.getLogger(__name__)

Errors = dict[TopicPartition, ErrorCode]
Verifications = dict[TopicPartition, Verification]
Begin = Callable[[], Verifications]
"""Begins to verify, or goes on; partitions in which the transaction is under way are missing."""


class Verdict(NamedTuple):
    """A coordinator's answer. It holds until other work of the node has its turn."""

    errors: Errors
    """Why a partition refuses records."""
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
    """True if partitions are to be added that are not part of it."""
    answer: Promise[Errors]


class TransactionVerifier:
    """Asks coordinators. Errors come by partition; those without are part of the transaction."""

    def __init__(
        self,
        clock: Clock,
        peers: BrokerPeers,
        image: Callable[[], MetadataImage],
        coordinator: TransactionCoordinator,
    ) -> None:
        self._node_id = peers.node_id
        self._clock = clock
        self._image = image
        self._coordinator = coordinator
        self._others = peers.channel("add-partitions-to-txn")
        self._queue: QuestionQueue[int, Question] = QuestionQueue(
            self._others.ask,
            _request,
            _answered,
            _failed,
            key=lambda question: question.transactional_id,
            batch_max=TRANSACTIONS_PER_REQUEST_MAX,
        )

    def ask(
        self,
        transactional_id: str,
        producer: tuple[int, int],
        begin: Begin,
        *,
        adds: bool,
        knows_abortable: bool,
    ) -> Verdict | Awaitable[Verdict]:
        """Check whether partitions are part of a transaction, with errors that the producer's
        version knows.

        Answers at once if there is nothing to ask, or if the coordinator is local and need not
        wait.
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
        self._others.close()
        await self._queue.close()

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
        question = Question(transactional_id, *producer, partitions, adds, Promise())
        if not self._others.reaches(leader) or not self._queue.put(leader, question):
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
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


def _answered(
    _node_id: int, questions: Iterable[Question], response: AddPartitionsToTxnResponse
) -> None:
    if response.error_code:
        error = ErrorCode.of(response.error_code)
        if error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            error = ErrorCode.INVALID_TXN_STATE  # nothing that a client could do about
        _answer_all(questions, error)
        return
    results = {result.transactional_id: result for result in response.results_by_transaction}
    for question in questions:
        result = results.get(question.transactional_id)
        if result is None:
            _answer_all([question], ErrorCode.NETWORK_EXCEPTION)
            continue
        question.answer.settle(
            {
                TopicPartition(topic.name, partition.partition_index): ErrorCode.of(
                    partition.partition_error_code
                )
                for topic in result.topic_results
                for partition in topic.results_by_partition
            }
        )


def _failed(node_id: int, questions: list[Question], failure: Exception) -> None:
    if isinstance(failure, UnsupportedByPeerError):
        _answer_all(questions, ErrorCode.NONE)  # it cannot verify: as brokers before KIP-890 did
        return
    telemetry.info("coordinator %d cannot verify transactions: %s", node_id, failure)
    _answer_all(questions, ErrorCode.NETWORK_EXCEPTION)


def _answer_all(questions: Iterable[Question], error: ErrorCode) -> None:
    for question in questions:
        question.answer.settle(dict.fromkeys(question.partitions, error))


def _must_wait(errors: Errors) -> bool:
    """Return whether the transaction before is not complete yet."""
    return ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()


def _still_stand(asked: Verifications, errors: Errors, now: Verifications) -> bool:
    """Return whether the producer's state is unchanged in all partitions it may write to."""
    return all(errors.get(each) or now.get(each) is asked[each] for each in asked)


def _as_known(errors: Errors, knows_abortable: bool) -> Errors:
    """Only what is wrong, as the producer's version knows it."""
    known = {}
    for partition, error in errors.items():
        if error is ErrorCode.PRODUCER_FENCED:
            known[partition] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
            known[partition] = ErrorCode.INVALID_TXN_STATE
        elif error:
            known[partition] = error
    return known


def _request(_node_id: int, questions: list[Question]) -> AddPartitionsToTxnRequest:
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
