"""AddOffsetsToTxn: make a group's offsets partition part of a transaction (KIP-98)."""

from barnabas.protocol.fields import int16, int32, int64, string
from barnabas.protocol.schema import Message, message


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
