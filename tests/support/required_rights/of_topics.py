"""Rights required by the APIs of topics, their records and transactions."""

from __future__ import annotations

from barnabas.protocol import apis
from barnabas.protocol.acls import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import fetch, metadata, partitions, produce, topics, transactions
from barnabas.protocol.schema import Message
from support.logs import make_batch
from support.required_rights.needs import Case, cluster, group, topic, transaction
from support.required_rights.rights_world import METADATA, OFFSET, World

NEW_PARTITIONS = 3


def producer_of(world: World) -> tuple[int, int]:
    """Id and epoch of a producer of the case's transactional id."""
    asked = transactions.InitProducerIdRequest(
        transactional_id=world.transactional_id, transaction_timeout_ms=60_000
    )
    made = world.call(asked, 5)
    assert not made.error_code, made.error_code
    return made.producer_id, made.producer_epoch


def begun_transaction(world: World) -> tuple[int, int]:
    """A producer with a transaction of which the case's topic is part."""
    world.make_topic()
    producer = producer_of(world)
    begun = transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=world.transactional_id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[_to_txn(world)],
    )
    (result,) = world.call(begun, 3).results_by_topic_v3_and_below
    assert not result.results_by_partition[0].partition_error_code
    return producer


def _to_txn(world: World) -> transactions.AddPartitionsToTxnTopic:
    return transactions.AddPartitionsToTxnTopic(name=world.topic, partitions=[0])


def _produce(world: World) -> Message:
    world.make_topic()
    return _produce_request(world, bytes(make_batch("new")), None)


def _produce_in_transaction(world: World) -> Message:
    producer_id, epoch = begun_transaction(world)
    batch = make_batch("new", producer=(producer_id, epoch, 0), transactional=True)
    return _produce_request(world, bytes(batch), world.transactional_id)


def _produce_request(world: World, records: bytes, transactional_id: str | None) -> Message:
    data = produce.TopicProduceData(
        name=world.topic,
        topic_id=world.topic_id,
        partition_data=[produce.PartitionProduceData(index=0, records=records)],
    )
    return produce.ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=5000, topic_data=[data]
    )


def _fetch(world: World) -> Message:
    world.make_topic()
    return _fetch_request(world)


def _fetch_as_follower(world: World) -> Message:
    world.make_topic()
    request = _fetch_request(world)
    request.replica_state = fetch.ReplicaState(replica_id=99, replica_epoch=1)
    return request


def _fetch_as_old_follower(world: World) -> Message:
    world.make_topic()
    request = _fetch_request(world)
    request.replica_id = 99
    return request


def _fetch_request(world: World) -> fetch.FetchRequest:
    wanted = fetch.FetchTopic(
        topic=world.topic,
        topic_id=world.topic_id,
        partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=1 << 20)],
    )
    return fetch.FetchRequest(max_wait_ms=1, min_bytes=1, topics=[wanted])


def _list_offsets(world: World) -> Message:
    world.make_topic()
    wanted = fetch.ListOffsetsPartition(partition_index=0, timestamp=-1)
    named = fetch.ListOffsetsTopic(name=world.topic, partitions=[wanted])
    return fetch.ListOffsetsRequest(replica_id=-1, topics=[named])


def _metadata(world: World) -> Message:
    world.make_topic()
    return metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=world.topic)])


def _metadata_by_id(world: World) -> Message:
    world.make_topic()
    asked = metadata.MetadataRequestTopic(topic_id=world.topic_id, name=None)
    return metadata.MetadataRequest(topics=[asked])


def _metadata_of_all(world: World) -> Message:
    world.make_topic()
    return metadata.MetadataRequest(topics=None)


def _metadata_that_creates(world: World) -> Message:
    return metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=world.topic)], allow_auto_topic_creation=True
    )


def _describe_partitions(world: World) -> Message:
    world.make_topic()
    return metadata.DescribeTopicPartitionsRequest(topics=[metadata.TopicRequest(name=world.topic)])


def _describe_all_partitions(world: World) -> Message:
    world.make_topic()
    return metadata.DescribeTopicPartitionsRequest(topics=[])


def _leader_epochs(world: World) -> Message:
    world.make_topic()
    wanted = fetch.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    named = fetch.OffsetForLeaderTopic(topic=world.topic, partitions=[wanted])
    return fetch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[named])


def _delete_records(world: World) -> Message:
    world.make_topic()
    wanted = topics.DeleteRecordsPartition(partition_index=0, offset=1)
    named = topics.DeleteRecordsTopic(name=world.topic, partitions=[wanted])
    return topics.DeleteRecordsRequest(topics=[named], timeout_ms=5000)


def _create_topics(world: World) -> Message:
    made = topics.CreatableTopic(name=world.topic, num_partitions=1, replication_factor=1)
    return topics.CreateTopicsRequest(topics=[made], timeout_ms=5000)


def _delete_topics(world: World) -> Message:
    world.make_topic()
    doomed = topics.DeleteTopicState(name=world.topic)
    return topics.DeleteTopicsRequest(topics=[doomed], timeout_ms=5000)


def _delete_topics_by_id(world: World) -> Message:
    world.make_topic()
    doomed = topics.DeleteTopicState(name=None, topic_id=world.topic_id)
    return topics.DeleteTopicsRequest(topics=[doomed], timeout_ms=5000)


def _create_partitions(world: World) -> Message:
    world.make_topic()
    grown = topics.CreatePartitionsTopic(name=world.topic, count=NEW_PARTITIONS, assignments=None)
    return topics.CreatePartitionsRequest(topics=[grown], timeout_ms=5000)


def _elect_leaders(world: World) -> Message:
    world.make_topic()
    named = partitions.TopicPartitions(topic=world.topic, partitions=[0])
    return partitions.ElectLeadersRequest(topic_partitions=[named], timeout_ms=5000)


def _reassign(world: World) -> Message:
    world.make_topic()
    moved = partitions.ReassignablePartition(partition_index=0, replicas=None)
    named = partitions.ReassignableTopic(name=world.topic, partitions=[moved])
    return partitions.AlterPartitionReassignmentsRequest(topics=[named], timeout_ms=5000)


def _list_reassignments(world: World) -> Message:
    return partitions.ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000)


# Producers and transactions


def _init_transactional(world: World) -> Message:
    return transactions.InitProducerIdRequest(
        transactional_id=world.transactional_id, transaction_timeout_ms=60_000
    )


def _init_idempotent(world: World) -> Message:
    return transactions.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


def _add_partitions(world: World) -> Message:
    world.make_topic()
    producer_id, epoch = producer_of(world)
    return transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=world.transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[_to_txn(world)],
    )


def _verify_partitions(world: World) -> Message:
    producer_id, epoch = begun_transaction(world)
    asked = transactions.AddPartitionsToTxnTransaction(
        transactional_id=world.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        verify_only=True,
        topics=[_to_txn(world)],
    )
    return transactions.AddPartitionsToTxnRequest(transactions=[asked])


def _add_offsets(world: World) -> Message:
    producer_id, epoch = producer_of(world)
    return transactions.AddOffsetsToTxnRequest(
        transactional_id=world.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=world.group,
    )


def _end_txn(world: World) -> Message:
    producer_id, epoch = begun_transaction(world)
    return transactions.EndTxnRequest(
        transactional_id=world.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=False,
    )


def _commit_in_txn(world: World) -> Message:
    world.make_topic()
    producer_id, epoch = producer_of(world)
    added = transactions.AddOffsetsToTxnRequest(
        transactional_id=world.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=world.group,
    )
    assert not world.call(added, 3).error_code
    committed = transactions.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=OFFSET, committed_metadata=METADATA
    )
    return transactions.TxnOffsetCommitRequest(
        transactional_id=world.transactional_id,
        group_id=world.group,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[transactions.TxnOffsetCommitRequestTopic(name=world.topic, partitions=[committed])],
    )


def _write_markers(world: World) -> Message:
    producer_id, epoch = begun_transaction(world)
    batch = make_batch("new", producer=(producer_id, epoch, 0), transactional=True)
    written = world.call(_produce_request(world, bytes(batch), world.transactional_id), 11)
    assert not written.responses[0].partition_responses[0].error_code
    named = transactions.WritableTxnMarkerTopic(name=world.topic, partition_indexes=[0])
    marker = transactions.WritableTxnMarker(
        producer_id=producer_id, producer_epoch=epoch, transaction_result=False, topics=[named]
    )
    return transactions.WriteTxnMarkersRequest(markers=[marker])


def _describe_producers(world: World) -> Message:
    world.make_topic()
    named = transactions.TopicRequest(name=world.topic, partition_indexes=[0])
    return transactions.DescribeProducersRequest(topics=[named])


def _describe_transactions(world: World) -> Message:
    begun_transaction(world)
    return transactions.DescribeTransactionsRequest(transactional_ids=[world.transactional_id])


def _list_transactions(world: World) -> Message:
    begun_transaction(world)
    return transactions.ListTransactionsRequest()


_CREATE = cluster(Operation.CREATE).or_(topic(Operation.CREATE))
_TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED

CASES = (
    Case(apis.PRODUCE, "", [topic(Operation.WRITE)], _produce),
    Case(apis.PRODUCE, "by name", [topic(Operation.WRITE)], _produce, 12),
    Case(
        apis.PRODUCE,
        "in a transaction",
        [transaction(Operation.WRITE), topic(Operation.WRITE)],
        _produce_in_transaction,
        11,
    ),
    Case(apis.FETCH, "", [topic(Operation.READ)], _fetch),
    Case(apis.FETCH, "by name", [topic(Operation.READ)], _fetch, 12),
    Case(
        apis.FETCH,
        "as a follower",
        [cluster(Operation.CLUSTER_ACTION).answered(_TOPIC_REFUSED)],
        _fetch_as_follower,
        succeeds_with=frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER}),
    ),
    Case(
        apis.FETCH,
        "as a follower by name",
        [cluster(Operation.CLUSTER_ACTION).answered(_TOPIC_REFUSED)],
        _fetch_as_old_follower,
        12,
        succeeds_with=frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER}),
    ),
    Case(apis.LIST_OFFSETS, "", [topic(Operation.DESCRIBE)], _list_offsets),
    Case(apis.METADATA, "", [topic(Operation.DESCRIBE)], _metadata),
    Case(apis.METADATA, "by id", [topic(Operation.DESCRIBE)], _metadata_by_id),
    Case(apis.METADATA, "of all", [topic(Operation.DESCRIBE).hidden], _metadata_of_all),
    Case(
        apis.METADATA,
        "that creates",
        [topic(Operation.DESCRIBE), _CREATE.answered(_TOPIC_REFUSED)],
        _metadata_that_creates,
        succeeds_with=frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}),
    ),
    Case(apis.CREATE_TOPICS, "", [_CREATE.answered(_TOPIC_REFUSED)], _create_topics, 4),
    Case(
        apis.CREATE_TOPICS,
        "with its configuration told",
        [_CREATE.answered(_TOPIC_REFUSED), topic(Operation.DESCRIBE_CONFIGS).only_told],
        _create_topics,
    ),
    Case(
        apis.DELETE_TOPICS,
        "",
        [
            topic(Operation.DESCRIBE).or_(cluster(Operation.DELETE)),
            topic(Operation.DELETE).or_(cluster(Operation.DELETE)),
        ],
        _delete_topics,
    ),
    Case(
        apis.DELETE_TOPICS,
        "by id",
        [topic(Operation.DELETE).or_(cluster(Operation.DELETE)).named],
        _delete_topics_by_id,
    ),
    Case(apis.DELETE_RECORDS, "", [topic(Operation.DELETE)], _delete_records),
    Case(
        apis.INIT_PRODUCER_ID,
        "",
        [cluster(Operation.IDEMPOTENT_WRITE).or_(topic(Operation.WRITE))],
        _init_idempotent,
    ),
    Case(
        apis.INIT_PRODUCER_ID,
        "for transactions",
        [transaction(Operation.WRITE)],
        _init_transactional,
    ),
    Case(
        apis.OFFSET_FOR_LEADER_EPOCH,
        "",
        [topic(Operation.DESCRIBE).or_(cluster(Operation.CLUSTER_ACTION))],
        _leader_epochs,
    ),
    Case(
        apis.ADD_PARTITIONS_TO_TXN,
        "",
        [transaction(Operation.WRITE), topic(Operation.WRITE)],
        _add_partitions,
        3,
    ),
    Case(
        apis.ADD_PARTITIONS_TO_TXN,
        "of another broker",
        [cluster(Operation.CLUSTER_ACTION)],
        _verify_partitions,
    ),
    Case(
        apis.ADD_OFFSETS_TO_TXN,
        "",
        [transaction(Operation.WRITE), group(Operation.READ)],
        _add_offsets,
        3,
    ),
    Case(apis.END_TXN, "", [transaction(Operation.WRITE)], _end_txn),
    Case(
        apis.WRITE_TXN_MARKERS,
        "",
        [cluster(Operation.ALTER).or_(cluster(Operation.CLUSTER_ACTION))],
        _write_markers,
    ),
    Case(
        apis.TXN_OFFSET_COMMIT,
        "",
        [transaction(Operation.WRITE), group(Operation.READ), topic(Operation.READ)],
        _commit_in_txn,
        3,
    ),
    Case(apis.CREATE_PARTITIONS, "", [topic(Operation.ALTER)], _create_partitions),
    Case(
        apis.ELECT_LEADERS,
        "",
        [cluster(Operation.ALTER)],
        _elect_leaders,
        succeeds_with=frozenset({ErrorCode.ELECTION_NOT_NEEDED}),
    ),
    Case(
        apis.ALTER_PARTITION_REASSIGNMENTS,
        "",
        [cluster(Operation.ALTER)],
        _reassign,
        succeeds_with=frozenset({ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}),
    ),
    Case(apis.LIST_PARTITION_REASSIGNMENTS, "", [cluster(Operation.DESCRIBE)], _list_reassignments),
    Case(apis.DESCRIBE_PRODUCERS, "", [topic(Operation.READ)], _describe_producers),
    Case(
        apis.DESCRIBE_TRANSACTIONS,
        "",
        [transaction(Operation.DESCRIBE), topic(Operation.DESCRIBE).hidden],
        _describe_transactions,
    ),
    Case(
        apis.LIST_TRANSACTIONS,
        "",
        [transaction(Operation.DESCRIBE).hidden],
        _list_transactions,
    ),
    Case(apis.DESCRIBE_TOPIC_PARTITIONS, "", [topic(Operation.DESCRIBE)], _describe_partitions),
    Case(
        apis.DESCRIBE_TOPIC_PARTITIONS,
        "of all",
        [topic(Operation.DESCRIBE).hidden],
        _describe_all_partitions,
    ),
)
