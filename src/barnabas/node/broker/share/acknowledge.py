"""ShareAcknowledge (key 79), versions 1-2: KIP-932, 1222.

A member accepts, releases, rejects or (v2) renews records that it holds. Answered when what has
changed is written down. The last request of a session gives back all that the member holds.
It must be allowed to read the group, and each topic.
"""

from barnabas.base.ids import Uuid
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.current_leader import HINTED, addresses, current_leader
from barnabas.node.broker.services import BrokerServices
from barnabas.node.broker.share.requests import (
    AckOutcome,
    acknowledge,
    count_acknowledgements,
    readable_topics,
    request_error,
)
from barnabas.node.metadata.image import NO_LEADER
from barnabas.node.share.sessions import PartitionId, SessionKey
from barnabas.protocol.errors import ErrorCode
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
