"""Which topics a Metadata request asks for."""

from __future__ import annotations

import pytest

from barnabas.app.testing import Kafka
from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
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
