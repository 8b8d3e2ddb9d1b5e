"""ACLs that change while connections are open: the next request is answered by the new ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.base.ids import Uuid
from barnabas.protocol.acls import Operation
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.well_known import INITIAL_EPOCH, NO_SESSION
from support.logs import make_batch
from support.node_process import wait_until
from support.raw_client import RawClient
from support.rights import Right, RightsWorld, on_cluster, on_topic, on_transactional_id

OPEN, SECRET, TXN_ID = "open", "secret", "txn"
OTHERS = [on_topic(Operation.WRITE, OPEN), on_topic(Operation.READ, OPEN)]
WRITE, READ = on_topic(Operation.WRITE, SECRET), on_topic(Operation.READ, SECRET)
WRITE_TXN = on_transactional_id(Operation.WRITE, TXN_ID)
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_TXN = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
BY_NAME, BY_ID = 12, 13


@pytest.fixture(scope="module")
def shared() -> Iterator[RightsWorld]:
    with RightsWorld() as world:
        with world.client() as client:
            for topic in (OPEN, SECRET):
                client.create_topic(topic)
        world.wait_for_transactions(TXN_ID)
        yield world


@pytest.fixture
def world(shared: RightsWorld) -> Iterator[RightsWorld]:
    shared.rights.set(*OTHERS, WRITE, READ, WRITE_TXN)
    yield shared
    shared.close_clients()


def id_of(world: RightsWorld, topic: str) -> Uuid:
    found: Uuid = world.node.broker.services.image.topics.by_name[topic].id
    return found


def end_of(world: RightsWorld, topic: str) -> int:
    return world.state()[f"{topic}-0"][1]


class Writer:
    """A producer that sends the same request again and again, but for its sequence numbers."""

    def __init__(self, world: RightsWorld, kind: str, version: int, acks: int = -1) -> None:
        self.world = world
        self.client = world.client()
        self.version = version
        self.acks = acks
        self.transactional_id = TXN_ID if kind == "transactional" else None
        self.sequence = 0
        self.producer = (-1, -1)
        if kind != "plain":
            request = InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=60_000,
                producer_id=-1,
                producer_epoch=-1,
            )

            def begins() -> bool:
                answer = self.client.call(request, InitProducerIdResponse)
                self.producer = (answer.producer_id, answer.producer_epoch)
                return answer.error_code == ErrorCode.NONE

            wait_until(begins, "a producer id")

    def send(self, topic: str = SECRET) -> ErrorCode:
        batch = make_batch(
            "v",
            producer=(*self.producer, self.sequence if self.producer[0] >= 0 else -1),
            transactional=self.transactional_id is not None,
        )
        by_id = self.version >= BY_ID
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=self.acks,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name="" if by_id else topic,
                    topic_id=id_of(self.world, topic) if by_id else Uuid(bytes(16)),
                    partition_data=[PartitionProduceData(index=0, records=bytes(batch))],
                )
            ],
        )
        answer = self.client.call(request, ProduceResponse, self.version)
        error = ErrorCode.of(answer.responses[0].partition_responses[0].error_code)
        self.sequence += error is ErrorCode.NONE
        return error


@pytest.mark.parametrize(
    ("kind", "taken", "refusal"),
    [
        ("plain", WRITE, NO_TOPIC),
        ("idempotent", WRITE, NO_TOPIC),
        ("transactional", WRITE, NO_TOPIC),
        ("transactional", WRITE_TXN, NO_TXN),
    ],
)
@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
@pytest.mark.parametrize("acks", [1, -1])
def test_a_producer_stops_and_goes_on_without_a_new_connection(
    world: RightsWorld, kind: str, taken: Right, refusal: ErrorCode, version: int, acks: int
) -> None:
    writer = Writer(world, kind, version, acks)
    assert [writer.send() for _ in range(3)] == [ErrorCode.NONE] * 3
    asked = len(world.rights.asked)
    assert writer.send() is ErrorCode.NONE
    assert len(world.rights.asked) == asked, "it is remembered"
    world.rights.take(taken)
    end = end_of(world, SECRET)
    assert [writer.send() for _ in range(2)] == [refusal] * 2
    assert end_of(world, SECRET) == end
    world.rights.give(taken)
    assert [writer.send() for _ in range(2)] == [ErrorCode.NONE] * 2


def test_while_what_is_allowed_is_noted_each_request_is_asked_for(
    world: RightsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.rights, "notes_grants", True)
    writer, reader = Writer(world, "plain", BY_NAME), Reader(world, BY_NAME)
    world.rights.asked.clear()
    for _ in range(3):
        writer.send()
        reader.fetch(SECRET)
    assert world.rights.asked.count(WRITE) == 3
    assert world.rights.asked.count(READ) == 3


def test_other_acls_that_change_change_nothing(world: RightsWorld) -> None:
    writer = Writer(world, "plain", BY_NAME)
    for topic in ("a", "b", "c"):
        assert writer.send() is ErrorCode.NONE
        world.rights.give(on_topic(Operation.WRITE, topic))
        assert writer.send() is ErrorCode.NONE


def test_other_topics_of_the_request_are_written(world: RightsWorld) -> None:
    world.rights.take(WRITE)
    data = [PartitionProduceData(index=0, records=bytes(make_batch("v")))]
    request = ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=name, partition_data=data) for name in (SECRET, OPEN)],
    )
    before = world.state()
    answer = world.call(request, ProduceResponse, BY_NAME)
    errors = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
    assert errors == {SECRET: NO_TOPIC, OPEN: ErrorCode.NONE}
    begin, end = before[f"{OPEN}-0"]
    assert world.state() == before | {f"{OPEN}-0": (begin, end + 1)}


def test_without_acks_the_connection_is_closed(world: RightsWorld) -> None:
    world.rights.take(WRITE)
    data = [PartitionProduceData(index=0, records=bytes(make_batch("v")))]
    topic = TopicProduceData(name=SECRET, partition_data=data)
    request = ProduceRequest(acks=0, timeout_ms=5000, topic_data=[topic])
    with world.client() as client:
        client.send(ApiKey.PRODUCE, BY_NAME, request)
        assert client.is_closed_by_peer()


@pytest.mark.parametrize("transactional_id", [None, "other"])
def test_transactional_records_need_the_transactional_id(
    world: RightsWorld, transactional_id: str | None
) -> None:
    batch = bytes(make_batch("v", producer=(7, 0, 0), transactional=True))
    plain = bytes(make_batch("v"))
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=5000,
        topic_data=[
            TopicProduceData(
                name=name, partition_data=[PartitionProduceData(index=0, records=records)]
            )
            for name, records in ((OPEN, plain), (SECRET, batch))
        ],
    )
    before = world.state()
    answer = world.call(request, ProduceResponse, 11)
    errors = [topic.partition_responses[0].error_code for topic in answer.responses]
    assert errors == [NO_TXN] * 2
    assert world.state() == before


class Reader:
    """A consumer with a fetch session of both topics, from their ends on."""

    def __init__(self, world: RightsWorld, version: int) -> None:
        self.world = world
        self.client: RawClient = world.client()
        self.version = version
        self.offsets = {topic: end_of(world, topic) for topic in (OPEN, SECRET)}
        self.names = {id_of(world, topic): topic for topic in (OPEN, SECRET)}
        self.session_id, self.epoch = 0, INITIAL_EPOCH

    def request(self, topics: list[str], wait_ms: int = 0) -> FetchRequest:
        by_id = self.version >= BY_ID
        return FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[
                FetchTopic(
                    topic="" if by_id else topic,
                    topic_id=id_of(self.world, topic) if by_id else Uuid(bytes(16)),
                    partitions=[
                        FetchPartition(
                            partition=0,
                            fetch_offset=self.offsets[topic],
                            partition_max_bytes=1 << 20,
                        )
                    ],
                )
                for topic in topics
            ],
        )

    def take_in(self, answer: FetchResponse) -> dict[str, ErrorCode | int]:
        """By topic: the error, or the number of bytes."""
        assert answer.error_code == ErrorCode.NONE
        self.session_id = answer.session_id
        self.epoch += 1
        return {self._name(topic): self._outcome(topic) for topic in answer.responses}

    def _name(self, topic: FetchableTopicResponse) -> str:
        return self.names[topic.topic_id] if self.version >= BY_ID else topic.topic

    def _outcome(self, topic: FetchableTopicResponse) -> ErrorCode | int:
        (found,) = topic.partitions
        size = len(found.records or b"")
        if found.error_code:
            assert not size
            assert (found.high_watermark, found.log_start_offset) == (-1, -1)
            return ErrorCode.of(found.error_code)
        return size

    def fetch(self, *topics: str) -> dict[str, ErrorCode | int]:
        request = self.request(list(topics))
        return self.take_in(self.client.call(request, FetchResponse, self.version))


@pytest.mark.parametrize("version", [BY_NAME, BY_ID, 17])
def test_a_topic_of_a_session_stops_and_goes_on(world: RightsWorld, version: int) -> None:
    reader = Reader(world, version)
    writer = Writer(world, "plain", BY_NAME)
    assert reader.fetch(OPEN, SECRET) == {OPEN: 0, SECRET: 0}
    assert reader.session_id != NO_SESSION
    assert reader.fetch() == {}
    asked = len(world.rights.asked)
    assert reader.fetch() == {}
    assert len(world.rights.asked) == asked, "it is remembered"
    world.rights.take(READ)
    assert reader.fetch() == {SECRET: NO_TOPIC}
    writer.send(OPEN)
    writer.send(SECRET)
    (size,) = set(reader.fetch().values()) - {NO_TOPIC}
    assert isinstance(size, int)
    assert size > 0
    world.rights.give(READ)
    reader.offsets[OPEN] += 1
    assert reader.fetch(OPEN)[SECRET] == size


@pytest.mark.parametrize("version", [BY_NAME, 17])
def test_who_waits_already_is_served_once_more(world: RightsWorld, version: int) -> None:
    reader = Reader(world, version)
    assert reader.fetch(OPEN, SECRET) == {OPEN: 0, SECRET: 0}
    assert reader.fetch() == {}
    request = reader.request([], wait_ms=30_000)
    (session,) = (
        session
        for number, session in world.node.broker.services.fetch_sessions._sessions.items()
        if number == reader.session_id
    )
    reader.client.send(ApiKey.FETCH, version, request)
    wait_until(lambda: session.waiting is not None, "the wait")
    world.rights.take(READ)
    writer = Writer(world, "plain", BY_NAME)
    assert writer.send(SECRET) is ErrorCode.NONE
    answer = reader.client.receive(ApiKey.FETCH, version, FetchResponse)
    found = reader.take_in(answer)[SECRET]
    assert not isinstance(found, ErrorCode)
    assert found > 0
    assert reader.fetch() == {SECRET: NO_TOPIC}


@pytest.mark.parametrize("version", [BY_NAME, 17])
def test_who_may_not_be_a_follower_gets_no_session_of_one(world: RightsWorld, version: int) -> None:
    sessions = world.node.broker.services.fetch_sessions
    known = len(sessions)
    request = Reader(world, version).request([OPEN])
    if version >= 15:
        request.replica_state = ReplicaState(replica_id=1)
    else:
        request.replica_id = 1
    answer = world.call(request, FetchResponse, version)
    assert answer.session_id == NO_SESSION
    assert len(sessions) == known
    (topic,) = answer.responses
    assert topic.partitions[0].error_code == NO_TOPIC
    world.rights.give(on_cluster(Operation.CLUSTER_ACTION))
    answer = world.call(request, FetchResponse, version)
    assert answer.session_id != NO_SESSION
    assert answer.responses[0].partitions[0].error_code != NO_TOPIC
