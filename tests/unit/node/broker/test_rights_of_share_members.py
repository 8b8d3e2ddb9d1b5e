"""Members of share groups whose rights change while their sessions are open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol.acls import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.records import Record, encode_batch
from support.rights import RightsWorld, on_group, on_topic
from support.share_client import ShareMember, begin_group

TOPIC, GROUP = "jobs", "workers"
READ, READ_GROUP = on_topic(Operation.READ, TOPIC), on_group(Operation.READ, GROUP)
NO_TOPIC, NO_GROUP = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)
ACCEPT = 1


@pytest.fixture
def world() -> Iterator[RightsWorld]:
    with RightsWorld() as world:
        yield world


@pytest.fixture
def member(world: RightsWorld) -> Iterator[ShareMember]:
    with world.client() as client:
        client.create_topic(TOPIC)
        topic_id = client.topic_id(TOPIC)
        begin_group(client, GROUP, topic_id)
        records = bytes(encode_batch([Record(timestamp=0, value=b"v")] * 2))
        for _ in range(2):
            client.produce(TOPIC, records)
    member = ShareMember(world.address, GROUP, topic_id)
    world.rights.set(READ, READ_GROUP)
    yield member
    member.close()


def test_a_topic_that_is_taken_gives_nothing_and_takes_nothing(
    world: RightsWorld, member: ShareMember
) -> None:
    assert member.fetch(max_records=2, batch_size=2).acquired == [(0, 1, 1)]
    before = world.state()
    world.rights.take(READ)
    refused = member.fetch([(0, 1, ACCEPT)], max_wait_ms=0)
    assert (refused.error, refused.ack_error) == (NO_TOPIC, NO_TOPIC)
    assert (refused.acquired, refused.batches) == ([], [])
    assert member.acknowledged([(0, 1, ACCEPT)]) == NO_TOPIC.name
    assert world.state() == before
    world.rights.give(READ)
    assert member.acknowledged([(0, 1, ACCEPT)]) == "NONE"
    assert member.fetch().acquired == [(2, 3, 1)]


def test_without_the_group_nothing_is_served_and_the_session_stays(
    world: RightsWorld, member: ShareMember
) -> None:
    assert member.fetch(max_records=2, batch_size=2).acquired == [(0, 1, 1)]
    world.rights.take(READ_GROUP)
    before = world.state()
    assert member.refused([(0, 1, ACCEPT)]) == NO_GROUP.name
    member.epoch -= 1
    assert member.acknowledged([(0, 1, ACCEPT)]) == f"whole: {NO_GROUP.name}"
    assert world.state() == before
    world.rights.give(READ_GROUP)
    assert member.fetch([(0, 1, ACCEPT)]).acquired == [(2, 3, 1)]
