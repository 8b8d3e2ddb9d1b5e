"""Records of `__transaction_state` (KIP-98, KIP-890)."""

from barnabas.protocol.fields import array_of, int8, int16, int32, int64, string
from barnabas.protocol.schema import Message, Struct, message, struct


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
