"""For each API of records and transactions: which rights it needs, and what happens without.

Sources: Kafka's KafkaApis and AclAuthorizer's table in its documentation; KIP-679, 890, 932, 939.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from barnabas.base.ids import Uuid
from barnabas.broker.fetch.reading import REPLICA_STATE_FROM
from barnabas.protocol.acls import Operation
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    delete_records,
    delete_share_group_state,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    end_txn,
    fetch,
    init_producer_id,
    initialize_share_group_state,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
    read_share_group_state,
    read_share_group_state_summary,
    share_acknowledge,
    share_fetch,
    txn_offset_commit,
    write_share_group_state,
    write_txn_markers,
)
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.protocol.schema import Message
from support.logs import make_batch
from support.rights import (
    Right,
    RightsWorld,
    errors_of,
    on_cluster,
    on_group,
    on_topic,
    on_transactional_id,
)

TOPIC, ABSENT, GROUP, TXN_ID = "secret", "absent", "g", "txn"
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_TXN = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
UNKNOWN_ID = Uuid(bytes(range(16)))
BATCH = bytes(encode_batch([Record(timestamp=0, value=b"v")]))
TRANSACTIONAL_BATCH = bytes(make_batch("v", producer=(7, 0, 0), transactional=True))
MEMBER = "m"

WRITE, READ = on_topic(Operation.WRITE, TOPIC), on_topic(Operation.READ, TOPIC)
DESCRIBE, DELETE = on_topic(Operation.DESCRIBE, TOPIC), on_topic(Operation.DELETE, TOPIC)
WRITE_TXN = on_transactional_id(Operation.WRITE, TXN_ID)
READ_GROUP = on_group(Operation.READ, GROUP)
CLUSTER_ACTION = on_cluster(Operation.CLUSTER_ACTION)


class Case(NamedTuple):
    """A request for a topic, by name and id, that needs all of `needed`, asked for in that order.

    Each is with the error of its lack.
    """

    request: Callable[[str, Uuid], Message]
    response: type[Message]
    needed: list[tuple[Right, ErrorCode]]
    version: int | None = None
    is_by_name: bool = True
    """Whether the answer must not tell whether there is the topic."""


def produce_request(
    topic: str, topic_id: Uuid, batch: bytes = BATCH, transactional_id: str | None = None
) -> Message:
    data = produce.PartitionProduceData(index=0, records=batch)
    named = produce.TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])
    return produce.ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=1000, topic_data=[named]
    )


def fetch_request(topic: str, topic_id: Uuid, version: int = 12, replica_id: int = -1) -> Message:
    asked = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return fetch.FetchRequest(
        replica_id=replica_id if version < REPLICA_STATE_FROM else -1,
        replica_state=fetch.ReplicaState(
            replica_id=replica_id if version >= REPLICA_STATE_FROM else -1
        ),
        max_wait_ms=0,
        topics=[fetch.FetchTopic(topic=topic, topic_id=topic_id, partitions=[asked])],
    )


def share_state(module: Any, prefix: str, name: str, **fields: Any) -> Callable[..., Message]:
    def make(topic: str, topic_id: Uuid) -> Message:
        data = module.PartitionData(partition=0, **fields)
        struct = getattr(module, f"{prefix}Data")
        topics = [struct(topic_id=topic_id, partitions=[data])]
        request: Message = getattr(module, f"{name}Request")(group_id=GROUP, topics=topics)
        return request

    return make


CASES = {
    "Produce": Case(produce_request, produce.ProduceResponse, [(WRITE, NO_TOPIC)], 12),
    "Produce by id": Case(
        produce_request, produce.ProduceResponse, [(WRITE, NO_TOPIC)], 13, is_by_name=False
    ),
    "Produce in a transaction": Case(
        lambda *topic: produce_request(*topic, batch=TRANSACTIONAL_BATCH, transactional_id=TXN_ID),
        produce.ProduceResponse,
        [(WRITE_TXN, NO_TXN), (WRITE, NO_TOPIC)],
        11,
    ),
    "Fetch": Case(fetch_request, fetch.FetchResponse, [(READ, NO_TOPIC)], 12),
    "Fetch by id": Case(
        fetch_request, fetch.FetchResponse, [(READ, NO_TOPIC)], 17, is_by_name=False
    ),
    "Fetch as a follower": Case(
        lambda *topic: fetch_request(*topic, version=12, replica_id=1),
        fetch.FetchResponse,
        [(CLUSTER_ACTION, NO_TOPIC)],
        12,
    ),
    "Fetch as a follower by id": Case(
        lambda *topic: fetch_request(*topic, version=17, replica_id=1),
        fetch.FetchResponse,
        [(CLUSTER_ACTION, NO_TOPIC)],
        17,
        is_by_name=False,
    ),
    "ListOffsets": Case(
        lambda topic, _: list_offsets.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=topic,
                    partitions=[list_offsets.ListOffsetsPartition(timestamp=-1)],
                )
            ],
        ),
        list_offsets.ListOffsetsResponse,
        [(DESCRIBE, NO_TOPIC)],
    ),
    "OffsetForLeaderEpoch": Case(
        lambda topic, _: offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(leader_epoch=0)],
                )
            ]
        ),
        offset_for_leader_epoch.OffsetForLeaderEpochResponse,
        [(DESCRIBE, NO_TOPIC)],
    ),
    "Metadata": Case(
        lambda topic, _: metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        metadata.MetadataResponse,
        [(DESCRIBE, NO_TOPIC)],
    ),
    "Metadata by id": Case(
        lambda _, topic_id: metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=None, topic_id=topic_id)]
        ),
        metadata.MetadataResponse,
        [(DESCRIBE, NO_TOPIC)],
        is_by_name=False,
    ),
    "DescribeTopicPartitions": Case(
        lambda topic, _: describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=topic)]
        ),
        describe_topic_partitions.DescribeTopicPartitionsResponse,
        [(DESCRIBE, NO_TOPIC)],
    ),
    "DeleteRecords": Case(
        lambda topic, _: delete_records.DeleteRecordsRequest(
            timeout_ms=1000,
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=topic, partitions=[delete_records.DeleteRecordsPartition(offset=1)]
                )
            ],
        ),
        delete_records.DeleteRecordsResponse,
        [(DELETE, NO_TOPIC)],
    ),
    "InitProducerId": Case(
        lambda *_: init_producer_id.InitProducerIdRequest(
            transactional_id=TXN_ID, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
        ),
        init_producer_id.InitProducerIdResponse,
        [(WRITE_TXN, NO_TXN)],
    ),
    "InitProducerId without a transaction": Case(
        lambda *_: init_producer_id.InitProducerIdRequest(
            transactional_id=None, producer_id=-1, producer_epoch=-1
        ),
        init_producer_id.InitProducerIdResponse,
        [(on_cluster(Operation.IDEMPOTENT_WRITE), NO_CLUSTER)],
    ),
    "AddPartitionsToTxn": Case(
        lambda topic, _: add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TXN_ID,
            v3_and_below_producer_id=7,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=[0])
            ],
        ),
        add_partitions_to_txn.AddPartitionsToTxnResponse,
        [(WRITE_TXN, NO_TXN), (WRITE, NO_TOPIC)],
        3,
    ),
    "AddPartitionsToTxn of a node": Case(
        lambda topic, _: add_partitions_to_txn.AddPartitionsToTxnRequest(
            transactions=[
                add_partitions_to_txn.AddPartitionsToTxnTransaction(
                    transactional_id=TXN_ID,
                    producer_id=7,
                    topics=[
                        add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=[0])
                    ],
                )
            ],
        ),
        add_partitions_to_txn.AddPartitionsToTxnResponse,
        [(CLUSTER_ACTION, NO_CLUSTER)],
    ),
    "AddOffsetsToTxn": Case(
        lambda *_: add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=TXN_ID, producer_id=7, group_id=GROUP
        ),
        add_offsets_to_txn.AddOffsetsToTxnResponse,
        [(WRITE_TXN, NO_TXN), (READ_GROUP, NO_GROUP)],
    ),
    "EndTxn": Case(
        lambda *_: end_txn.EndTxnRequest(transactional_id=TXN_ID, producer_id=7, committed=True),
        end_txn.EndTxnResponse,
        [(WRITE_TXN, NO_TXN)],
    ),
    "TxnOffsetCommit": Case(
        lambda topic, _: txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=TXN_ID,
            group_id=GROUP,
            producer_id=7,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            committed_offset=1, committed_metadata=""
                        )
                    ],
                )
            ],
        ),
        txn_offset_commit.TxnOffsetCommitResponse,
        [(WRITE_TXN, NO_TXN), (READ_GROUP, NO_GROUP), (READ, NO_TOPIC)],
    ),
    "WriteTxnMarkers": Case(
        lambda topic, _: write_txn_markers.WriteTxnMarkersRequest(
            markers=[
                write_txn_markers.WritableTxnMarker(
                    producer_id=7,
                    transaction_result=True,
                    topics=[
                        write_txn_markers.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])
                    ],
                )
            ]
        ),
        write_txn_markers.WriteTxnMarkersResponse,
        [(CLUSTER_ACTION, NO_CLUSTER)],
    ),
    "DescribeProducers": Case(
        lambda topic, _: describe_producers.DescribeProducersRequest(
            topics=[describe_producers.TopicRequest(name=topic, partition_indexes=[0])]
        ),
        describe_producers.DescribeProducersResponse,
        [(READ, NO_TOPIC)],
    ),
    "DescribeTransactions": Case(
        lambda *_: describe_transactions.DescribeTransactionsRequest(transactional_ids=[TXN_ID]),
        describe_transactions.DescribeTransactionsResponse,
        [(on_transactional_id(Operation.DESCRIBE, TXN_ID), NO_TXN)],
    ),
    "ShareFetch": Case(
        lambda _, topic_id: share_fetch.ShareFetchRequest(
            group_id=GROUP,
            member_id=MEMBER,
            max_wait_ms=0,
            max_records=10,
            topics=[
                share_fetch.FetchTopic(
                    topic_id=topic_id, partitions=[share_fetch.FetchPartition(partition_index=0)]
                )
            ],
        ),
        share_fetch.ShareFetchResponse,
        [(READ_GROUP, NO_GROUP), (READ, NO_TOPIC)],
        is_by_name=False,
    ),
    "ShareAcknowledge": Case(
        lambda *_: share_acknowledge.ShareAcknowledgeRequest(
            group_id=GROUP, member_id=MEMBER, share_session_epoch=1
        ),
        share_acknowledge.ShareAcknowledgeResponse,
        [(READ_GROUP, NO_GROUP)],
    ),
    "InitializeShareGroupState": Case(
        share_state(initialize_share_group_state, "InitializeState", "InitializeShareGroupState"),
        initialize_share_group_state.InitializeShareGroupStateResponse,
        [(CLUSTER_ACTION, NO_CLUSTER)],
        is_by_name=False,
    ),
    "ReadShareGroupState": Case(
        share_state(read_share_group_state, "ReadState", "ReadShareGroupState"),
        read_share_group_state.ReadShareGroupStateResponse,
        [(CLUSTER_ACTION, NO_CLUSTER)],
        is_by_name=False,
    ),
    "ReadShareGroupStateSummary": Case(
        share_state(
            read_share_group_state_summary, "ReadStateSummary", "ReadShareGroupStateSummary"
        ),
        read_share_group_state_summary.ReadShareGroupStateSummaryResponse,
        [(CLUSTER_ACTION, NO_CLUSTER)],
        is_by_name=False,
    ),
    "WriteShareGroupState": Case(
        share_state(write_share_group_state, "WriteState", "WriteShareGroupState"),
        write_share_group_state.WriteShareGroupStateResponse,
        [(CLUSTER_ACTION, NO_CLUSTER)],
        is_by_name=False,
    ),
    "DeleteShareGroupState": Case(
        share_state(delete_share_group_state, "DeleteState", "DeleteShareGroupState"),
        delete_share_group_state.DeleteShareGroupStateResponse,
        [(CLUSTER_ACTION, NO_CLUSTER)],
        is_by_name=False,
    ),
}


@pytest.fixture(scope="module")
def shared() -> Iterator[RightsWorld]:
    with RightsWorld() as world:
        with world.client() as client:
            client.create_topic(TOPIC)
            client.produce(TOPIC, bytes(encode_batch([Record(timestamp=0, value=b"v")] * 3)))
        yield world


@pytest.fixture
def world(shared: RightsWorld) -> RightsWorld:
    shared.rights.grant_all()
    return shared


def topic_id(world: RightsWorld) -> Uuid:
    found: Uuid = world.node.broker.services.image.topics.by_name[TOPIC].id
    return found


def ask(world: RightsWorld, case: Case, name: str = TOPIC) -> Message:
    identity = topic_id(world) if name == TOPIC else UNKNOWN_ID
    return world.call(case.request(name, identity), case.response, case.version)


def newest_version(response: type[Message]) -> int:
    return next(api.max_stable_version for api in APIS.values() if api.response is response)


WITHOUT = [
    pytest.param(name, lacking, id=f"{name} without {case.needed[lacking][0][0].name}")
    for name, case in CASES.items()
    for lacking in range(len(case.needed))
]


@pytest.mark.parametrize(("name", "lacking"), WITHOUT)
def test_without_a_right_nothing_is_done(world: RightsWorld, name: str, lacking: int) -> None:
    case = CASES[name]
    others = [right for at, (right, _) in enumerate(case.needed) if at != lacking]
    world.rights.set(*others)
    before = world.state()
    response = ask(world, case)
    found = {error for error in errors_of(response) if error is not ErrorCode.NONE}
    assert found == {case.needed[lacking][1]}
    assert world.state() == before


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.is_by_name])
def test_it_is_not_told_whether_a_topic_exists(world: RightsWorld, name: str) -> None:
    case = CASES[name]
    rights = [right for right, _ in case.needed if right[2] != TOPIC]
    if len(rights) == len(case.needed):
        rights = []
    world.rights.set(*rights)
    version = case.version or newest_version(case.response)
    hidden = encode(ask(world, case), version)
    absent = encode(ask(world, case, ABSENT), version)
    assert hidden.replace(TOPIC.encode(), ABSENT.encode()) == absent


@pytest.mark.parametrize("name", list(CASES))
def test_with_these_rights_it_is_authorized(world: RightsWorld, name: str) -> None:
    case = CASES[name]
    world.rights.set(*(right for right, _ in case.needed))
    assert not {
        error for error in errors_of(ask(world, case)) if error.name.endswith("TION_FAILED")
    }
    assert {right for right, _ in case.needed} <= set(world.rights.asked)
