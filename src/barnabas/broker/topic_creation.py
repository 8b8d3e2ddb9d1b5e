"""Topics that come into being because somebody asked for them.

Users' topics are made where `auto.create.topics.enable` allows it; internal ones when the first
client needs them, with the partitions, replicas and configuration that Kafka gives them.
"""

from collections.abc import Iterable

from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

CONSUMER_OFFSETS = "__consumer_offsets"
CREATION_TIMEOUT_MS = 30_000


async def create_topics(services: BrokerServices, names: Iterable[str]) -> dict[str, ErrorCode]:
    """Create `names`; each gets NONE, also when somebody else was faster, or the reason."""
    request = CreateTopicsRequest(
        topics=[_description(services, name) for name in names], timeout_ms=CREATION_TIMEOUT_MS
    )
    response = await services.metadata.handle(
        request, principal="User:ANONYMOUS", deadline_ms=CREATION_TIMEOUT_MS
    )
    assert isinstance(response, CreateTopicsResponse)
    return {
        result.name: ErrorCode.NONE
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        else ErrorCode.of(result.error_code)
        for result in response.topics
    }


def _description(services: BrokerServices, name: str) -> CreatableTopic:
    if name != CONSUMER_OFFSETS:
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    config = services.config
    brokers = sum(not broker.fenced for broker in services.image.brokers.values())
    return CreatableTopic(
        name=name,
        num_partitions=config.int("offsets.topic.num.partitions"),
        replication_factor=min(config.int("offsets.topic.replication.factor"), max(brokers, 1)),
        configs=[
            CreatableTopicConfig(name="cleanup.policy", value="compact"),
            CreatableTopicConfig(name="compression.type", value="producer"),
            CreatableTopicConfig(
                name="segment.bytes", value=str(config.int("offsets.topic.segment.bytes"))
            ),
        ],
    )
