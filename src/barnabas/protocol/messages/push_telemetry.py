"""PushTelemetry: a client delivers its metrics (KIP-714)."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import binary, boolean, int8, int16, int32, uuid
from barnabas.protocol.schema import Message, message


@message(versions="0", flexible="0+", api_key=72, listeners=("broker",))
class PushTelemetryRequest(Message):
    client_instance_id: Uuid = uuid("0+")
    subscription_id: int = int32("0+")
    terminating: bool = boolean("0+")
    compression_type: int = int8("0+")
    metrics: bytes = binary("0+")


@message(versions="0", flexible="0+", api_key=72)
class PushTelemetryResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
