"""Random rights and requests: what is done and told is what a naive reading of them allows."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from barnabas.protocol.acls import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.well_known import INITIAL_EPOCH
from support.effort import examples
from support.logs import make_batch
from support.rights import RightsWorld, on_topic

TOPICS = ["a", "b", "c"]
ABSENT = "absent"
STEPS = 150
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
RIGHTS = [
    on_topic(operation, topic)
    for operation in (Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.DELETE)
    for topic in (*TOPICS, ABSENT)
]
BATCH = bytes(make_batch("v"))
VERSION = 12


@pytest.fixture(scope="module")
def shared() -> Iterator[RightsWorld]:
    with RightsWorld() as world:
        with world.client() as client:
            for topic in TOPICS:
                client.create_topic(topic)
        yield world


class Model:
    """One client with one connection and one fetch session, and the allowed results of requests."""

    def __init__(self, world: RightsWorld, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self.client = world.client()
        self.bounds = self.real_bounds()
        self.session_id, self.session_epoch = 0, INITIAL_EPOCH
        world.rights.set(*self.random.sample(RIGHTS, len(RIGHTS) // 2))

    def real_bounds(self) -> dict[str, tuple[int, int]]:
        """Return the start and end offsets of the topics' logs."""
        state = self.world.state()
        return {topic: state[f"{topic}-0"] for topic in TOPICS}

    def step(self) -> None:
        act = self.random.choice(
            [
                self.change_rights,
                self.produce,
                self.produce,
                self.fetch,
                self.fetch_in_session,
                self.fetch_in_session,
                self.delete_records,
                self.list_offsets,
                self.metadata,
            ]
        )
        act()
        assert self.real_bounds() == self.bounds

    def some_topics(self) -> list[str]:
        return self.random.sample([*TOPICS, ABSENT], self.random.randint(1, 4))

    def expected(self, operation: Operation, topic: str) -> ErrorCode:
        if not self.world.rights.has(on_topic(operation, topic)):
            return NO_TOPIC
        return UNKNOWN if topic == ABSENT else ErrorCode.NONE

    # -- steps

    def change_rights(self) -> None:
        changed = self.random.sample(RIGHTS, self.random.randint(1, 4))
        (self.world.rights.give if self.random.random() < 0.5 else self.world.rights.take)(*changed)

    def produce(self) -> None:
        topics = self.some_topics()
        if self.random.random() < 0.6:
            topics = topics[:1]  # so that requests repeat themselves
        data = [PartitionProduceData(index=0, records=BATCH)]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name=topic, partition_data=data) for topic in topics],
        )
        answer = self.client.call(request, ProduceResponse, VERSION)
        errors = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
        assert errors == {topic: self.expected(Operation.WRITE, topic) for topic in topics}
        for topic, error in errors.items():
            if not error:
                start, end = self.bounds[topic]
                self.bounds[topic] = (start, end + 1)

    def fetch_request(self, topics: list[str]) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=0,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(
                            partition=0,
                            fetch_offset=self.bounds.get(topic, (0, 0))[0],
                            partition_max_bytes=1 << 20,
                        )
                    ],
                )
                for topic in topics
            ],
        )

    def fetch(self) -> None:
        topics = self.some_topics()
        answer = self.client.call(self.fetch_request(topics), FetchResponse, VERSION)
        found = {topic.topic: topic.partitions[0] for topic in answer.responses}
        for topic in topics:
            error = self.expected(Operation.READ, topic)
            assert found[topic].error_code == error
            start, end = self.bounds.get(topic, (0, 0))
            assert bool(found[topic].records) is (not error and end > start)

    def fetch_in_session(self) -> None:
        request = self.fetch_request(TOPICS)
        if self.session_id and self.random.random() < 0.7:
            request.topics = []  # what a topic starts with may have been deleted
        request.session_id, request.session_epoch = self.session_id, self.session_epoch
        answer = self.client.call(request, FetchResponse, VERSION)
        assert answer.error_code == ErrorCode.NONE
        self.session_id = answer.session_id
        self.session_epoch += 1
        found = {topic.topic: topic.partitions[0] for topic in answer.responses}
        for topic in TOPICS:
            if self.expected(Operation.READ, topic):
                assert found[topic].error_code == NO_TOPIC
                assert not found[topic].records
            elif topic in found:
                assert found[topic].error_code in (
                    ErrorCode.NONE,
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                )

    def delete_records(self) -> None:
        topics = self.some_topics()
        request = DeleteRecordsRequest(
            timeout_ms=5000,
            topics=[
                DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(offset=-1)])
                for topic in topics
            ],
        )
        answer = self.client.call(request, DeleteRecordsResponse)
        errors = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
        assert errors == {topic: self.expected(Operation.DELETE, topic) for topic in topics}
        for topic, error in errors.items():
            if not error:
                end = self.bounds[topic][1]
                self.bounds[topic] = (end, end)

    def list_offsets(self) -> None:
        topics = self.some_topics()
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=-1)])
                for topic in topics
            ],
        )
        answer = self.client.call(request, ListOffsetsResponse)
        found = {topic.name: topic.partitions[0] for topic in answer.topics}
        for topic in topics:
            error = self.expected(Operation.DESCRIBE, topic)
            assert found[topic].error_code == error
            assert found[topic].offset == (-1 if error else self.bounds[topic][1])

    def metadata(self) -> None:
        topics = self.some_topics()
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics],
            allow_auto_topic_creation=False,
        )
        answer = self.client.call(request, MetadataResponse)
        errors = {topic.name: topic.error_code for topic in answer.topics}
        assert errors == {topic: self.expected(Operation.DESCRIBE, topic) for topic in topics}
        everything = self.client.call(MetadataRequest(topics=None), MetadataResponse)
        assert {topic.name for topic in everything.topics} == {
            topic for topic in TOPICS if not self.expected(Operation.DESCRIBE, topic)
        }


@pytest.mark.parametrize("seed", range(examples(2)))
def test_nothing_is_done_or_told_that_is_not_allowed(shared: RightsWorld, seed: int) -> None:
    model = Model(shared, seed)
    for _ in range(STEPS):
        model.step()
    shared.close_clients()
