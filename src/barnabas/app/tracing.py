"""Traces of a node's requests, sent to a collector by OpenTelemetry's protocol (OTLP over HTTP).

A node traces a random share of its requests. The spans are made by OpenTelemetry's SDK, whose own
thread sends them in batches; where the collector is away or slow they are dropped, and no request
waits. Nodes say what the spans are in `node/net/request_trace.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from barnabas import __version__
from barnabas.base.errors import ConfigError, install_hint
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.net.request_trace import Attributes, Span

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span as SdkSpan
    from opentelemetry.trace import Tracer as SdkTracer

ENDPOINT_KEY: Final = "barnabas.tracing.endpoint"
RATIO_KEY: Final = "barnabas.tracing.sample.ratio"
HEADERS_KEY: Final = "barnabas.tracing.headers"
SPANS_WAITING_MAX: Final = 8192
"""Spans that wait to be sent; more are dropped."""
_BATCH_MAX: Final = 512
_DELAY_MS: Final = 1000
_SEND_S: Final = 5
"""Time to send a batch, further attempts included; and to send what is left when a node stops."""


class RequestTracer:
    """Chooses requests at random and makes spans of them, until `close`."""

    def __init__(
        self,
        provider: TracerProvider,
        clock_ns: Callable[[], int],
        ratio: float,
        random: Random,
    ) -> None:
        """`ratio`: the share of the requests that are traced, up to 1."""
        self.clock_ns = clock_ns
        self._provider = provider
        self._tracer: SdkTracer = provider.get_tracer("barnabas", __version__)
        self._ratio = ratio
        self._draw = random.random

    def wants(self) -> bool:
        """Return True if the next request is to be traced."""
        return self._draw() < self._ratio

    def request(self, name: str, started_ns: int, attributes: Attributes) -> Span:
        """Begin the span of a request, which has no parent."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind

        # The clock of spans is the wall's; that of requests does not jump.
        ahead_ns = time.time_ns() - self.clock_ns()
        made = self._tracer.start_span(
            name,
            Context(),
            SpanKind.SERVER,
            dict(attributes),
            start_time=started_ns + ahead_ns,
        )
        return _Span(self._tracer, made, ahead_ns)

    async def close(self) -> None:
        """Send what is left, and no more."""
        await asyncio.to_thread(self._provider.shutdown)


class _Span:
    __slots__ = ("_ahead_ns", "_made", "_tracer")

    def __init__(self, tracer: SdkTracer, made: SdkSpan, ahead_ns: int) -> None:
        self._tracer, self._made, self._ahead_ns = tracer, made, ahead_ns

    def part(self, name: str, started_ns: int, attributes: Attributes) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        parent = set_span_in_context(self._made, Context())
        start = started_ns + self._ahead_ns
        made = self._tracer.start_span(name, parent, attributes=dict(attributes), start_time=start)
        return _Span(self._tracer, made, self._ahead_ns)

    def end(self, ended_ns: int, attributes: Attributes, error: str | None) -> None:
        from opentelemetry.trace import Status, StatusCode

        if attributes:
            self._made.set_attributes(dict(attributes))
        if error is not None:
            self._made.set_status(Status(StatusCode.ERROR, error))
        self._made.end(ended_ns + self._ahead_ns)


def open_tracer(
    config: NodeConfig, clock_ns: Callable[[], int], random: Random
) -> RequestTracer | None:
    """The tracer that a node's configuration asks for; None without one. Raises ConfigError."""
    endpoint = config.get_str_or_none(ENDPOINT_KEY)
    if not endpoint:
        return None
    _check(endpoint)
    headers = _headers(config.get_str_or_none(HEADERS_KEY) or "")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigError(ENDPOINT_KEY, f"{error}: {install_hint('otel')}") from error
    exporter = OTLPSpanExporter(endpoint, headers=headers, timeout=_SEND_S)
    provider = provider_of(config.node_id, exporter)
    return RequestTracer(provider, clock_ns, config.get_float(RATIO_KEY), random)


def provider_of(node_id: int, exporter: SpanExporter) -> TracerProvider:
    """Return the provider that creates a node's spans and exports them. Needs the extra `otel`."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    facts: dict[str, Any] = {
        "service.name": "barnabas",
        "service.version": __version__,
        "service.instance.id": str(node_id),
    }
    provider = TracerProvider(
        sampler=ALWAYS_ON, resource=Resource.create(facts), shutdown_on_exit=False
    )
    processor = BatchSpanProcessor(
        exporter,
        max_queue_size=SPANS_WAITING_MAX,
        schedule_delay_millis=_DELAY_MS,
        max_export_batch_size=_BATCH_MAX,
        export_timeout_millis=_SEND_S * 1000,
    )
    provider.add_span_processor(processor)
    return provider


def _check(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or parts.username is not None or parts.path in ("", "/"):
        raise ConfigError(ENDPOINT_KEY, "is not an address such as http://localhost:4318/v1/traces")


def _headers(text: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for entry in filter(None, text.split(",")):
        name, equals, value = entry.strip().partition("=")
        if not (name and equals and value and (name + value).isprintable()):
            raise ConfigError(HEADERS_KEY, "is not name=value, or a list of them with commas")
        headers[name.lower()] = value
    return headers
