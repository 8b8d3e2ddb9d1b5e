"""Metrics of clients, on a node that shows metrics.

GetTelemetrySubscriptions (key 71), versions 0: KIP-714.

PushTelemetry (key 72), versions 0: KIP-714.

`node/broker/client_telemetry.py` keeps them. Every client may push, as in Kafka.
"""

from barnabas.base.ids import ZERO_UUID
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.client_telemetry import ACCEPTED_CODECS, TEXT_MAX, ClientFacts
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.ids import random_uuid
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from barnabas.protocol.records.batch import CorruptBatchError


def handle_get_telemetry_subscriptions(
    services: BrokerServices, context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """Return the client's subscription, and an instance id if it has none."""
    telemetry = services.client_telemetry
    assert telemetry is not None, "it is served only where metrics are shown"
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = random_uuid(services.random)
    subscription = telemetry.subscribe(
        instance_id, _facts(context), services.image.configs, services.clock.monotonic_ms()
    )
    if subscription is None:
        return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    return GetTelemetrySubscriptionsResponse(
        error_code=ErrorCode.NONE,
        client_instance_id=instance_id,
        subscription_id=subscription.id,
        accepted_compression_types=[int(codec) for codec in ACCEPTED_CODECS],
        push_interval_ms=subscription.interval_ms,
        telemetry_max_bytes=telemetry.size_max_bytes,
        delta_temporality=False,
        requested_metrics=list(subscription.metrics),
    )


async def handle_push_telemetry(
    services: BrokerServices, context: RequestContext, request: PushTelemetryRequest
) -> PushTelemetryResponse:
    """Keep the metrics that the client pushed. An empty push changes nothing."""
    telemetry = services.client_telemetry
    assert telemetry is not None, "it is served only where metrics are shown"
    instance_id = request.client_instance_id
    error = telemetry.check(
        instance_id,
        _facts(context),
        request,
        services.image.configs,
        services.clock.monotonic_ms(),
    )
    if error is ErrorCode.NONE and request.metrics:
        data = bytes(request.metrics)
        try:
            points = await telemetry.read(request.compression_type, data)
        except (DecodeError, CorruptBatchError):
            error = ErrorCode.INVALID_RECORD
            telemetry.refuse(instance_id, error)
        else:
            telemetry.take(instance_id, points)
    return PushTelemetryResponse(error_code=error)


def _facts(context: RequestContext) -> ClientFacts:
    software = client_state(context.connection).software
    return ClientFacts(
        (context.client_id or "")[:TEXT_MAX],
        "" if software is None else software.name[:TEXT_MAX],
        "" if software is None else software.version[:TEXT_MAX],
        context.client_host,
        context.connection.peer_port,
    )
