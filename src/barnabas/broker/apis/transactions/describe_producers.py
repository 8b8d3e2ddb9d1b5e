"""DescribeProducers (key 61), version 0: KIP-664.

The producers that a partition's log knows: who has a transaction under way, and since which
offset. Any replica answers from its own log, as in Kafka.
"""

from barnabas.broker.context import RequestContext
from barnabas.broker.services import BrokerServices
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from barnabas.replication.partition import Partition


def handle_describe_producers(
    services: BrokerServices, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Describe the producers of partitions that have a replica here."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(services, topic.name, index) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(services: BrokerServices, topic: str, index: int) -> PartitionResponse:
    found = services.replicas.find(topic, index)
    if not isinstance(found, Partition):
        return PartitionResponse(
            partition_index=index, error_code=found, error_message=found.message
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.txn_first_offset,
            )
            for entry in found.log.producers.producers.values()
        ],
    )
