"""Share fetches on the wire: sessions, acknowledgements, and every error that bad ones get."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from client_cluster import PROGRAM

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_fetch
from barnabas.protocol.records.records import Record, encode_batch
from support.raw_client import RawClient
from support.share_client import ShareMember, begin_group

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
Join = Callable[[], ShareMember]


@pytest.fixture
def raw(kafka: Any) -> Iterator[RawClient]:
    with RawClient(kafka.bootstrap_servers) as client:
        yield client


@pytest.fixture
def topic(raw: RawClient) -> str:
    name = f"share-{uuid.uuid4().hex[:10]}"
    raw.create_topic(name)
    return name


@pytest.fixture
def join(kafka: Any, raw: RawClient, topic: str) -> Iterator[Join]:
    """Makes members of one new group that begins with the first record."""
    group_id = f"group-{uuid.uuid4().hex[:10]}"
    topic_id = raw.topic_id(topic)
    begin_group(raw, group_id, topic_id)
    members = []

    def make() -> ShareMember:
        members.append(ShareMember(kafka.bootstrap_servers, group_id, topic_id))
        return members[-1]

    yield make
    for member in members:
        member.close()


def produce(raw: RawClient, topic: str, count: int) -> None:
    """One batch."""
    records = [Record(index, index, None, b"value-%d" % index) for index in range(count)]
    assert raw.produce(topic, bytes(encode_batch(records))).error_code == 0


def test_records_go_to_one_member_each_and_come_back(
    raw: RawClient, topic: str, join: Join
) -> None:
    produce(raw, topic, 10)
    produce(raw, topic, 10)
    first, second = join(), join()
    got = first.fetch(max_records=5)
    assert (got.error, got.acquired, got.batches) == (ErrorCode.NONE, [(0, 9, 1)], [(0, 9)])
    got = second.fetch()
    assert (got.acquired, got.batches) == ([(10, 19, 1)], [(10, 19)])
    # Released records wake up who waits; the rest is accepted with the next fetch.
    second.send_fetch([(10, 19, ACCEPT)])
    assert first.acknowledged([(0, 3, ACCEPT), (4, 4, RELEASE), (5, 9, [REJECT] * 5)]) == "NONE"
    (told,) = second.receive_fetch().responses
    (entry,) = told.partitions
    assert entry.acknowledge_error_code == ErrorCode.NONE
    assert [(e.first_offset, e.delivery_count) for e in entry.acquired_records] == [(4, 2)]
    # A member that has gone gives back what it held.
    second.close()
    third = join()
    assert third.fetch().acquired == [(4, 4, 3)]


def test_a_waiting_fetch_gets_what_is_produced(raw: RawClient, topic: str, join: Join) -> None:
    member = join()
    member.send_fetch()
    produce(raw, topic, 3)
    (told,) = member.receive_fetch().responses
    assert [entry.last_offset for entry in told.partitions[0].acquired_records] == [2]
    assert member.fetch(max_wait_ms=0).acquired == []


def test_the_last_request_of_a_session_gives_everything_back(
    raw: RawClient, topic: str, join: Join
) -> None:
    produce(raw, topic, 4)
    first, second = join(), join()
    assert first.fetch().acquired == [(0, 3, 1)]
    first.epoch = -1
    assert first.fetch([(0, 1, ACCEPT)]).ack_error == ErrorCode.NONE
    assert second.fetch().acquired == [(2, 3, 2)]
    second.epoch = -1
    assert second.acknowledged([(2, 2, ACCEPT)]) == "NONE"
    second.epoch = 3
    assert second.refused() == "SHARE_SESSION_NOT_FOUND"
    assert join().fetch().acquired == [(3, 3, 3)]


def test_a_record_limit_divides_a_batch(raw: RawClient, topic: str, join: Join) -> None:
    produce(raw, topic, 10)
    first, second = join(), join()
    assert first.fetch(max_records=4, share_acquire_mode=1).acquired == [(0, 3, 1)]
    got = second.fetch(max_records=4, share_acquire_mode=1)
    assert (got.acquired, got.batches) == ([(4, 7, 1)], [(0, 9)])
    assert first.refused(share_acquire_mode=2) == "UNKNOWN_SERVER_ERROR"


def test_locks_are_renewed_without_fetching(raw: RawClient, topic: str, join: Join) -> None:
    produce(raw, topic, 2)
    member = join()
    member.fetch()
    no_records = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    got = member.fetch([(0, 1, RENEW)], is_renew_ack=True, **no_records)
    assert (got.ack_error, got.acquired) == (ErrorCode.NONE, [])
    assert member.acknowledged([(0, 0, RENEW)], is_renew_ack=True) == "NONE"
    assert member.refused([(0, 1, RENEW)], is_renew_ack=True) == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": None}, "INVALID_REQUEST"),
        ({"member_id": None}, "INVALID_REQUEST"),
        ({"member_id": ""}, "INVALID_REQUEST"),
        ({"member_id": "m" * 37}, "INVALID_REQUEST"),
        ({"share_session_epoch": 1}, "SHARE_SESSION_NOT_FOUND"),
        ({"share_session_epoch": -1}, "SHARE_SESSION_NOT_FOUND"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_requests_that_are_refused(
    join: Join, fields: dict[str, Any], error: str, version: int
) -> None:
    member = join()
    assert member.refused(version=version, **fields) == error
    response = member.acknowledge([], version=version, **fields)
    assert ErrorCode.of(response.error_code).name == error


def test_epochs_that_do_not_follow(raw: RawClient, topic: str, join: Join) -> None:
    produce(raw, topic, 1)
    member = join()
    assert member.refused([(0, 0, ACCEPT)]) == "INVALID_REQUEST"  # nothing is held yet
    assert member.acknowledged([], share_session_epoch=0) == "whole: INVALID_SHARE_SESSION_EPOCH"
    member.epoch = 0
    assert member.fetch().acquired == [(0, 0, 1)]
    assert member.refused(share_session_epoch=5) == "INVALID_SHARE_SESSION_EPOCH"
    bad = member.acknowledged([], share_session_epoch=5)
    assert bad == "whole: INVALID_SHARE_SESSION_EPOCH"
    member.epoch = 1
    assert member.acknowledged([(0, 0, ACCEPT)]) == "NONE"


@pytest.mark.parametrize(
    ("acks", "error"),
    [
        ([(1, 0, ACCEPT)], "INVALID_REQUEST"),
        ([(2, 3, ACCEPT), (0, 1, ACCEPT)], "INVALID_REQUEST"),
        ([(0, 1, [])], "INVALID_REQUEST"),
        ([(0, 2, [ACCEPT, ACCEPT])], "INVALID_REQUEST"),
        ([(0, 1, 5)], "INVALID_REQUEST"),
        ([(0, 1, -1)], "INVALID_REQUEST"),
        ([(0, 1, RENEW)], "INVALID_REQUEST"),  # and no renewal is said to be there
        ([(2, 9, ACCEPT)], "INVALID_REQUEST"),
        ([(9, 9, ACCEPT)], "INVALID_REQUEST"),
        ([(0, 1, ACCEPT), (1, 2, ACCEPT)], "INVALID_RECORD_STATE"),
        ([(0, 3, [GAP, ACCEPT, RELEASE, REJECT])], "NONE"),
    ],
)
def test_acknowledgements(
    raw: RawClient,
    topic: str,
    join: Join,
    acks: list[tuple[int, int, int | list[int]]],
    error: str,
) -> None:
    produce(raw, topic, 4)
    member = join()
    assert member.fetch().acquired == [(0, 3, 1)]
    assert member.acknowledged(acks) == error
    if error != "NONE":
        assert member.acknowledged([(0, 3, ACCEPT)]) == "NONE"


def test_only_the_holder_acknowledges(raw: RawClient, topic: str, join: Join) -> None:
    produce(raw, topic, 2)
    holder, other = join(), join()
    assert holder.fetch().acquired == [(0, 1, 1)]
    other.fetch(max_wait_ms=0)
    assert other.acknowledged([(0, 1, ACCEPT)]) == "INVALID_RECORD_STATE"
    assert holder.acknowledged([(0, 1, ACCEPT)]) == "NONE"
    # All is done and forgotten, as what was never in flight.
    assert holder.acknowledged([(0, 1, ACCEPT)]) == "NONE"


NO_LEADER = 0 if PROGRAM == "kafka" else -1
"""The leader, and its epoch, in answers that name none: Kafka leaves what a new message has."""


def test_only_a_leader_that_is_elsewhere_is_named(raw: RawClient, topic: str, join: Join) -> None:
    """franz-go goes to the node that an answer with an error names: 0 exists in no cluster here."""
    unknown = share_fetch.LeaderIdAndEpoch(leader_id=NO_LEADER, leader_epoch=NO_LEADER)
    produce(raw, topic, 2)
    holder, other = join(), join()
    holder.send_fetch()
    assert partition_of(holder.receive_fetch()).current_leader == unknown
    other.fetch(max_wait_ms=0)
    refused = partition_of(other.acknowledge([(0, 1, ACCEPT)]))
    assert refused.error_code == ErrorCode.INVALID_RECORD_STATE
    assert refused.current_leader == unknown
    assert partition_of(holder.acknowledge([(0, 1, ACCEPT)])).current_leader == unknown


@pytest.mark.skipif(
    PROGRAM == "kafka", reason="Kafka refuses the whole request with UNKNOWN_SERVER_ERROR"
)
def test_no_leader_of_an_unknown_topic_is_named(join: Join) -> None:
    stranger = join()
    stranger.topic_id = uuid.uuid4().bytes
    stranger.send_fetch()
    nowhere = partition_of(stranger.receive_fetch())
    assert nowhere.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert nowhere.current_leader == share_fetch.LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)


def partition_of(response: Any) -> Any:
    """The only partition of an answer."""
    ((partition,),) = [topic.partitions for topic in response.responses]
    return partition


def test_partitions_that_are_not_there(raw: RawClient, topic: str, join: Join) -> None:
    produce(raw, topic, 1)
    member = join()
    member.fetch()
    assert member.acknowledged([(0, 0, ACCEPT)], partition=7) == "UNKNOWN_TOPIC_OR_PARTITION"
    nowhere = uuid.uuid4().bytes
    assert member.acknowledged([(0, 0, ACCEPT)], topic_id=nowhere) == "UNKNOWN_TOPIC_ID"
    stranger = join()
    stranger.topic_id = nowhere
    assert stranger.fetch().error == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_group_that_was_never_begun_is_an_error_of_the_partition(
    kafka: Any, raw: RawClient, topic: str
) -> None:
    member = ShareMember(kafka.bootstrap_servers, "nobody-began-this", raw.topic_id(topic))
    try:
        got = member.fetch(max_wait_ms=500)
        assert got.acquired == []
    finally:
        member.close()
