"""ListTransactions: the transactions a broker coordinates (KIP-664, KIP-994, KIP-1152)."""

from barnabas.protocol.fields import array_of, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


@message(versions="0-2", flexible="0+", api_key=66, listeners=("broker",))
class ListTransactionsRequest(Message):
    state_filters: list[str] = array_of(string, "0+")
    producer_id_filters: list[int] = array_of(int64, "0+")
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


@struct
class TransactionState(Struct):
    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    transaction_state: str = string("0+")


@message(versions="0-2", flexible="0+", api_key=66)
class ListTransactionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    unknown_state_filters: list[str] = array_of(string, "0+")
    transaction_states: list[TransactionState] = array_of(TransactionState, "0+")
