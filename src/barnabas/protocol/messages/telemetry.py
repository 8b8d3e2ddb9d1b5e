"""Telemetry of clients: GetTelemetrySubscriptions, PushTelemetry."""

from barnabas.base.ids import Uuid
from barnabas.protocol.fields import array_of, binary, boolean, int8, int16, int32, string, uuid
from barnabas.protocol.schema import Message, message

# GetTelemetrySubscriptions: which metrics the cluster wants from a client (KIP-714).


@message(versions="0", flexible="0+", api_key=71, listeners=("broker",))
class GetTelemetrySubscriptionsRequest(Message):
    client_instance_id: Uuid = uuid("0+")


@message(versions="0", flexible="0+", api_key=71)
class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_instance_id: Uuid = uuid("0+")
    subscription_id: int = int32("0+")
    accepted_compression_types: list[int] = array_of(int8, "0+")
    push_interval_ms: int = int32("0+")
    telemetry_max_bytes: int = int32("0+")
    delta_temporality: bool = boolean("0+")
    requested_metrics: list[str] = array_of(string, "0+")


# PushTelemetry: a client delivers its metrics (KIP-714).


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
