"""OffsetDelete (key 47), version 0: KIP-496.

Topics and partitions that do not exist are answered here. Offsets of deleted topics are gone
already.
"""

from collections.abc import Awaitable

from barnabas.base.promise import then
from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle_offset_delete(
    services: BrokerServices, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
    """Forget offsets that a group has committed."""
    refused: list[OffsetDeleteResponseTopic] = []
    known: list[OffsetDeleteRequestTopic] = []
    for topic in request.topics:
        image = services.image.topics.by_name.get(topic.name)
        partitions = {} if image is None else image.partitions
        missing = [p for p in topic.partitions if p.partition_index not in partitions]
        present = [p for p in topic.partitions if p.partition_index in partitions]
        if missing:
            refused.append(
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=partition.partition_index,
                            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        )
                        for partition in missing
                    ],
                )
            )
        if present:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=present))

    def finish(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        if response.error_code:
            return response
        by_name = {topic.name: topic for topic in response.topics}
        for topic in refused:
            if topic.name in by_name:
                by_name[topic.name].partitions += topic.partitions
            else:
                response.topics.append(topic)
        return response

    asked = OffsetDeleteRequest(group_id=request.group_id, topics=known)
    return then(services.groups.offset_delete(asked), finish)
