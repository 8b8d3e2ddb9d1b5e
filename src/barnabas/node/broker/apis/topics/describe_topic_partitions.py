"""DescribeTopicPartitions (key 75), version 0: KIP-966.

Pages through partitions in the order of topic names: the cursor of a response says where the
next one begins. No cursor names a topic that the client may not describe, nor do such topics count
for the limit.
"""

from barnabas.base.internal_topics import INTERNAL_TOPICS
from barnabas.node.broker.apis.topics.metadata import describe_partition
from barnabas.node.broker.authorization import may
from barnabas.node.broker.authorized_operations import authorized_operations
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.image import PartitionImage, TopicImage
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
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
        response.topics.append(_describe(services, context, topic, start, end))
        remaining -= max(0, end - start)
        if end < len(topic.partitions):
            response.next_cursor = _cursor(name, end)
            break
    response.topics += hidden
    return response


def _describe(
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


def _cursor(name: str, index: int) -> DescribeTopicPartitionsResponseCursor:
    return DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=index)


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
