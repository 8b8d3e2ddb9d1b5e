"""Encoders written by hand: an answer that they cannot encode becomes an error answer."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.ids import Uuid
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.fetch.codec import FetchAnswer
from barnabas.node.broker.fetch.handler import Fetch
from barnabas.node.broker.fetch.sessions import FetchSession, FetchTarget
from barnabas.node.broker.produce.answers import respond
from barnabas.node.broker.produce.codec import PartitionAnswer
from barnabas.node.broker.share.fetch import ShareFetch
from barnabas.node.broker.share.fetch_codec import ShareAnswer
from barnabas.node.security.authorizer import ALLOW_ALL
from barnabas.node.security.principal import ANONYMOUS
from barnabas.node.share.sessions import SessionKey, ShareSession
from barnabas.protocol import apis
from barnabas.protocol.codec import decode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import fetch, share_fetch

FAILED = ErrorCode.UNKNOWN_SERVER_ERROR
TOPIC_ID = Uuid(b"t" * 16)
TOO_GREAT = 1 << 63


def versions(api: apis.AnyApi) -> range:
    return range(api.min_version, api.max_stable_version + 1)


def context_of(api: apis.AnyApi, version: int) -> RequestContext:
    connection: Any = SimpleNamespace(
        times=None, peer_host="client", listener_name="PLAINTEXT", state=None
    )
    return RequestContext(api.key, version, 7, None, connection, ANONYMOUS)


def decoded(api: apis.AnyApi, version: int, parts: Any) -> Any:
    frame = b"".join(parts)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert int.from_bytes(frame[4:8], "big") == 7
    return decode(api.response, version, frame[8 + api.response_header_version(version) :])


@pytest.mark.parametrize("version", versions(apis.FETCH))
def test_a_fetch(version: int, caplog: pytest.LogCaptureFixture) -> None:
    by_id = version >= 13
    topic = TOPIC_ID if by_id else "t"
    services: Any = SimpleNamespace(
        image=SimpleNamespace(brokers={}), throttling=None, fetch_max_bytes=1
    )
    request = fetch.FetchRequest(
        session_id=5 if version >= 7 else 0,
        topics=[
            fetch.FetchTopic(
                topic="t", topic_id=TOPIC_ID, partitions=[fetch.FetchPartition(partition=3)]
            )
        ],
    )
    session = FetchSession(5, by_id, 0)
    target = FetchTarget(topic, 3, 0, 1)
    session.update([target], [])
    waiting = Fetch(services, context_of(apis.FETCH, version), request, session, True)
    waiting._answers[target] = FetchAnswer(topic, 3, ErrorCode.NONE, TOO_GREAT, 0, 0, None, [], 0)
    with caplog.at_level(logging.ERROR):
        answer = decoded(apis.FETCH, version, waiting.respond())
    assert len(caplog.records) == 1, "logged once"
    if version >= 7:
        assert (answer.error_code, answer.session_id) == (FAILED, 5)
    found = [
        (part.topic, entry.partition_index, entry.error_code, entry.high_watermark, entry.records)
        for part in answer.responses
        for entry in part.partitions
    ]
    assert found == ([] if by_id else [("t", 3, FAILED, -1, b"")])


@pytest.mark.parametrize("version", versions(apis.SHARE_FETCH))
def test_a_share_fetch(version: int, caplog: pytest.LogCaptureFixture) -> None:
    limits = SimpleNamespace(lock_duration_ms=30_000)
    settings = SimpleNamespace(of=lambda _: SimpleNamespace(limits=limits))
    services: Any = SimpleNamespace(
        authorizer=ALLOW_ALL,
        image=SimpleNamespace(brokers={}),
        share_partitions=SimpleNamespace(settings=settings),
        throttling=None,
        fetch_max_bytes=1,
    )
    context = context_of(apis.SHARE_FETCH, version)
    session = ShareSession(SessionKey("g", "m"), context.connection)
    waiting = ShareFetch(services, context, share_fetch.ShareFetchRequest(), session)
    answer = waiting._answers[TOPIC_ID, 3] = ShareAnswer(3)
    answer.message = "\ud800"
    with caplog.at_level(logging.ERROR):
        told = decoded(apis.SHARE_FETCH, version, waiting._respond())
    assert len(caplog.records) == 1, "logged once"
    assert (told.error_code, told.responses) == (FAILED, [])


@pytest.mark.parametrize("version", [version for version in versions(apis.PRODUCE) if version >= 3])
def test_a_produce(version: int, caplog: pytest.LogCaptureFixture) -> None:
    services: Any = SimpleNamespace(image=SimpleNamespace(brokers={}))
    answers: Any = [
        (TOPIC_ID if version >= 13 else "t", [PartitionAnswer(3, ErrorCode.NONE, TOO_GREAT, -1, 0)])
    ]
    with caplog.at_level(logging.ERROR):
        parts = respond(services, context_of(apis.PRODUCE, version), answers, {})
    answer = decoded(apis.PRODUCE, version, parts)
    assert caplog.records
    [part] = answer.responses[0].partition_responses
    assert (part.index, part.error_code) == (3, FAILED)
