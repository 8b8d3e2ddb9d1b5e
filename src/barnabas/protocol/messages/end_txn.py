"""EndTxn: commit or abort a transaction (KIP-98, KIP-890)."""

from barnabas.protocol.fields import boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, message


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
