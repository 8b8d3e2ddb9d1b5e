"""AddPartitionsToTxn: make partitions part of a transaction (KIP-98).

From version 4 on only brokers ask, for several transactions at once and possibly just to verify
(KIP-890). The fields `v3_and_below_*` are what clients send and read.
"""

from barnabas.protocol.fields import array_of, boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


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
