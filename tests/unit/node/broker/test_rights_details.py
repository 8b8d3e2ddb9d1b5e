"""What the table of rights cannot say: lists that are filtered, other rights that do, and parts."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.node.broker.apis.transactions import handle_init_producer_id
from barnabas.node.broker.context import RequestContext
from barnabas.node.security.principal import ANONYMOUS
from barnabas.protocol.acls import Operation
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.metadata import Cursor as Cursor
from barnabas.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.well_known import CONSUMER_OFFSETS
from support.node_process import wait_until
from support.rights import (
    Right,
    Rights,
    RightsWorld,
    errors_of,
    on_cluster,
    on_topic,
    on_transactional_id,
)

TOPICS = ["a", "b", "c", "d"]
TXN_ID = "txn"
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def shared() -> Iterator[RightsWorld]:
    with RightsWorld() as world:
        with world.client() as client:
            for topic in TOPICS:
                client.create_topic(topic)
        world.wait_for_transactions(TXN_ID)
        yield world


@pytest.fixture
def world(shared: RightsWorld) -> Iterator[RightsWorld]:
    shared.rights.grant_all()
    yield shared
    shared.close_clients()


def describe(*topics: str) -> list[Right]:
    return [on_topic(Operation.DESCRIBE, topic) for topic in topics]


def metadata(
    world: RightsWorld, *names: str, version: int = 12, creates: bool = False
) -> dict[str | None, int]:
    """Error codes by topic; of all topics without `names`."""
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics or None, allow_auto_topic_creation=creates)
    if version < 4:
        request.allow_auto_topic_creation = True
    if version == 0:
        request.topics = topics
    answer = world.call(request, MetadataResponse, version)
    return {topic.name: topic.error_code for topic in answer.topics}


@pytest.mark.parametrize("version", [0, 1, 12])
def test_among_all_topics_those_are_told_that_may_be_described(
    world: RightsWorld, version: int
) -> None:
    world.rights.set(*describe("b", "d"))
    assert metadata(world, version=version) == {"b": 0, "d": 0}
    world.rights.set()
    assert metadata(world, version=version) == {}


@pytest.mark.parametrize(
    ("rights", "outcome"),
    [
        ([], NO_TOPIC),
        ([on_cluster(Operation.CREATE)], NO_TOPIC),
        (describe("new"), NO_TOPIC),
        ([on_topic(Operation.CREATE, "new")], NO_TOPIC),
        ([*describe("new"), on_topic(Operation.CREATE, "other")], NO_TOPIC),
        ([*describe("new"), on_cluster(Operation.CREATE)], ErrorCode.NONE),
        ([*describe("new"), on_topic(Operation.CREATE, "new")], ErrorCode.NONE),
        ([on_topic(Operation.WRITE, "new"), on_topic(Operation.CREATE, "new")], ErrorCode.NONE),
    ],
)
def test_topics_are_created_for_those_who_may_create_and_see_them(
    world: RightsWorld, rights: list[Right], outcome: ErrorCode, request: pytest.FixtureRequest
) -> None:
    name = f"new-{abs(hash(request.node.name))}"
    world.rights.set(
        *((what, kind, name if of == "new" else of) for what, kind, of in rights), *describe("a")
    )
    assert metadata(world, "a", name, creates=True) == {"a": 0, name: outcome}
    exists = name in world.node.broker.services.image.topics.by_name
    assert exists is (outcome is ErrorCode.NONE)


def test_what_is_not_to_be_created_is_unknown(world: RightsWorld) -> None:
    world.rights.set(*describe("absent"))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert metadata(world, "absent", creates=False) == {"absent": unknown}


def pages(world: RightsWorld, limit: int) -> list[tuple[list[str | None], str | None]]:
    """The topics of each page, and which its cursor names."""
    found: list[tuple[list[str | None], str | None]] = []
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(response_partition_limit=limit, cursor=cursor)
        answer = world.call(request, DescribeTopicPartitionsResponse)
        following = answer.next_cursor
        names = [topic.name for topic in answer.topics]
        found.append((names, None if following is None else following.topic_name))
        if following is None:
            return found
        cursor = Cursor(topic_name=following.topic_name, partition_index=following.partition_index)


def test_no_cursor_names_a_hidden_topic(world: RightsWorld) -> None:
    world.rights.set(*describe("b", "d"))
    assert pages(world, 1) == [(["b"], "d"), (["d"], None)]
    world.rights.set(*describe("b"))
    assert pages(world, 1) == [(["b"], None)]
    world.rights.set()
    assert pages(world, 1) == [([], None)]


def test_a_cursor_may_begin_at_what_was_hidden_since(world: RightsWorld) -> None:
    world.rights.set(*describe("d"))
    cursor = Cursor(topic_name="b", partition_index=0)
    request = DescribeTopicPartitionsRequest(response_partition_limit=1, cursor=cursor)
    answer = world.call(request, DescribeTopicPartitionsResponse)
    assert [topic.name for topic in answer.topics] == ["d"]


def test_records_of_other_topics_are_deleted(world: RightsWorld) -> None:
    world.rights.set(on_topic(Operation.DELETE, "b"))
    topics = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(offset=0)])
        for name in ("a", "b", "__consumer_offsets")
    ]
    request = DeleteRecordsRequest(timeout_ms=1000, topics=topics)
    answer = world.call(request, DeleteRecordsResponse)
    assert {topic.name: topic.partitions[0].error_code for topic in answer.topics} == {
        "a": NO_TOPIC,
        "b": ErrorCode.NONE,
        "__consumer_offsets": NO_TOPIC,
    }


def test_a_node_asks_for_the_epochs_of_every_topic(world: RightsWorld) -> None:
    request = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(topic=name, partitions=[OffsetForLeaderPartition(leader_epoch=0)])
            for name in ("a", "b")
        ]
    )

    def errors() -> list[ErrorCode]:
        return errors_of(world.call(request, OffsetForLeaderEpochResponse))

    world.rights.set(on_cluster(Operation.CLUSTER_ACTION))
    assert errors() == [ErrorCode.NONE] * 2
    world.rights.set(*describe("b"))
    assert errors() == [NO_TOPIC, ErrorCode.NONE]


@pytest.mark.parametrize(
    ("right", "outcome"),
    [
        (on_cluster(Operation.IDEMPOTENT_WRITE), ErrorCode.NONE),
        (on_topic(Operation.WRITE, "whatever"), ErrorCode.NONE),
        (on_topic(Operation.READ, "a"), NO_CLUSTER),
        (on_transactional_id(Operation.WRITE, TXN_ID), NO_CLUSTER),
    ],
)
def test_who_may_write_anywhere_gets_a_producer_id(
    world: RightsWorld, right: Right, outcome: ErrorCode
) -> None:
    world.rights.set(right)
    request = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
    answer = world.call(request, InitProducerIdResponse)
    assert answer.error_code == outcome
    assert (answer.producer_id >= 0) is (outcome is ErrorCode.NONE)


def begin(world: RightsWorld, transactional_id: str) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    with world.client() as client:
        answers: list[InitProducerIdResponse] = []

        def begins() -> bool:
            answers.append(client.call(request, InitProducerIdResponse))
            return answers[-1].error_code == ErrorCode.NONE

        wait_until(begins, "a producer id")
    return answers[-1]


def add(world: RightsWorld, transactional_id: str, *topics: str) -> dict[str, int]:
    """The outcome of each topic's only partition."""
    producer = begin(world, transactional_id)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics],
    )
    answer = world.call(request, AddPartitionsToTxnResponse, 3)
    return {
        topic.name: topic.results_by_partition[0].partition_error_code
        for topic in answer.results_by_topic_v3_and_below
    }


def test_all_topics_become_part_of_a_transaction_or_none(world: RightsWorld) -> None:
    write_txn = on_transactional_id(Operation.WRITE, TXN_ID)
    world.rights.set(
        write_txn,
        on_topic(Operation.WRITE, "a"),
        on_topic(Operation.WRITE, "absent"),
        on_topic(Operation.WRITE, CONSUMER_OFFSETS),
    )
    not_attempted = ErrorCode.OPERATION_NOT_ATTEMPTED
    assert add(world, TXN_ID, "a", "b", "absent") == {
        "a": not_attempted,
        "b": NO_TOPIC,
        "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert add(world, TXN_ID, "a", CONSUMER_OFFSETS) == {
        "a": not_attempted,
        CONSUMER_OFFSETS: NO_TOPIC,
    }
    assert add(world, TXN_ID, "a") == {"a": ErrorCode.NONE}


def test_transactions_are_described_without_what_is_hidden(world: RightsWorld) -> None:
    ids = ["t1", "t2"]
    for transactional_id in ids:
        assert set(add(world, transactional_id, "a", "b").values()) == {ErrorCode.NONE}
    world.rights.set(on_transactional_id(Operation.DESCRIBE, "t1"), *describe("b"))
    request = DescribeTransactionsRequest(transactional_ids=ids)
    answer = world.call(request, DescribeTransactionsResponse)
    first, second = answer.transaction_states
    assert (first.error_code, [topic.topic for topic in first.topics]) == (ErrorCode.NONE, ["b"])
    assert second.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert (second.transaction_state, second.topics, second.producer_id) == ("", [], 0)
    listed = world.call(ListTransactionsRequest(), ListTransactionsResponse)
    assert [entry.transactional_id for entry in listed.transaction_states] == ["t1"]


@pytest.mark.parametrize(
    ("operation", "outcome"),
    [
        (Operation.ALTER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Operation.CLUSTER_ACTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Operation.DESCRIBE, NO_CLUSTER),
    ],
)
def test_who_administers_may_write_markers(
    world: RightsWorld, operation: Operation, outcome: ErrorCode
) -> None:
    world.rights.set(on_cluster(operation))
    topics = [WritableTxnMarkerTopic(name="absent", partition_indexes=[0])]
    request = WriteTxnMarkersRequest(markers=[WritableTxnMarker(producer_id=7, topics=topics)])
    assert errors_of(world.call(request, WriteTxnMarkersResponse)) == [outcome]


@pytest.mark.parametrize("has_right", [True, False])
async def test_two_phase_commit_is_a_right_of_its_own(has_right: bool) -> None:
    rights = [on_transactional_id(Operation.WRITE, TXN_ID)]
    if has_right:
        rights.append(on_transactional_id(Operation.TWO_PHASE_COMMIT, TXN_ID))

    async def init_producer_id(*_: Any) -> InitProducerIdResponse:
        return InitProducerIdResponse(producer_id=7)

    services: Any = SimpleNamespace(
        authorizer=Rights(*rights),
        transactions=SimpleNamespace(init_producer_id=init_producer_id),
    )
    connection: Any = SimpleNamespace(
        state=None, times=None, peer_host="h", listener_name="PLAINTEXT"
    )
    context = RequestContext(
        ApiKey.INIT_PRODUCER_ID, 6, 1, None, cast("Any", connection), ANONYMOUS
    )
    request = InitProducerIdRequest(
        transactional_id=TXN_ID, enable2_pc=True, producer_id=-1, producer_epoch=-1
    )
    answer = await handle_init_producer_id(services, context, request)
    assert (answer.error_code == ErrorCode.NONE) is has_right
    assert (answer.producer_id == 7) is has_right
