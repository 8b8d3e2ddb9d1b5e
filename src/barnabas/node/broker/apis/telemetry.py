"""Metrics of clients, on a node that shows metrics.

GetTelemetrySubscriptions (key 71), versions 0: KIP-714.

PushTelemetry (key 72), versions 0: KIP-714.

`node/broker/client_telemetry.py` keeps them. Everybody may push, as in Kafka.
"""

from barnabas.base.ids import ZERO_UUID
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.client_telemetry import ACCEPTED_CODECS, ClientFacts
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.ids import random_uuid
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)


def handle_get_telemetry_subscriptions(
    services: BrokerServices, context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    """What the client is to push; one without an instance id gets one."""
    telemetry = services.client_telemetry
    assert telemetry is not None, "it is served only where metrics are shown"
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = random_uuid(services.random)
    software = client_state(context.connection).software
    facts = ClientFacts(
        context.client_id or "",
        "" if software is None else software.name,
        "" if software is None else software.version,
        context.client_host,
        context.connection.peer_port,
    )
    now_ms = services.clock.monotonic_ms()
    subscription = telemetry.subscribe(instance_id, facts, services.image.configs, now_ms)
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


def handle_push_telemetry(
    services: BrokerServices, context: RequestContext, request: PushTelemetryRequest
) -> PushTelemetryResponse:
    """Keep what the client has measured."""
    telemetry = services.client_telemetry
    assert telemetry is not None, "it is served only where metrics are shown"
    error = telemetry.push(
        request.client_instance_id,
        request.subscription_id,
        request.compression_type,
        request.metrics,
        services.image.configs,
        services.clock.monotonic_ms(),
        is_terminating=request.terminating,
    )
    return PushTelemetryResponse(error_code=error)
