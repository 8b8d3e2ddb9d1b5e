"""Topics that come into being because somebody asked for them.

Users' topics are made where `auto.create.topics.enable` allows it; internal ones when the first
client needs them, with the partitions, replicas and configuration that Kafka gives them.
"""

import asyncio
import logging
from collections.abc import Iterable

from barnabas.base.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from barnabas.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.security.principal import Principal

CREATION_TIMEOUT_MS = 30_000
VISIBILITY_TIMEOUT_MS = 1_000

telemetry = logging.getLogger(__name__)


async def create_topics(
    services: BrokerServices, names: Iterable[str], principal: Principal
) -> dict[str, ErrorCode]:
    """Create `names` for `principal`; each gets NONE, also when somebody was faster, or the reason.

    What the node needs itself (internal topics that a coordinator lacks) is not asked for in the
    name of the client that happens to come first. Source: Kafka's AutoTopicCreationManager.
    """
    request = CreateTopicsRequest(
        topics=[_description(services, name) for name in names], timeout_ms=CREATION_TIMEOUT_MS
    )
    response = await services.metadata.handle(
        request, principal=str(principal), timeout_ms=CREATION_TIMEOUT_MS
    )
    assert isinstance(response, CreateTopicsResponse)
    outcome: dict[str, ErrorCode] = {}
    for result in response.topics:
        code = ErrorCode.of(result.error_code)
        if code is ErrorCode.TOPIC_ALREADY_EXISTS:
            code = ErrorCode.NONE
        elif code is not ErrorCode.NONE:
            telemetry.warning("topic %s cannot be created: %s", result.name, result.error_message)
        outcome[result.name] = code
    created = [name for name, code in outcome.items() if code is ErrorCode.NONE]
    await _see(services, created)
    return outcome


async def _see(services: BrokerServices, names: list[str]) -> None:
    """Wait until this broker knows the topics, so that it can tell of them; not for long."""
    try:
        async with asyncio.timeout(VISIBILITY_TIMEOUT_MS / 1000):
            await services.metadata.wait_for(
                lambda image: all(name in image.topics.by_name for name in names)
            )
    except TimeoutError:
        telemetry.debug("%s are created, but not yet known here", names)


def _description(services: BrokerServices, name: str) -> CreatableTopic:
    if name == TRANSACTION_STATE:
        return _transaction_state(services)
    if name == SHARE_GROUP_STATE:
        return _share_group_state(services)
    if name != CONSUMER_OFFSETS:
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    config = services.config
    return CreatableTopic(
        name=name,
        num_partitions=config.get_int("offsets.topic.num.partitions"),
        # With fewer live brokers it waits until there are enough, as in Kafka: a topic of fewer
        # replicas would stay that way.
        replication_factor=config.get_int("offsets.topic.replication.factor"),
        configs=[
            CreatableTopicConfig(name="cleanup.policy", value="compact"),
            CreatableTopicConfig(name="compression.type", value="producer"),
            CreatableTopicConfig(
                name="segment.bytes", value=str(config.get_int("offsets.topic.segment.bytes"))
            ),
        ],
    )


def _transaction_state(services: BrokerServices) -> CreatableTopic:
    config = services.config
    return CreatableTopic(
        name=TRANSACTION_STATE,
        num_partitions=config.get_int("transaction.state.log.num.partitions"),
        replication_factor=config.get_int("transaction.state.log.replication.factor"),
        configs=[
            CreatableTopicConfig(name="cleanup.policy", value="compact"),
            CreatableTopicConfig(name="compression.type", value="uncompressed"),
            CreatableTopicConfig(
                name="min.insync.replicas",
                value=str(config.get_int("transaction.state.log.min.isr")),
            ),
            CreatableTopicConfig(
                name="segment.bytes",
                value=str(config.get_int("transaction.state.log.segment.bytes")),
            ),
            CreatableTopicConfig(name="unclean.leader.election.enable", value="false"),
        ],
    )


def _share_group_state(services: BrokerServices) -> CreatableTopic:
    config = services.config
    return CreatableTopic(
        name=SHARE_GROUP_STATE,
        num_partitions=config.get_int("share.coordinator.state.topic.num.partitions"),
        replication_factor=config.get_int("share.coordinator.state.topic.replication.factor"),
        configs=[
            # Its coordinator deletes what newer snapshots have made redundant; nothing else may.
            CreatableTopicConfig(name="cleanup.policy", value="delete"),
            CreatableTopicConfig(name="compression.type", value="producer"),
            CreatableTopicConfig(
                name="segment.bytes",
                value=str(config.get_int("share.coordinator.state.topic.segment.bytes")),
            ),
            CreatableTopicConfig(
                name="min.insync.replicas",
                value=str(config.get_int("share.coordinator.state.topic.min.isr")),
            ),
            CreatableTopicConfig(name="retention.ms", value="-1"),
        ],
    )
