"""DescribeTransactions: the state of transactions at their coordinator (KIP-664)."""

from barnabas.protocol.fields import array_of, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0", flexible="0+", api_key=65, listeners=("broker",))
class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = array_of(string, "0+")


@struct
class TopicData(Struct):
    topic: str = string("0+", map_key=True)
    partitions: list[int] = array_of(int32, "0+")


@struct
class TransactionState(Struct):
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
    transaction_states: list[TransactionState] = array_of(TransactionState, "0+")
