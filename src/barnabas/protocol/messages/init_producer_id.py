"""InitProducerId: obtain or renew a producer's id and epoch (KIP-98, KIP-360, KIP-890).

The latest version is unstable: two-phase commit (KIP-939).
"""

from barnabas.protocol.fields import boolean, int16, int32, int64, string
from barnabas.protocol.schema import Message, message


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
