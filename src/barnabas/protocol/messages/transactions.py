"""Producers and transactions: their requests, markers and records."""

from barnabas.protocol.fields import array_of, boolean, int8, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct

# InitProducerId: obtain or renew a producer's id and epoch (KIP-98, KIP-360, KIP-890).
#
# The latest version is unstable: two-phase commit (KIP-939).


@message(
    versions="0-6", flexible="2+", api_key=22, listeners=("broker",), latest_version_unstable=True
)
class InitProducerIdRequest(Message):
    transactional_id: str | None = string("0+", nullable="0+")
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


@message(versions="0-6", flexible="2+", api_key=22)
class InitProducerIdResponse(Message):
    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1)
    producer_epoch: int = int16("0+")
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)


# AllocateProducerIds: a broker obtains a block of producer ids (KIP-730).


@message(versions="0", flexible="0+", api_key=67, listeners=("controller",))
class AllocateProducerIdsRequest(Message):
    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)


@message(versions="0", flexible="0+", api_key=67)
class AllocateProducerIdsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id_start: int = int64("0+")
    producer_id_len: int = int32("0+")


# AddPartitionsToTxn: make partitions part of a transaction (KIP-98).
#
# From version 4 on only brokers ask, for several transactions at once and possibly just to verify
# (KIP-890). The fields `v3_and_below_*` are what clients send and read.


@struct
class AddPartitionsToTxnTopic(Struct):
    name: str = string("0+", map_key=True)
    partitions: list[int] = array_of(int32, "0+")


@struct
class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = string("4+", map_key=True)
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: list[AddPartitionsToTxnTopic] = array_of(AddPartitionsToTxnTopic, "4+")


@message(versions="0-5", flexible="3+", api_key=24, listeners=("broker",))
class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = array_of(
        AddPartitionsToTxnTransaction, "4+"
    )
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array_of(AddPartitionsToTxnTopic, "0-3")


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = int32("0+", map_key=True)
    partition_error_code: int = int16("0+")


@struct
class AddPartitionsToTxnTopicResult(Struct):
    name: str = string("0+", map_key=True)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array_of(
        AddPartitionsToTxnPartitionResult, "0+"
    )


@struct
class AddPartitionsToTxnResult(Struct):
    transactional_id: str = string("4+", map_key=True)
    topic_results: list[AddPartitionsToTxnTopicResult] = array_of(
        AddPartitionsToTxnTopicResult, "4+"
    )


@message(versions="0-5", flexible="3+", api_key=24)
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array_of(
        AddPartitionsToTxnResult, "4+"
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array_of(
        AddPartitionsToTxnTopicResult, "0-3"
    )


# AddOffsetsToTxn: make a group's offsets partition part of a transaction (KIP-98).


@message(versions="0-4", flexible="3+", api_key=25, listeners=("broker",))
class AddOffsetsToTxnRequest(Message):
    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    group_id: str = string("0+")


@message(versions="0-4", flexible="3+", api_key=25)
class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")


# TxnOffsetCommit: store offsets of a group when a transaction commits.
#
# Source: KIP-98, KIP-447, KIP-890.


@struct
class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = int32("0+")
    committed_offset: int = int64("0+")
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string("0+", nullable="0+")


@struct
class TxnOffsetCommitRequestTopic(Struct):
    name: str = string("0+")
    partitions: list[TxnOffsetCommitRequestPartition] = array_of(
        TxnOffsetCommitRequestPartition, "0+"
    )


@message(versions="0-5", flexible="3+", api_key=28, listeners=("broker",))
class TxnOffsetCommitRequest(Message):
    transactional_id: str = string("0+")
    group_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array_of(TxnOffsetCommitRequestTopic, "0+")


@struct
class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class TxnOffsetCommitResponseTopic(Struct):
    name: str = string("0+")
    partitions: list[TxnOffsetCommitResponsePartition] = array_of(
        TxnOffsetCommitResponsePartition, "0+"
    )


@message(versions="0-5", flexible="3+", api_key=28)
class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[TxnOffsetCommitResponseTopic] = array_of(TxnOffsetCommitResponseTopic, "0+")


# EndTxn: commit or abort a transaction (KIP-98, KIP-890).


@message(versions="0-5", flexible="3+", api_key=26, listeners=("broker",))
class EndTxnRequest(Message):
    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    committed: bool = boolean("0+")


@message(versions="0-5", flexible="3+", api_key=26)
class EndTxnResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)


# WriteTxnMarkers: a coordinator has partitions end a transaction (KIP-98).


@struct
class WritableTxnMarkerTopic(Struct):
    name: str = string("0+")
    partition_indexes: list[int] = array_of(int32, "0+")


@struct
class WritableTxnMarker(Struct):
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    transaction_result: bool = boolean("0+")
    topics: list[WritableTxnMarkerTopic] = array_of(WritableTxnMarkerTopic, "0+")
    coordinator_epoch: int = int32("0+")
    transaction_version: int = int8("2+", ignorable=True)


@message(versions="1-2", flexible="1+", api_key=27, listeners=("broker",))
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = array_of(WritableTxnMarker, "0+")


@struct
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")


@struct
class WritableTxnMarkerTopicResult(Struct):
    name: str = string("0+")
    partitions: list[WritableTxnMarkerPartitionResult] = array_of(
        WritableTxnMarkerPartitionResult, "0+"
    )


@struct
class WritableTxnMarkerResult(Struct):
    producer_id: int = int64("0+")
    topics: list[WritableTxnMarkerTopicResult] = array_of(WritableTxnMarkerTopicResult, "0+")


@message(versions="1-2", flexible="1+", api_key=27)
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = array_of(WritableTxnMarkerResult, "0+")


# DescribeTransactions: the state of transactions at their coordinator (KIP-664).


@message(versions="0", flexible="0+", api_key=65, listeners=("broker",))
class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = array_of(string, "0+")


@struct
class TopicData(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[int] = array_of(int32, "0+")


@struct
class DescribeTransactionsTransactionState(Struct):
    error_code: int = int16("0+")
    transactional_id: str = string("0+")
    transaction_state: str = string("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_start_time_ms: int = int64("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    topics: list[TopicData] = array_of(TopicData, "0+")


@message(versions="0", flexible="0+", api_key=65)
class DescribeTransactionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    transaction_states: list[DescribeTransactionsTransactionState] = array_of(
        DescribeTransactionsTransactionState, "0+"
    )


# ListTransactions: the transactions a broker coordinates (KIP-664, KIP-994, KIP-1152).


@message(versions="0-2", flexible="0+", api_key=66, listeners=("broker",))
class ListTransactionsRequest(Message):
    state_filters: list[str] = array_of(string, "0+")
    producer_id_filters: list[int] = array_of(int64, "0+")
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


@struct
class ListTransactionsTransactionState(Struct):
    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    transaction_state: str = string("0+")


@message(versions="0-2", flexible="0+", api_key=66)
class ListTransactionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    unknown_state_filters: list[str] = array_of(string, "0+")
    transaction_states: list[ListTransactionsTransactionState] = array_of(
        ListTransactionsTransactionState, "0+"
    )


# DescribeProducers: the producers that are active in partitions (KIP-664).


@struct
class TopicRequest(Struct):
    name: str = string("0+")
    partition_indexes: list[int] = array_of(int32, "0+")


@message(versions="0", flexible="0+", api_key=61, listeners=("broker",))
class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = array_of(TopicRequest, "0+")


@struct
class ProducerState(Struct):
    producer_id: int = int64("0+")
    producer_epoch: int = int32("0+")
    last_sequence: int = int32("0+", default=-1)
    last_timestamp: int = int64("0+", default=-1)
    coordinator_epoch: int = int32("0+")
    current_txn_start_offset: int = int64("0+", default=-1)


@struct
class PartitionResponse(Struct):
    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    active_producers: list[ProducerState] = array_of(ProducerState, "0+")


@struct
class TopicResponse(Struct):
    name: str = string("0+")
    partitions: list[PartitionResponse] = array_of(PartitionResponse, "0+")


@message(versions="0", flexible="0+", api_key=61)
class DescribeProducersResponse(Message):
    throttle_time_ms: int = int32("0+")
    topics: list[TopicResponse] = array_of(TopicResponse, "0+")


# Records of `__transaction_state` (KIP-98, KIP-890).


@message(versions="0", api_key=0)
class TransactionLogKey(Message):
    transactional_id: str = string("0")


@struct
class PartitionsSchema(Struct):
    topic: str = string("0+")
    partition_ids: list[int] = array_of(int32, "0+")


@message(versions="0-1", flexible="1+", api_key=0)
class TransactionLogValue(Message):
    producer_id: int = int64("0+")
    previous_producer_id: int = int64("1+", default=-1, tagged="1+", tag=0)
    next_producer_id: int = int64("1+", default=-1, tagged="1+", tag=1)
    producer_epoch: int = int16("0+")
    next_producer_epoch: int = int16("1+", default=-1, tagged="1+", tag=3)
    transaction_timeout_ms: int = int32("0+")
    transaction_status: int = int8("0+")
    transaction_partitions: list[PartitionsSchema] | None = array_of(
        PartitionsSchema, "0+", nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = int64("0+")
    transaction_start_timestamp_ms: int = int64("0+")
    client_transaction_version: int = int16("1+", tagged="1+", tag=2)


TRANSACTION_RECORDS: dict[int, tuple[type[Message], type[Message]]] = {
    0: (TransactionLogKey, TransactionLogValue),
}
"""Record type to its key and value."""
