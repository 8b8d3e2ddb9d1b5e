"""Many partitions polled at once, on several nodes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.kafka import wire_reader
from barnabas.kafka.wire import AccessError, Brokers, WireError
from barnabas.kafka.wire_reader import POLLED_SIZE_BYTES_MAX, Place, Polled, WireReader
from barnabas.protocol.apis import FETCH, LIST_OFFSETS, METADATA
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    PartitionData,
)
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.records.records import Record, encode_batch


def batch(offset: int, count: int) -> bytes:
    records = [Record(offset + n, 0, None, b"%d" % (offset + n)) for n in range(count)]
    return bytes(encode_batch(records, base_offset=offset))


class Cluster(Brokers):
    """Two nodes; each partition has a leader, batches, and perhaps an error."""

    def __init__(self, leaders: dict[Place, int]) -> None:
        self.leaders = leaders
        self.batches: dict[Place, list[bytes]] = {place: [] for place in leaders}
        self.errors: dict[Place, ErrorCode] = {}
        self.starts: dict[Place, int] = {}
        self.refused: dict[str, ErrorCode] = {}
        self.broken: dict[int, Exception] = {}
        self.asked: list[tuple[int, Any]] = []
        self.before: Callable[[int], None] = lambda node: None
        """Called before a node answers a fetch."""
        self.throttles_ms: dict[int, int] = {}
        """The time for which nodes throttle a client."""
        self.lookups = 0
        """Requests for metadata."""

    def any(self) -> Any:
        return _Node(self, 0)

    def at(self, host: str, port: int) -> Any:
        return _Node(self, port)

    def close(self) -> None:
        pass

    def put(self, place: Place, first: int, count: int) -> None:
        self.batches[place].append(batch(first, count))


class _Node:
    is_over = False

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.cluster, self.number = cluster, number

    def call(self, api: Any, request: Any, _: int | None = None) -> Any:
        cluster = self.cluster
        if self.number in cluster.broken:
            raise cluster.broken[self.number]
        if api is METADATA:
            cluster.lookups += 1
            topics = []
            for asked in request.topics:
                partitions = [
                    MetadataResponsePartition(partition_index=number, leader_id=leader)
                    for (topic, number), leader in cluster.leaders.items()
                    if topic == asked.name
                ]
                error = cluster.refused.get(asked.name, ErrorCode.NONE)
                if error != ErrorCode.NONE:
                    partitions = []
                topics.append(
                    MetadataResponseTopic(error_code=error, name=asked.name, partitions=partitions)
                )
            brokers = [MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)]
            return MetadataResponse(brokers=brokers, topics=topics)
        if api is LIST_OFFSETS:
            (topic,) = request.topics
            (asked,) = topic.partitions
            start = cluster.starts.get((topic.name, asked.partition_index), 0)
            one: Any = ListOffsetsPartitionResponse(offset=start)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[one])])
        assert api is FETCH
        cluster.asked.append((self.number, request))
        cluster.before(self.number)
        answers, room = [], request.max_bytes
        for topic in request.topics:
            given: list[PartitionData] = []
            for asked in topic.partitions:
                at_most = min(room, asked.partition_max_bytes)
                # The first batch comes in any case.
                at_least = 1 if room == request.max_bytes else 0
                one = self._answer((topic.topic, asked.partition), asked.fetch_offset)
                one.records = self._first(one.records, at_least, at_most)
                room -= len(one.records)
                given.append(one)
            answers.append(FetchableTopicResponse(topic=topic.topic, partitions=given))
        throttle_ms = cluster.throttles_ms.get(self.number, 0)
        return FetchResponse(responses=answers, throttle_time_ms=throttle_ms)

    @staticmethod
    def _first(batches: bytes, at_least: int, at_most: int) -> bytes:
        """The first whole batches: so many in any case, others if they fit."""
        end = count = 0
        while end < len(batches):
            size = 12 + int.from_bytes(batches[end + 8 : end + 12], "big")
            if count >= at_least and end + size > at_most:
                break
            end, count = end + size, count + 1
        return batches[:end]

    def _answer(self, place: Place, offset: int) -> Any:
        cluster = self.cluster
        error = cluster.errors.get(place, ErrorCode.NONE)
        if cluster.leaders[place] != self.number:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if offset < cluster.starts.get(place, 0):
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        records = b""
        if error == ErrorCode.NONE:
            records = b"".join(
                one
                for one in cluster.batches[place]
                if int.from_bytes(one[:8], "big") + int.from_bytes(one[23:27], "big") >= offset
            )
        batches = cluster.batches[place]
        return PartitionData(
            partition_index=place[1],
            error_code=error,
            high_watermark=max(map(_end, batches), default=0),
            records=records,
            aborted_transactions=None,
        )


def _end(one: bytes) -> int:
    return int.from_bytes(one[:8], "big") + int.from_bytes(one[23:27], "big") + 1


def reached(found: dict[Place, Polled]) -> dict[Place, int]:
    return {place: one.next for place, one in found.items()}


A, B, C = ("a", 0), ("a", 1), ("b", 0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster({A: 1, B: 2, C: 1})


@pytest.fixture
def reader(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> WireReader:
    monkeypatch.setattr(wire_reader, "_SILENT_SECONDS", 0.0)
    return WireReader({}, brokers=cluster)


def test_a_poll_gives_what_is_there(cluster: Cluster, reader: WireReader) -> None:
    cluster.put(A, 0, 3)
    cluster.put(A, 3, 2)
    cluster.put(C, 0, 1)
    found, errors = reader.poll({A: 1, B: 0, C: 0}, 100)
    assert (reached(found), errors) == ({A: 5, C: 1}, {})
    assert [one.first for one in found[A].fetched] == [1]
    sizes = {
        one.partition_max_bytes
        for _, request in cluster.asked
        for topic in request.topics
        for one in topic.partitions
    }
    assert sizes == {POLLED_SIZE_BYTES_MAX}
    found, errors = reader.poll(reached(found), 0)
    assert (found, errors) == ({}, {})


def test_nodes_share_the_time_of_waiting(cluster: Cluster, reader: WireReader) -> None:
    reader.poll({A: 0, B: 0, C: 0}, 100)
    assert [request.max_wait_ms for _, request in cluster.asked] == [50, 50]
    cluster.asked.clear()
    reader.poll({A: 0, C: 0}, 100)
    assert [request.max_wait_ms for _, request in cluster.asked] == [100]
    assert [request.min_bytes for _, request in cluster.asked] == [1]


def test_a_record_comes_with_those_that_were_written_before_it(
    cluster: Cluster, reader: WireReader
) -> None:
    """The table's row is acknowledged by node 1 before the stream's record reaches node 2."""

    def written(node: int) -> None:
        if node == 2:
            cluster.put(A, 2, 3)
            cluster.put(B, 0, 1)
            cluster.before = lambda node: None

    cluster.put(A, 0, 2)
    cluster.before = written
    found, _ = reader.poll({A: 0, B: 0}, 0, last={A})
    assert reached(found) == {A: 5, B: 1}
    assert [one.first for one in found[A].fetched] == [0, 2]
    assert [node for node, _ in cluster.asked] == [1, 2, 1]
    cluster.asked.clear()
    reader.poll({A: 0, B: 1}, 0, last={A})
    assert [node for node, _ in cluster.asked] == [1, 2], "nothing depends on them"
    cluster.asked.clear()
    reader.poll({A: 0, C: 0}, 0, last={A})
    (asked,) = cluster.asked
    assert [topic.topic for topic in asked[1].topics] == ["b", "a"]


def test_no_partition_is_always_the_last(cluster: Cluster, reader: WireReader) -> None:
    first = set()
    for _ in range(4):
        reader.poll({A: 0, C: 0}, 0)
        first.add(cluster.asked[-1][1].topics[0].topic)
    assert first == {"a", "b"}


def test_no_partition_is_always_the_last_if_several_nodes_are_polled_in_turn() -> None:
    places = [("a", number) for number in range(6)]
    other = ("b", 0)
    cluster = Cluster({**dict.fromkeys(places, 1), other: 2})
    reader = WireReader({}, brokers=cluster)
    first = set()
    for _ in range(24):
        reader.poll(dict.fromkeys((*places, other), 0), 0)
        node, request = cluster.asked[-2]
        assert node == 1
        first.add(request.topics[0].partitions[0].partition)
    assert first == set(range(6))


def test_tables_have_room_beside_streams_that_are_far_behind(
    cluster: Cluster, reader: WireReader
) -> None:
    """A stream's record must not be joined before the table's rows have been asked for."""
    for first in range(0, 100, 10):
        cluster.put(C, first, 10)
    cluster.put(A, 0, 2)
    size = sum(map(len, cluster.batches[C][:3]))
    found, _ = reader.poll({A: 0, C: 0}, 0, last={A}, size_bytes_max=size)
    assert reached(found) == {A: 2, C: 30}
    assert {request.max_bytes for _, request in cluster.asked} == {size}
    cluster.asked.clear()
    reader.poll({A: 2, C: 90}, 0, last={A}, size_bytes_max=size)
    assert len(cluster.asked) == 1


def test_partitions_say_where_they_end_even_if_their_records_find_no_room(
    cluster: Cluster, reader: WireReader
) -> None:
    for first in range(0, 100, 10):
        cluster.put(A, first, 10)
        cluster.put(C, first, 10)
    size = sum(map(len, cluster.batches[A][:3]))
    found, _ = reader.poll({A: 0, C: 0}, 0, size_bytes_max=size)
    assert sorted(one.next for one in found.values()) == [0, 30]
    assert [one.end for one in found.values()] == [100, 100]
    found, _ = reader.poll({A: 90, C: 100}, 0)
    assert {place: (one.next, one.end) for place, one in found.items()} == {A: (100, 100)}


def test_a_node_that_has_us_wait_holds_up_no_other(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr("barnabas.kafka.wire_reader.time.monotonic", lambda: now_s)
    reader = WireReader({}, brokers=cluster)
    cluster.throttles_ms[1] = 5_000
    cluster.put(A, 0, 1)
    cluster.put(B, 0, 1)
    found, _ = reader.poll({A: 0, B: 0}, 0)
    assert reached(found) == {A: 1, B: 1}
    cluster.put(A, 1, 1)
    cluster.put(B, 1, 1)
    found, _ = reader.poll({A: 1, B: 1}, 0)
    assert reached(found) == {B: 2}
    # It has a table's rows: streams wait for them.
    assert reader.poll({A: 1, B: 1}, 0, last={A}) == ({}, {})
    cluster.throttles_ms.clear()
    now_s = 105.0
    found, _ = reader.poll({A: 1, B: 1}, 0, last={A})
    assert reached(found) == {A: 2, B: 2}


def test_a_node_that_is_waited_for_in_vain_is_asked_seldom(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is frozen: each request takes the time limit, during which nothing else is read."""
    now_s = 100.0
    monkeypatch.setattr("barnabas.kafka.wire_reader.time.monotonic", lambda: now_s)
    reader = WireReader({}, brokers=cluster)
    waited_s = 0.0

    def freezes(node: int) -> None:
        nonlocal now_s, waited_s
        if node == 1:
            now_s += 10
            waited_s += 10
            raise WireError("no answer")

    cluster.before = freezes
    while now_s < 1_000:
        now_s += 1
        reader.poll({A: 0, B: 0}, 0)
    assert 0 < waited_s < 300
    cluster.put(A, 0, 1)
    reader = WireReader({}, brokers=cluster)
    assert reader.poll({A: 0, B: 0}, 0) == ({}, {})
    cluster.leaders[A] = 2
    now_s += 1
    found, _ = reader.poll({A: 0, B: 0}, 0)
    assert reached(found) == {A: 1}, "the new leader is asked soon"


def test_records_that_retention_deleted_are_skipped(
    cluster: Cluster, reader: WireReader, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.starts[A] = 7
    cluster.put(A, 7, 2)
    with caplog.at_level(logging.WARNING):
        found, errors = reader.poll({A: 3}, 0)
    assert (reached(found), found[A].fetched, errors) == ({A: 7}, [], {})
    assert "a-0 no longer has offsets 3 to 6" in caplog.text
    found, _ = reader.poll({A: 7}, 0)
    assert reached(found) == {A: 9}


def test_records_fetched_before_retention_deletes_those_after_them_are_kept(
    cluster: Cluster, reader: WireReader
) -> None:
    def deleted(node: int) -> None:
        if node == 2:
            cluster.starts[A] = 7

    cluster.put(A, 0, 2)
    cluster.put(B, 0, 1)
    cluster.before = deleted
    found, errors = reader.poll({A: 0, B: 0}, 0, last={A})
    assert (reached(found), errors) == ({A: 7, B: 1}, {})
    assert [one.first for one in found[A].fetched] == [0]
    assert found[A].end == 8


def test_an_offset_that_does_not_exist_yet_is_waited_for(
    cluster: Cluster, reader: WireReader
) -> None:
    """The new leader has fewer records than the one before."""
    cluster.errors[A] = ErrorCode.OFFSET_OUT_OF_RANGE
    assert reader.poll({A: 3}, 0) == ({}, {})
    del cluster.errors[A]
    cluster.put(A, 3, 1)
    found, _ = reader.poll({A: 3}, 0)
    assert reached(found) == {A: 4}


@pytest.mark.parametrize(
    "trouble",
    [
        lambda cluster: cluster.errors.update({A: ErrorCode.NOT_LEADER_OR_FOLLOWER}),
        lambda cluster: cluster.errors.update({A: ErrorCode.UNKNOWN_SERVER_ERROR}),
        lambda cluster: cluster.leaders.update({A: -1}),
        lambda cluster: cluster.leaders.update({A: 9}),
        lambda cluster: cluster.broken.update({1: WireError("it broke off")}),
        lambda cluster: cluster.broken.update({1: AccessError("not trusted")}),
    ],
)
def test_a_partition_in_trouble_holds_up_no_other(
    cluster: Cluster, reader: WireReader, trouble: Callable[[Cluster], None]
) -> None:
    cluster.put(A, 0, 1)
    cluster.put(B, 0, 1)
    trouble(cluster)
    found, errors = reader.poll({A: 0, B: 0}, 0)
    assert (reached(found), errors) == ({B: 1}, {})
    cluster.errors.clear()
    cluster.broken.clear()
    cluster.leaders[A] = 2
    found, errors = reader.poll({A: 0, B: 1}, 0)
    assert (reached(found), errors) == ({A: 1}, {})


def test_a_partition_in_trouble_is_not_asked_each_time(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader = WireReader({}, brokers=cluster)
    now_s = 100.0
    monkeypatch.setattr("barnabas.kafka.wire_reader.time.monotonic", lambda: now_s)
    cluster.errors[A] = ErrorCode.LEADER_NOT_AVAILABLE
    asked_at = []
    for step in range(200):
        now_s = 100.0 + step / 10
        before = len(cluster.asked)
        reader.poll({A: 0}, 0)
        if len(cluster.asked) > before:
            asked_at.append(step)
    gaps = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert gaps == sorted(gaps)
    assert gaps[0] == 2
    assert gaps[-1] > 30
    assert len(caplog.records) == len(asked_at) - 1, "the first time is nothing to tell"


def test_leaders_are_asked_for_once(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a topic is gone."""
    monkeypatch.setattr(wire_reader, "_SILENT_SECONDS", 60.0)
    reader = WireReader({}, brokers=cluster)
    cluster.refused["b"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for _ in range(5):
        reader.poll({A: 0, B: 0, C: 0}, 0)
    assert cluster.lookups == 2


def test_a_cluster_that_does_not_answer_gives_nothing(cluster: Cluster, reader: WireReader) -> None:
    cluster.broken[0] = WireError("nobody is there")
    assert reader.poll({A: 0, B: 0}, 0) == ({}, {})


def test_a_login_that_fails_is_every_partition_s_error(
    cluster: Cluster, reader: WireReader
) -> None:
    cluster.broken[0] = AccessError("the login failed")
    found, errors = reader.poll({A: 0, B: 0}, 0)
    assert found == {}
    assert {place: str(error) for place, error in errors.items()} == dict.fromkeys(
        (A, B), "the login failed"
    )


def test_a_topic_that_is_refused_is_an_error_of_its_partitions(
    cluster: Cluster, reader: WireReader
) -> None:
    cluster.refused["b"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    cluster.put(A, 0, 1)
    found, errors = reader.poll({A: 0, C: 0}, 0)
    assert reached(found) == {A: 1}
    assert list(errors) == [C]
    assert "cannot read topic b: TOPIC_AUTHORIZATION_FAILED" in str(errors[C])


def test_a_topic_that_may_be_described_and_not_read_is_an_error(
    cluster: Cluster, reader: WireReader
) -> None:
    """Its ACL was withdrawn: its queries must not wait for records for ever."""
    cluster.put(A, 0, 1)
    cluster.errors[C] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found, errors = reader.poll({A: 0, C: 0}, 0)
    assert reached(found) == {A: 1}
    assert list(errors) == [C]
    assert "cannot read b-0 at offset 0: TOPIC_AUTHORIZATION_FAILED" in str(errors[C])


def test_a_damaged_batch_is_an_error_of_its_partition(cluster: Cluster, reader: WireReader) -> None:
    cluster.put(A, 0, 1)
    cluster.batches[C].append(b"\0" * 80)
    found, errors = reader.poll({A: 0, C: 0}, 0)
    assert reached(found) == {A: 1}
    assert list(errors) == [C]
