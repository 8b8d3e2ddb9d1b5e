"""The cluster and its topics, as clients see them.

Metadata (key 3), versions 0-13: KIP-4, 78, 112, 320, 430, 516, 700, 1102.

Endpoints are those of the listener that the request came in on. A topic that is created on the
way is answered as it then is, so that clients need no second request.

Who may not describe a topic is not told whether there is one of its name, and does not find it
among all topics. Ids are no secret, as in Kafka.

DescribeTopicPartitions (key 75), version 0: KIP-966.

Pages through partitions in the order of topic names: the cursor of a response says where the
next one begins. No cursor names a topic that the client may not describe, nor do such topics count
for the limit.
"""

from collections.abc import Container, Mapping
from operator import attrgetter

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.broker.apis.topics import create_topics
from barnabas.node.broker.authorization import allowed, may
from barnabas.node.broker.authorized_operations import (
    NOT_ASKED,
    authorized_operations,
    cluster_operations,
)
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import asker_of
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.image import NO_LEADER, PartitionImage, TopicImage
from barnabas.node.metadata.topic_names import is_valid_topic_name
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    TopicRequest,
)
from barnabas.protocol.well_known import INTERNAL_TOPICS

TOPIC_ID_LOOKUP_FROM = 12
EACH_NAMED = Each("topics", "topics", attrgetter("name", "topic_id"))


async def handle_metadata(
    services: BrokerServices, context: RequestContext, request: MetadataRequest
) -> MetadataResponse:
    """Describe brokers and topics, creating missing ones where that is allowed."""
    topics = await _topics(services, context, request)
    image = services.image
    brokers = [
        MetadataResponseBroker(
            node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
        )
        for broker in image.brokers.values()
        if services.recently_fenced.is_named(broker)
        and (endpoint := broker.listeners.get(context.listener_name)) is not None
    ]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is None or topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                continue
            topic.topic_authorized_operations = authorized_operations(
                services, context, ResourceType.TOPIC, topic.name
            )
    live = [broker.node_id for broker in brokers if not image.brokers[broker.node_id].fenced]
    return MetadataResponse(
        brokers=brokers,
        cluster_id=services.cluster_id,
        controller_id=services.random.choice(live) if live else -1,
        topics=topics,
        cluster_authorized_operations=(
            cluster_operations(services, context)
            if request.include_cluster_authorized_operations
            else NOT_ASKED
        ),
    )


async def _topics(
    services: BrokerServices, context: RequestContext, request: MetadataRequest
) -> list[MetadataResponseTopic]:
    image = services.image
    listener = context.listener_name
    if request.topics is None or (context.api_version == 0 and not request.topics):
        by_name = image.topics.by_name
        visible = _visible(services, context, by_name, logs_denial=False)
        return [
            _describe_topic(services, topic, listener)
            for name, topic in by_name.items()
            if name in visible
        ]
    if context.api_version < TOPIC_ID_LOOKUP_FROM:
        if any(topic.name is None or topic.topic_id != ZERO_UUID for topic in request.topics):
            return [_invalid_request(topic) for topic in request.topics]
    elif ids := {topic.topic_id: None for topic in request.topics if topic.topic_id != ZERO_UUID}:
        return [_look_up_id(services, context, topic_id) for topic_id in ids]
    names = {topic.name or "": None for topic in request.topics}
    visible = _visible(services, context, names)
    errors: dict[str, ErrorCode] = {}
    if request.allow_auto_topic_creation:
        missing = [
            name
            for name in names
            if name in visible
            and name not in image.topics.by_name
            and _is_created_if_missing(services, name)
        ]
        if missing:
            errors = await _create(services, context, missing)
    return [
        _look_up(services, name, listener, errors)
        if name in visible
        else MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)
        for name in names
    ]


def _visible(
    services: BrokerServices,
    context: RequestContext,
    names: Mapping[str, object],
    *,
    logs_denial: bool = True,
) -> Container[str]:
    if not services.authorizer.is_enabled:
        return names
    topic = ResourceType.TOPIC
    return allowed(services, context, Operation.DESCRIBE, topic, names, logs_denial=logs_denial)


async def _create(
    services: BrokerServices, context: RequestContext, missing: list[str]
) -> dict[str, ErrorCode]:
    """Create those of `missing` that the client may create; NONE or the reason for each."""
    create = Operation.CREATE
    creatable: Container[str] = frozenset(missing)
    if not may(services, context, create, ResourceType.CLUSTER, logs_denial=False):
        creatable = allowed(services, context, create, ResourceType.TOPIC, missing)
    errors = {
        name: ErrorCode.TOPIC_AUTHORIZATION_FAILED for name in missing if name not in creatable
    }
    wanted = [name for name in missing if name in creatable and is_valid_topic_name(name)]
    if wanted:
        errors |= await create_topics(services, wanted, asker_of(context))
    return errors


def _invalid_request(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id
    )


def _is_created_if_missing(services: BrokerServices, name: str) -> bool:
    return name in INTERNAL_TOPICS or services.config.get_bool("auto.create.topics.enable")


def _look_up_id(
    services: BrokerServices, context: RequestContext, topic_id: Uuid
) -> MetadataResponseTopic:
    """A topic by its id; names in a request that has ids count for nothing."""
    topic = services.image.topics.by_id.get(topic_id)
    if topic is None:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
        )
    if not may(services, context, Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return MetadataResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=topic_id
        )
    return _describe_topic(services, topic, context.listener_name)


def _look_up(
    services: BrokerServices, name: str, listener_name: str, errors: dict[str, ErrorCode]
) -> MetadataResponseTopic:
    topic = services.image.topics.by_name.get(name)
    if topic is not None:
        return _describe_topic(services, topic, listener_name)
    error = errors.get(name) or (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid_topic_name(name)
        else ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    return MetadataResponseTopic(error_code=error, name=name, is_internal=name in INTERNAL_TOPICS)


def _describe_topic(
    services: BrokerServices, topic: TopicImage, listener_name: str
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            describe_partition(services, index, partition, listener_name)
            for index, partition in topic.partitions.items()
        ],
    )


def describe_partition(
    services: BrokerServices, index: int, partition: PartitionImage, listener_name: str
) -> MetadataResponsePartition:
    """One partition, as seen through one listener."""
    brokers = services.image.brokers
    leader = brokers.get(partition.leader)
    error = ErrorCode.NONE
    leader_id = partition.leader
    if leader is None or leader.fenced:
        error = ErrorCode.LEADER_NOT_AVAILABLE
        leader_id = NO_LEADER
    elif listener_name not in leader.listeners:
        error = ErrorCode.LISTENER_NOT_FOUND
        leader_id = NO_LEADER
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[
            node for node in partition.replicas if node not in brokers or brokers[node].fenced
        ],
    )


def handle_describe_topic_partitions(
    services: BrokerServices, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe the topics asked for, or all, up to the limit of partitions."""
    cursor = request.cursor
    first = "" if cursor is None else cursor.topic_name
    asked = {topic.name for topic in request.topics}
    if cursor is not None and (
        cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)
    ):
        return _refuse(request.topics)
    remaining = max(
        1,
        min(
            request.response_partition_limit,
            services.config.get_int("max.request.partition.size.limit"),
        ),
    )
    topics = services.image.topics.by_name
    response = DescribeTopicPartitionsResponse()
    hidden: list[DescribeTopicPartitionsResponseTopic] = []
    for name in sorted(asked or topics):
        if name < first:
            continue
        if not may(
            services,
            context,
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            name,
            logs_denial=bool(asked),
        ):
            if asked:
                failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                hidden.append(DescribeTopicPartitionsResponseTopic(error_code=failed, name=name))
            continue
        if remaining == 0:
            response.next_cursor = _cursor(name, 0)
            break
        topic = topics.get(name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=code,
                    name=name,
                    topic_authorized_operations=authorized_operations(
                        services, context, ResourceType.TOPIC, name
                    ),
                )
            )
            continue
        start = cursor.partition_index if cursor is not None and name == first else 0
        end = min(len(topic.partitions), start + remaining)
        response.topics.append(_describe_part(services, context, topic, start, end))
        remaining -= max(0, end - start)
        if end < len(topic.partitions):
            response.next_cursor = _cursor(name, end)
            break
    response.topics += hidden
    return response


def _describe_part(
    services: BrokerServices, context: RequestContext, topic: TopicImage, start: int, end: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(services, context.listener_name, index, topic.partitions[index])
            for index in range(start, end)
        ],
        topic_authorized_operations=authorized_operations(
            services, context, ResourceType.TOPIC, topic.name
        ),
    )


def _partition(
    services: BrokerServices, listener_name: str, index: int, partition: PartitionImage
) -> DescribeTopicPartitionsResponsePartition:
    seen = describe_partition(services, index, partition, listener_name)
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=seen.leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=seen.replica_nodes,
        isr_nodes=seen.isr_nodes,
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=seen.offline_replicas,
    )


def _cursor(name: str, index: int) -> Cursor:
    return Cursor(topic_name=name, partition_index=index)


def _refuse(topics: list[TopicRequest]) -> DescribeTopicPartitionsResponse:
    """A cursor that the topics do not contain, or that is before every partition."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=topic.name
            )
            for topic in topics
        ]
    )
