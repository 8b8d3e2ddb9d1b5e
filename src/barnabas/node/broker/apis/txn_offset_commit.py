"""TxnOffsetCommit (key 28), versions 0-5: KIP-98, 447, 890.

Stores offsets of a group that count when the producer's transaction is committed. The coordinator
of the group first has the transaction's coordinator say that the partition of its offsets is part
of the transaction; from version 5 on this makes it so."""

from collections.abc import Awaitable, Callable

from barnabas.base.ids import TopicPartition
from barnabas.node.broker.apis.group_requests import merge_topics
from barnabas.node.broker.apis.transactions import offsets_forbidden
from barnabas.node.broker.authorization import allowed
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.coordinator.group.offset_requests import txn_commit_error
from barnabas.node.coordinator.partition_writer import coordinator_error
from barnabas.node.coordinator.transaction.verifier import Verdict, Verifications
from barnabas.node.log.producers.verification import NOT_ASKED, Verification
from barnabas.node.loop.promise import Promise, then
from barnabas.node.replication.partition import Partition
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.protocol.well_known import CONSUMER_OFFSETS

LOADING_FROM_VERSION = 2
ABORTABLE_FROM_VERSION = 4
VERSION_2_FROM_VERSION = 5

Verified = Verification | ErrorCode | None


def handle_txn_offset_commit(
    services: BrokerServices, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]:
    """Store the offsets of a group within a transaction."""
    error = offsets_forbidden(services, context, request)
    if error:
        return txn_commit_error(request, error)
    names = [topic.name for topic in request.topics]
    readable = allowed(services, context, Operation.READ, ResourceType.TOPIC, names)
    refused = _take_unknown(services, request, readable)
    if not request.topics:
        return TxnOffsetCommitResponse(topics=refused)

    def finish(response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
        return _finish(context, response, refused)

    if not request.group_id:
        return finish(txn_commit_error(request, ErrorCode.INVALID_GROUP_ID))
    verified = _verify(services, context, request)
    if isinstance(verified, Awaitable):
        return _commit_later(services, request, verified, finish)
    return then(_commit(services, request, verified), finish)


def _finish(
    context: RequestContext,
    response: TxnOffsetCommitResponse,
    refused: list[TxnOffsetCommitResponseTopic],
) -> TxnOffsetCommitResponse:
    if context.api_version < LOADING_FROM_VERSION:
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    partition.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    merge_topics(response.topics, refused)
    return response


async def _commit_later(
    services: BrokerServices,
    request: TxnOffsetCommitRequest,
    verified: Awaitable[Verified],
    finish: Callable[[TxnOffsetCommitResponse], TxnOffsetCommitResponse],
) -> TxnOffsetCommitResponse:
    response = _commit(services, request, await verified)
    return finish(await response if isinstance(response, Promise) else response)


def _commit(
    services: BrokerServices, request: TxnOffsetCommitRequest, verified: Verified
) -> TxnOffsetCommitResponse | Promise[TxnOffsetCommitResponse]:
    if isinstance(verified, ErrorCode):
        return txn_commit_error(request, coordinator_error(verified))
    return services.groups.txn_offset_commit(request, verified)


def _verify(
    services: BrokerServices, context: RequestContext, request: TxnOffsetCommitRequest
) -> Verified | Awaitable[Verified]:
    """The leave to begin the transaction here; None where it is under way already."""
    index = services.groups.partition_for(request.group_id)
    replica = services.replicas.find(CONSUMER_OFFSETS, index)
    if not isinstance(replica, Partition):
        return replica
    if not replica.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not services.verifies_transactions:
        return NOT_ASKED
    partition = TopicPartition(CONSUMER_OFFSETS, index)
    has_version_2 = context.api_version >= VERSION_2_FROM_VERSION

    def begin() -> Verifications:
        verification = replica.log.producers.verify(
            request.producer_id,
            request.producer_epoch,
            0,
            services.clock.now_ms(),
            is_version_2=has_version_2,
        )
        return {} if verification is None else {partition: verification}

    verdict = services.verifier.ask(
        request.transactional_id,
        (request.producer_id, request.producer_epoch),
        begin,
        adds=has_version_2,
        knows_abortable=context.api_version >= ABORTABLE_FROM_VERSION,
    )
    if isinstance(verdict, Verdict):
        return _leave(verdict, partition)
    return _leave_later(verdict, partition)


def _leave(verdict: Verdict, partition: TopicPartition) -> Verified:
    return verdict.errors.get(partition) or verdict.verifications.get(partition)


async def _leave_later(verdict: Awaitable[Verdict], partition: TopicPartition) -> Verified:
    return _leave(await verdict, partition)


def _take_unknown(
    services: BrokerServices, request: TxnOffsetCommitRequest, readable: set[str]
) -> list[TxnOffsetCommitResponseTopic]:
    """Leave in the request what exists and is `readable`, and answer for the rest."""
    known: list[TxnOffsetCommitRequestTopic] = []
    refused = []
    for topic in request.topics:
        is_readable = topic.name in readable
        image = services.image.topics.by_name.get(topic.name) if is_readable else None
        partitions = {} if image is None else image.partitions
        missing = [
            p.partition_index for p in topic.partitions if p.partition_index not in partitions
        ]
        if missing:
            refused.append(
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                            if is_readable
                            else ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                        )
                        for index in missing
                    ],
                )
            )
            topic.partitions = [p for p in topic.partitions if p.partition_index in partitions]
        if topic.partitions:
            known.append(topic)
    request.topics = known
    return refused
