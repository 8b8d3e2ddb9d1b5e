"""Produce requests with a transactional id (KIP-98, KIP-890).

Before the first batch of a transaction in a partition, the transaction's coordinator must say
that the partition is part of it; from version 12 on (transaction.version 2) it makes it so. While
it is asked the connection's later requests with a transactional id wait, so that a producer's
batches are appended in the order in which they came. When a transaction is under way in all
partitions of a request, nobody is asked, and the request goes the way of any other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from barnabas.base.network import Part
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.codec import TOPIC_ID_FROM, ParsedProduce
from barnabas.node.broker.produce.outcome import (
    NONE_CHECKED,
    UNDER_WAY,
    Outcome,
    SchemaVerdicts,
    find_partition,
    is_transactional,
)
from barnabas.node.broker.produce.repeated import learn
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.transaction.verifier import NOT_NEEDED, Verdict, Verifications
from barnabas.node.log.producers.verification import NOT_ASKED, AppendTerms
from barnabas.node.log.validator import Rejection
from barnabas.node.net.connection import Reply
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES, CorruptBatchError, read_header

ABORTABLE_FROM_VERSION: Final = 11
VERSION_2_FROM_VERSION: Final = 12
TRUSTED: Final = AppendTerms(NOT_ASKED)
RETRIED_BY_OLD_CLIENTS: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Passing errors of the coordinator, which producers get as NOT_ENOUGH_REPLICAS."""

telemetry = logging.getLogger(__name__)


class Batch(NamedTuple):
    """A transactional batch that shall be appended."""

    partition: Partition
    producer_id: int
    producer_epoch: int
    sequence: int


class TransactionalProduce:
    """One such request, from its arrival to its answer."""

    __slots__ = (
        "_context",
        "_has_version_2",
        "_reply",
        "_request",
        "_services",
        "_verdicts",
        "_view",
    )

    def __init__(
        self,
        services: BrokerServices,
        context: RequestContext,
        request: ParsedProduce,
        view: memoryview,
        verdicts: SchemaVerdicts = NONE_CHECKED,
        reply: Reply | None = None,
    ) -> None:
        """`view` is the whole frame, in which the request says where records lie.

        `reply` is to be completed in the end, where the client waits for it already.
        """
        self._services = services
        self._context = context
        self._request = request
        self._view = view
        self._has_version_2 = context.api_version >= VERSION_2_FROM_VERSION
        self._verdicts = verdicts
        self._reply = reply

    def start(self) -> Sequence[Part] | Reply:
        """Append at once if nobody need be asked, and no request before still waits."""
        state = client_state(self._context.connection)
        before = state.transactional_produce
        if before is None or before.done():
            before = None
            verdict = self._verify()
            if not isinstance(verdict, Awaitable):
                return self._append(verdict)
            work = self._append_when_told(verdict)
        else:
            work = self._append_after(before)
        self._reply = self._reply or Reply()
        state.transactional_produce = self._services.start(self._answer(work))
        return self._reply

    async def _answer(self, work: Coroutine[Any, Any, Sequence[Part] | Reply]) -> None:
        assert self._reply is not None
        try:
            parts = await work
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and the node serves on
            telemetry.exception("a transactional produce request failed")
            self._reply.fail()
            return
        if not isinstance(parts, Reply):
            self._reply.complete(parts)

    async def _append_after(self, before: "asyncio.Future[None]") -> Sequence[Part] | Reply:
        trace = self._context.trace
        span = None if trace is None else trace.begin("wait for turn")
        await asyncio.wait([before])
        if span is not None:
            span.end()
        verdict = self._verify()
        if isinstance(verdict, Awaitable):
            return await self._append_when_told(verdict)
        return self._append(verdict)

    async def _append_when_told(self, verdict: Awaitable[Verdict]) -> Sequence[Part] | Reply:
        trace = self._context.trace
        if trace is None:
            return self._append(await verdict)
        transactional_id = self._request.transactional_id or ""
        span = trace.begin("verify", **{"barnabas.transactional_id": transactional_id})
        told = await verdict
        span.end(next((error.name for error in told.errors.values() if error), None))
        return self._append(told)

    def _verify(self) -> Verdict | ErrorCode | Awaitable[Verdict]:
        """The coordinator's answer, at once or later, or the reason why the request fails."""
        batches = self._batches()
        producers = {(batch.producer_id, batch.producer_epoch) for batch in batches}
        if len(producers) > 1:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if not producers or not (self._has_version_2 or self._services.verifies_transactions):
            return NOT_NEEDED
        assert self._request.transactional_id is not None
        return self._services.verifier.ask(
            self._request.transactional_id,
            producers.pop(),
            partial(self._begin, batches),
            adds=self._has_version_2,
            knows_abortable=self._context.api_version >= ABORTABLE_FROM_VERSION,
        )

    def _begin(self, batches: list[Batch]) -> Verifications:
        """Note in the logs that the coordinator is asked; nothing where that need not be."""
        now_ms = self._services.clock.now_ms()
        verifications = {}
        for batch in batches:
            verification = batch.partition.log.producers.verify(
                batch.producer_id,
                batch.producer_epoch,
                batch.sequence,
                now_ms,
                is_version_2=self._has_version_2,
            )
            if verification is not None:
                verifications[batch.partition.topic_partition] = verification
        return verifications

    def _batches(self) -> list[Batch]:
        by_id = self._context.api_version >= TOPIC_ID_FROM
        batches = []
        for topic, partitions in self._request.topics:
            for entry in partitions:
                partition = find_partition(
                    self._services, self._context, self._request, topic, entry, by_id
                )
                records = self._view[entry.start : entry.end]
                if (
                    not isinstance(partition, Partition)
                    or len(records) < HEADER_SIZE_BYTES
                    or not is_transactional(records)
                    or self._verdicts.get((topic, entry.partition)) is not None
                    or isinstance(self._request.checks.get((topic, entry.partition)), Rejection)
                ):
                    continue
                try:
                    header = read_header(records)
                except CorruptBatchError:
                    continue  # the append will say what is wrong with it
                if header.producer_id >= 0:
                    batches.append(
                        Batch(
                            partition,
                            header.producer_id,
                            header.producer_epoch,
                            header.base_sequence,
                        )
                    )
        return batches

    def _append(self, verdict: Verdict | ErrorCode) -> Sequence[Part] | Reply:
        """Append what may be appended, and answer."""
        if not isinstance(verdict, Verdict):
            return self._refuse_all(verdict)
        services, request = self._services, self._request
        by_id = self._context.api_version >= TOPIC_ID_FROM
        verifies = self._has_version_2 or services.verifies_transactions
        otherwise = UNDER_WAY if verifies else TRUSTED
        now_ms = services.clock.now_ms()
        outcome = Outcome(
            services, self._context, request.acks, self._reply, self._verdicts, request.checks
        )
        partition: Partition | ErrorCode = ErrorCode.NONE
        for topic, partitions in request.topics:
            outcome.begin(topic)
            for entry in partitions:
                partition = find_partition(services, self._context, request, topic, entry, by_id)
                if not isinstance(partition, Partition):
                    outcome.refuse(entry.partition, partition)
                    continue
                topic_partition = partition.topic_partition
                error = verdict.errors.get(topic_partition)
                if error:
                    outcome.refuse(entry.partition, *self._as_client_knows(error))
                    continue
                verification = verdict.verifications.get(topic_partition)
                outcome.append(
                    partition,
                    entry.partition,
                    self._view[entry.start : entry.end],
                    now_ms,
                    otherwise if verification is None else AppendTerms(verification),
                )
        if isinstance(partition, Partition) and not outcome.has_errors:
            frame = self._view.obj
            assert isinstance(frame, bytearray)
            learn(services, self._context, frame, request, partition)
        return outcome.finish(request.timeout_ms)

    def _as_client_knows(self, error: ErrorCode) -> tuple[ErrorCode, str | None]:
        if error is ErrorCode.INVALID_TXN_STATE:
            return error, "the partition was not added to the transaction"
        if error in RETRIED_BY_OLD_CLIENTS or (
            error is ErrorCode.CONCURRENT_TRANSACTIONS and not self._has_version_2
        ):
            return (
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"the transaction's coordinator did not verify the partition: {error.name}",
            )
        return error, None

    def _refuse_all(self, error: ErrorCode) -> Sequence[Part] | Reply:
        outcome = Outcome(self._services, self._context, self._request.acks, self._reply)
        for topic, partitions in self._request.topics:
            outcome.begin(topic)
            for entry in partitions:
                outcome.refuse(entry.partition, error)
        return outcome.finish(self._request.timeout_ms)
