"""Topics that come into being because somebody asked for them.

Users' topics are made where `auto.create.topics.enable` allows it; internal ones when the first
client needs them, with the partitions, replicas and configuration that Kafka gives them.
"""

import asyncio
from collections.abc import Iterable, Mapping

from barnabas.base.internal_topics import (
    CONSUMER_OFFSETS,
    CREATION_TIMEOUT_MS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from barnabas.base.peer_lines import peer_logger
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.asker import Asker
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

VISIBILITY_TIMEOUT_MS = 1_000
FAILURES_NAMED_MAX = 10
"""Topics of one request: who asks for thousands fills no log."""

telemetry = peer_logger(__name__)


async def create_topics(
    services: BrokerServices, names: Iterable[str], asker: Asker
) -> dict[str, ErrorCode]:
    """Create `names` for `asker`; each gets NONE, also when somebody was faster, or the reason.

    What the node needs itself (internal topics that a coordinator lacks) is not asked for in the
    name of the client that happens to come first. Source: Kafka's AutoTopicCreationManager.
    """
    request = CreateTopicsRequest(
        topics=[_description(services, name) for name in names], timeout_ms=CREATION_TIMEOUT_MS
    )
    response = await services.metadata.handle(request, asker=asker, timeout_ms=CREATION_TIMEOUT_MS)
    assert isinstance(response, CreateTopicsResponse)
    outcome: dict[str, ErrorCode] = {}
    failed = 0
    for result in response.topics:
        code = ErrorCode.of(result.error_code)
        if code is ErrorCode.TOPIC_ALREADY_EXISTS:
            code = ErrorCode.NONE
        elif code is not ErrorCode.NONE:
            failed += 1
            if failed <= FAILURES_NAMED_MAX:
                telemetry.warning(
                    "topic %s cannot be created: %s", result.name, result.error_message
                )
        outcome[result.name] = code
    if failed > FAILURES_NAMED_MAX:
        telemetry.warning("%d more topics cannot be created", failed - FAILURES_NAMED_MAX)
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
    """How a topic is asked for.

    With fewer live brokers than replicas an internal one waits until there are enough, as in
    Kafka: a topic of fewer replicas would stay that way.
    """
    number = services.config.get_int
    if name == CONSUMER_OFFSETS:
        return _creatable(
            name,
            number("offsets.topic.num.partitions"),
            number("offsets.topic.replication.factor"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": number("offsets.topic.segment.bytes"),
            },
        )
    if name == TRANSACTION_STATE:
        return _creatable(
            name,
            number("transaction.state.log.num.partitions"),
            number("transaction.state.log.replication.factor"),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": number("transaction.state.log.min.isr"),
                "segment.bytes": number("transaction.state.log.segment.bytes"),
                "unclean.leader.election.enable": "false",
            },
        )
    if name == SHARE_GROUP_STATE:
        return _creatable(
            name,
            number("share.coordinator.state.topic.num.partitions"),
            number("share.coordinator.state.topic.replication.factor"),
            {
                # Its coordinator deletes what newer snapshots make redundant; nothing else may.
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": number("share.coordinator.state.topic.segment.bytes"),
                "min.insync.replicas": number("share.coordinator.state.topic.min.isr"),
                "retention.ms": -1,
            },
        )
    return _creatable(name, -1, -1, {})


def _creatable(
    name: str, partitions: int, replicas: int, configs: Mapping[str, str | int]
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            CreatableTopicConfig(name=key, value=str(value)) for key, value in configs.items()
        ],
    )
