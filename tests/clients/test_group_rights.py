"""Consumers that may not do what they want: what librdkafka and aiokafka make of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import GroupAuthorizationFailedError
from confluent_kafka import Consumer, KafkaError

from barnabas.app.cluster import Cluster
from barnabas.protocol.acls import WILDCARD, Operation, PatternType, Permission, ResourceType
from barnabas.protocol.messages.acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.raw_client import RawClient

OPEN, HIDDEN = "sight-open", "sight-hidden"
OTHERS_GROUP = "others"
POLL_S = 0.05
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # A resource with ACLs is open only to those they name; all others are open to everybody.
    "allow.everyone.if.no.acl.found": "true",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(config=CONFIG) as running:
        with RawClient(running.bootstrap_servers) as client:
            client.create_topic(OPEN)
            client.create_topic(HIDDEN)
            request = CreateAclsRequest(
                creations=[
                    _given_to_somebody(ResourceType.TOPIC, HIDDEN),
                    _given_to_somebody(ResourceType.GROUP, OTHERS_GROUP),
                ]
            )
            results = client.call(request, CreateAclsResponse).results
            assert not any(result.error_code for result in results), results
        yield running


def _given_to_somebody(resource_type: ResourceType, name: str) -> AclCreation:
    return AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=PatternType.LITERAL,
        principal="User:somebody",
        host=WILDCARD,
        operation=Operation.ALL,
        permission_type=Permission.ALLOW,
    )


def _consumer(cluster: Cluster, group: str, protocol: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
        }
    )


def _error(consumer: Consumer) -> Any:
    """The code of the first error that is given to the application."""
    codes: list[Any] = []

    def has_failed() -> bool:
        message = consumer.poll(POLL_S)
        if message is not None and message.error() is not None:
            codes.append(message.error().code())
        return bool(codes)

    wait_until(has_failed, "an error of the consumer", PATIENCE_S)
    return codes[0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_of_anothers_group_is_told(cluster: Cluster, protocol: str) -> None:
    consumer = _consumer(cluster, OTHERS_GROUP, protocol)
    consumer.subscribe([OPEN])
    assert _error(consumer) == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()


async def test_aiokafka_is_told_so(cluster: Cluster) -> None:
    consumer = AIOKafkaConsumer(
        OPEN, bootstrap_servers=cluster.bootstrap_servers, group_id=OTHERS_GROUP
    )
    with pytest.raises(GroupAuthorizationFailedError):
        await _consume(consumer)


async def _consume(consumer: AIOKafkaConsumer) -> None:
    try:
        await consumer.start()
        await consumer.getone()
    finally:
        await consumer.stop()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_hidden_topic_cannot_be_subscribed_to(cluster: Cluster, protocol: str) -> None:
    consumer = _consumer(cluster, f"curious-{protocol}", protocol)
    consumer.subscribe([OPEN, HIDDEN])
    assert _error(consumer) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_regular_expression_finds_what_may_be_seen(cluster: Cluster, protocol: str) -> None:
    consumer = _consumer(cluster, f"searching-{protocol}", protocol)
    consumer.subscribe(["^sight-.*"])
    assigned: set[str] = set()

    def is_assigned() -> bool:
        consumer.poll(POLL_S)
        assigned.update(partition.topic for partition in consumer.assignment())
        return bool(assigned)

    wait_until(is_assigned, "an assignment")
    consumer.close()
    assert assigned == {OPEN}
