"""ShareAcknowledge (key 79), versions 1-2: KIP-932, 1222.

A member accepts, releases, rejects or (v2) renews records that it holds. Answered when what has
changed is written down. The last request of a session gives back all that the member holds.
It must be allowed to read the group, and each topic.

The checks of the sender and `acknowledge` serve ShareFetch too.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from barnabas.base.ids import Uuid
from barnabas.node.broker.authorization import allowed, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.current_leader import HINTED, addresses, current_leader
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import Promise
from barnabas.node.metadata.image import NO_LEADER
from barnabas.node.share.core.states import AckBatch, AcknowledgeType, Refused
from barnabas.node.share.sessions import MEMBER_ID_LENGTH_MAX, PartitionId, SessionKey
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import SHARE_VERSION
from barnabas.protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareAcknowledgePartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from barnabas.protocol.records.batch import NO_LEADER_EPOCH
from barnabas.protocol.well_known import FINAL_EPOCH, INITIAL_EPOCH

RENEWALS_FROM = 2


class AckOutcome(NamedTuple):
    """The outcome of a partition's acknowledgements."""

    error: ErrorCode
    message: str | None = None


class _Batch(Protocol):
    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class _Partition(Protocol):
    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[_Batch]: ...


class _Topic(Protocol):
    topic_id: Uuid

    @property
    def partitions(self) -> Sequence[_Partition]: ...


async def handle_share_acknowledge(
    services: BrokerServices, context: RequestContext, request: ShareAcknowledgeRequest
) -> ShareAcknowledgeResponse:
    """Take the acknowledgements, and answer when they are written."""
    error = request_error(services, context, request.group_id, request.member_id)
    if error:
        return ShareAcknowledgeResponse(error_code=error)
    assert request.group_id is not None
    assert request.member_id is not None
    key = SessionKey(request.group_id, request.member_id)
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        return ShareAcknowledgeResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = services.share_partitions.sessions.resume(key, epoch)
    if isinstance(session, ErrorCode):
        return ShareAcknowledgeResponse(error_code=session)
    outcomes = acknowledge(
        services,
        *key,
        request.topics,
        version=context.api_version,
        is_renewal=request.is_renew_ack,
        readable=readable_topics(services, context, request.topics),
    )
    known: dict[PartitionId, AckOutcome] = {}
    for key_of, found in outcomes.items():
        known[key_of] = found if isinstance(found, AckOutcome) else AckOutcome(await found)
    count_acknowledgements(services, known)
    topics: dict[Uuid, list[ShareAcknowledgePartitionData]] = {}
    leaders: list[int] = []
    for (topic_id, index), outcome in known.items():
        leader, leader_epoch = NO_LEADER, NO_LEADER_EPOCH  # Kafka says 0, 0: see ShareAnswer
        if outcome.error in HINTED:
            leader, leader_epoch = current_leader(services, topic_id, index)
            leaders.append(leader)
        entry = ShareAcknowledgePartitionData(
            partition_index=index,
            error_code=outcome.error,
            error_message=outcome.message,
            current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=leader_epoch),
        )
        topics.setdefault(topic_id, []).append(entry)
    if epoch == FINAL_EPOCH:
        services.share_partitions.release_session(key)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=services.share_partitions.settings.of(
            key.group_id
        ).limits.lock_duration_ms,
        responses=[
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=entries)
            for topic_id, entries in topics.items()
        ],
        node_endpoints=[
            NodeEndpoint(
                node_id=address.node_id, host=address.host, port=address.port, rack=address.rack
            )
            for address in addresses(services, leaders, context.listener_name)
        ],
    )


def request_error(
    services: BrokerServices,
    context: RequestContext,
    group_id: str | None,
    member_id: str | None,
) -> ErrorCode:
    """Why the sender is not served at all."""
    if services.image.features.get(SHARE_VERSION, 0) <= 0:
        return ErrorCode.UNSUPPORTED_VERSION
    if group_id is None or not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        return ErrorCode.INVALID_REQUEST
    if not may(services, context, Operation.READ, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def readable_topics(
    services: BrokerServices,
    context: RequestContext,
    topics: Iterable[_Topic],
    names: Iterable[str | None] = (),
) -> Container[str]:
    """The names of those topics that the sender may read; None is not asked for."""
    known = services.image.topics.by_id
    asked = {name for name in names if name is not None}
    asked |= {known[topic.topic_id].name for topic in topics if topic.topic_id in known}
    return allowed(services, context, Operation.READ, ResourceType.TOPIC, asked)


def acknowledge(
    services: BrokerServices,
    group_id: str,
    member_id: str,
    topics: Iterable[_Topic],
    *,
    version: int,
    is_renewal: bool,
    readable: Container[str],
) -> dict[PartitionId, AckOutcome | Promise[ErrorCode]]:
    """Take the acknowledgements of a request, partition by partition, of `readable` topics."""
    outcomes: dict[PartitionId, AckOutcome | Promise[ErrorCode]] = {}
    without: list[PartitionId] = []
    any_taken = False
    known = services.image.topics.by_id
    type_max = AcknowledgeType.RENEW if version >= RENEWALS_FROM else AcknowledgeType.REJECT
    for topic in topics:
        image = known.get(topic.topic_id)
        for partition in topic.partitions:
            key = (topic.topic_id, partition.partition_index)
            batches = partition.acknowledgement_batches
            if image is None:
                outcomes[key] = AckOutcome(ErrorCode.UNKNOWN_TOPIC_ID)
            elif not _are_valid(batches, type_max, is_renewal=is_renewal):
                outcomes[key] = AckOutcome(ErrorCode.INVALID_REQUEST)
            elif image.name not in readable:
                outcomes[key] = AckOutcome(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif key[1] not in image.partitions:
                outcomes[key] = AckOutcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not batches:
                without.append(key)
            else:
                any_taken = True
                outcomes[key] = _acknowledge_one(services, group_id, member_id, key, batches)
    if any_taken:
        outcomes.update((key, AckOutcome(ErrorCode.NONE)) for key in without)
    return outcomes


def count_acknowledgements(
    services: BrokerServices, outcomes: Mapping[PartitionId, AckOutcome]
) -> None:
    """Count what became of a request's acknowledgements."""
    known = services.image.topics.by_id
    told = [
        (known[topic_id].name, outcome.error)
        for (topic_id, _), outcome in outcomes.items()
        if topic_id in known
    ]
    services.replicas.context.traffic.shared(told, fetched=False)


def _acknowledge_one(
    services: BrokerServices,
    group_id: str,
    member_id: str,
    key: PartitionId,
    batches: Sequence[_Batch],
) -> AckOutcome | Promise[ErrorCode]:
    hosted = services.share_partitions.find(group_id, *key)
    if hosted is None:
        return AckOutcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    outcome = hosted.acknowledge(
        member_id,
        [
            AckBatch(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in batches
        ],
    )
    return AckOutcome(outcome.error, outcome.reason) if isinstance(outcome, Refused) else outcome


def _are_valid(batches: Sequence[_Batch], type_max: int, *, is_renewal: bool) -> bool:
    """Return whether ranges ascend and have a type for all of their records, or one for each."""
    previous_last = -1
    for batch in batches:
        types = batch.acknowledge_types
        if (
            batch.first_offset > batch.last_offset
            or batch.first_offset < previous_last
            or not types
            or (len(types) > 1 and batch.last_offset - batch.first_offset != len(types) - 1)
            or min(types) < 0
            or max(types) > type_max
            or (not is_renewal and AcknowledgeType.RENEW in types)
        ):
            return False
        previous_last = batch.last_offset
    return True
