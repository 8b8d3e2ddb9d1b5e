"""Which topics a Metadata request asks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from barnabas.app.testing import Kafka
from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.base.peer_lines import LINES_MAX
from barnabas.node.broker.apis import metadata
from barnabas.node.broker.apis import topics as auto_create
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from support.raw_client import RawClient

UNKNOWN_ID = Uuid(bytes(range(16)))


def ask(
    kafka: Kafka, version: int, topics: list[MetadataRequestTopic], creates: bool = False
) -> list[MetadataResponseTopic]:
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=creates)
    with RawClient(kafka.bootstrap_servers) as client:
        return client.call(request, MetadataResponse, version).topics


@pytest.mark.parametrize("name", [None, "", "something else"])
def test_an_id_counts_whatever_the_name(kafka: Kafka, name: str | None) -> None:
    topic = kafka.topic()
    (by_name,) = ask(kafka, 12, [MetadataRequestTopic(name=topic)])
    assert by_name.error_code == ErrorCode.NONE
    (by_id,) = ask(kafka, 12, [MetadataRequestTopic(name=name, topic_id=by_name.topic_id)])
    assert by_id == by_name


def test_beside_an_id_names_count_for_nothing(kafka: Kafka) -> None:
    absent = kafka.name("absent")
    asked = [MetadataRequestTopic(name=absent), MetadataRequestTopic(topic_id=UNKNOWN_ID)]
    (found,) = ask(kafka, 12, asked, creates=True)
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert (found.name, found.topic_id) == (None, UNKNOWN_ID)
    (found,) = ask(kafka, 12, [MetadataRequestTopic(name=absent)])
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize(
    ("name", "topic_id"), [(None, ZERO_UUID), (None, UNKNOWN_ID), ("t", UNKNOWN_ID)]
)
def test_ids_need_version_12(kafka: Kafka, version: int, name: str | None, topic_id: Uuid) -> None:
    asked = [
        MetadataRequestTopic(name=kafka.topic()),
        MetadataRequestTopic(name=name, topic_id=topic_id),
    ]
    found = ask(kafka, version, asked)
    assert [topic.error_code for topic in found] == [ErrorCode.INVALID_REQUEST] * 2


class Name(str):
    """Counts how often names are compared."""

    __slots__ = ()
    compared: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


async def test_many_missing_topics_are_not_looked_for_in_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def creates(_: object, names: list[str], __: object) -> dict[str, ErrorCode]:
        asked.extend(names)
        return {}

    monkeypatch.setattr(metadata, "create_topics", creates)
    monkeypatch.setattr(metadata, "asker_of", lambda _: None)
    services: Any = SimpleNamespace(authorizer=ALLOW_ALL)
    context: Any = None
    names: list[str] = [Name(f"t{n}") for n in range(300)]
    Name.compared = 0
    assert await metadata._create(services, context, names) == {}
    assert asked == [f"t{n}" for n in range(300)]
    assert Name.compared < 10 * len(names)


def services_that_create_nothing() -> Any:
    async def handle(request: CreateTopicsRequest, **_: object) -> CreateTopicsResponse:
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=topic.name, error_code=ErrorCode.POLICY_VIOLATION)
                for topic in request.topics
            ]
        )

    async def known(_: object) -> None:
        """Nothing is waited for."""

    config = SimpleNamespace(get_int=lambda _: 1)
    node = SimpleNamespace(handle=handle, wait_for=known)
    return SimpleNamespace(metadata=node, config=config)


async def test_of_many_topics_that_cannot_be_created_few_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asker: Any = None
    services = services_that_create_nothing()
    outcome = await auto_create.create_topics(services, [f"t{n}" for n in range(300)], asker)
    assert len(outcome) == 300
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == auto_create.FAILURES_NAMED_MAX + 1
    assert told[-1].startswith("290 more")


async def test_a_topic_that_is_asked_for_again_and_again_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asker: Any = None
    services = services_that_create_nothing()
    for _ in range(5):
        await auto_create.create_topics(services, ["__consumer_offsets"], asker)
    assert len(caplog.records) == 1


async def test_of_many_requests_that_create_nothing_few_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asker: Any = None
    services = services_that_create_nothing()
    for number in range(3 * LINES_MAX):
        await auto_create.create_topics(services, [f"t{number}"], asker)
    assert len(caplog.records) == LINES_MAX
