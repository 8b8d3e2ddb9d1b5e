"""FindCoordinator (key 10), versions 0-6: KIP-98, 699, 890, 932.

Groups and transactional ids are found; their topic is created when the first client asks.
Share-group state is refused as by a broker without a share coordinator.
"""

from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.broker.topic_creation import CONSUMER_OFFSETS, TRANSACTION_STATE, create_topics
from barnabas.coordinator.partition_of import partition_of
from barnabas.metadata.image import TopicImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP = 0
TRANSACTION = 1
TOPICS = {GROUP: CONSUMER_OFFSETS, TRANSACTION: TRANSACTION_STATE}
BATCHED_FROM_VERSION = 4
NO_NODE = -1


async def handle(
    services: BrokerServices, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Name the broker for each key."""
    is_batched = context.api_version >= BATCHED_FROM_VERSION
    keys = request.coordinator_keys if is_batched else [request.key]
    name = TOPICS.get(request.key_type)
    error = ErrorCode.INVALID_REQUEST if name is None else ErrorCode.NONE
    topic = None
    if name is not None and keys:
        topic = await _topic(services, name)
        if topic is None:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    found = [
        _failure(key, error) if topic is None else _locate(services, context, topic, key)
        for key in keys
    ]
    if is_batched:
        return FindCoordinatorResponse(coordinators=found)
    only = found[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


async def _topic(services: BrokerServices, name: str) -> TopicImage | None:
    topic = services.image.topics.by_name.get(name)
    if topic is None:
        await create_topics(services, [name])
        topic = services.image.topics.by_name.get(name)
    return topic


def _locate(
    services: BrokerServices, context: RequestContext, topic: TopicImage, key: str
) -> Coordinator:
    partition = topic.partitions.get(partition_of(key, len(topic.partitions)))
    leader = None if partition is None else services.image.brokers.get(partition.leader)
    endpoint = None if leader is None else leader.listeners.get(context.listener_name)
    if leader is None or leader.fenced or endpoint is None:
        return _failure(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port)


def _failure(key: str, error: ErrorCode) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_NODE,
        host="",
        port=-1,
        error_code=error,
        error_message=error.message,
    )
