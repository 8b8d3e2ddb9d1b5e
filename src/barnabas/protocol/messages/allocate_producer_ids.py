"""AllocateProducerIds: a broker obtains a block of producer ids (KIP-730)."""

from barnabas.protocol.fields import int16, int32, int64
from barnabas.protocol.schema import Message, message


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
