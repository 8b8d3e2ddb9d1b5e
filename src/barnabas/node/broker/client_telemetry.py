"""Metrics that clients push (KIP-714): who is to push what, and what they have pushed last.

A subscription is a resource of kind client-metrics: prefixes of metrics, an interval, and patterns
that pick clients. A client asks for what concerns it and pushes that until it changes. What it has
pushed is kept until it has missed three intervals; all of it is bounded. Source: Kafka's
ClientMetricsManager. Not as there: there is no plugin, the node shows the metrics itself; and
values are asked for as totals, not as deltas, which Prometheus wants.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from barnabas.base.checksum import crc32c
from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.metadata.image import ConfigResourceType, ConfigsImage
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.otlp import read_metrics
from barnabas.protocol.records.batch import Codec, CorruptBatchError
from barnabas.protocol.records.compression import decompress

INSTANCES_MAX: Final = 2000
"""Clients that are remembered; beyond that the one goes that was silent longest."""
SERIES_MAX: Final = 500
"""Of one client; what it pushes beyond that is passed over."""
ALL_SERIES_MAX: Final = 50_000
"""Of all clients together, that are shown."""
TEXT_MAX: Final = 256
"""Characters of a name, or of a label's value."""
UNFOLDED_RATIO_MAX: Final = 16
"""A push may unfold to so many times `telemetry.max.bytes`."""
PUSH_INTERVAL_MS: Final = 300_000
MISSED_MAX: Final = 3
ALL_METRICS: Final = "*"
ACCEPTED_CODECS: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order in which clients should choose."""
Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """The words by which subscriptions pick clients."""

    client_id: str
    software_name: str
    software_version: str
    host: str
    port: int

    def value(self, selector: str, instance_id: str) -> str:
        """What a selector of KIP-714 stands for."""
        return {
            "client_instance_id": instance_id,
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.host,
            "client_source_port": str(self.port),
        }.get(selector, "")


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a client is to push."""

    id: int
    metrics: tuple[str, ...]
    interval_ms: int


@dataclass(slots=True)
class Instance:
    """One client."""

    facts: ClientFacts
    subscription: Subscription
    configs: ConfigsImage
    pushed_ms: int = 0
    is_terminating: bool = False
    counters: dict[Series, float] = field(default_factory=dict)
    gauges: dict[Series, float] = field(default_factory=dict)


class ClientTelemetry:
    """The clients of one node. `now_ms` is the monotonic clock's."""

    def __init__(self, size_max_bytes: int) -> None:
        """`size_max_bytes` is telemetry.max.bytes."""
        self.size_max_bytes = size_max_bytes
        self._instances: OrderedDict[Uuid, Instance] = OrderedDict()

    def subscribe(
        self, instance_id: Uuid, facts: ClientFacts, configs: ConfigsImage, now_ms: int
    ) -> Subscription:
        """What a client is to push from now on."""
        known = self._instances.get(instance_id)
        subscription = subscription_of(instance_id, facts, configs)
        if known is None:
            known = Instance(facts, subscription, configs, now_ms)
            self._instances[instance_id] = known
            if len(self._instances) > INSTANCES_MAX:
                self._instances.popitem(last=False)
        known.subscription, known.configs, known.facts = subscription, configs, facts
        self._instances.move_to_end(instance_id)
        return subscription

    def push(
        self,
        instance_id: Uuid,
        subscription_id: int,
        codec: int,
        data: bytes,
        configs: ConfigsImage,
        now_ms: int,
        *,
        is_terminating: bool,
    ) -> ErrorCode:
        """Take what a client has measured, in place of what it pushed before."""
        instance = self._instances.get(instance_id)
        if instance_id == ZERO_UUID or (instance is not None and instance.is_terminating):
            return ErrorCode.INVALID_REQUEST
        if instance is None:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if instance.configs is not configs:
            instance.subscription = subscription_of(instance_id, instance.facts, configs)
            instance.configs = configs
        if subscription_id != instance.subscription.id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if codec != Codec.NONE and codec not in ACCEPTED_CODECS:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(data) > self.size_max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        try:
            size_max = self.size_max_bytes * UNFOLDED_RATIO_MAX
            points = read_metrics(decompress(Codec(codec), data, size_max=size_max))
        except (DecodeError, CorruptBatchError):
            return ErrorCode.INVALID_RECORD
        gauges: dict[Series, float] = {}
        counters = instance.counters
        for point in points:
            if len(gauges) + len(counters) >= SERIES_MAX:
                break
            series = (point.name[:TEXT_MAX], point.attributes[:16])
            if not point.is_counter:
                gauges[series] = point.value
            elif point.is_delta:
                counters[series] = counters.get(series, 0.0) + point.value
            else:
                counters[series] = point.value
        instance.gauges = gauges
        instance.pushed_ms = now_ms
        instance.is_terminating = is_terminating
        self._instances.move_to_end(instance_id)
        return ErrorCode.NONE

    def items(self, now_ms: int) -> Iterator[tuple[Uuid, Instance]]:
        """The clients that have pushed lately; those that have not are forgotten."""
        for instance_id, instance in list(self._instances.items()):
            if now_ms - instance.pushed_ms > MISSED_MAX * instance.subscription.interval_ms:
                del self._instances[instance_id]
            elif instance.gauges or instance.counters:
                yield instance_id, instance


def subscription_of(instance_id: Uuid, facts: ClientFacts, configs: ConfigsImage) -> Subscription:
    """What all subscriptions together want of a client."""
    metrics: set[str] = set()
    interval_ms = 0
    for name in configs.names(ConfigResourceType.CLIENT_METRICS):
        values = configs.for_resource(ConfigResourceType.CLIENT_METRICS, name)
        if not _picks(values, facts, instance_id.hex()):
            continue
        metrics.update(_entries(values.get("metrics", "")))
        own_ms = int(values.get("interval.ms", PUSH_INTERVAL_MS))
        interval_ms = min(interval_ms or own_ms, own_ms)
    wanted = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    interval_ms = interval_ms or PUSH_INTERVAL_MS
    text = f"{','.join(wanted)}/{interval_ms}".encode()
    return Subscription(crc32c(instance_id + text) & 0x7FFFFFFF, wanted, interval_ms)


def _picks(values: Mapping[str, str], facts: ClientFacts, instance_id: str) -> bool:
    """Whether all patterns of a subscription fit a client."""
    for entry in _entries(values.get("match", "")):
        selector, _, pattern = entry.partition("=")
        found = _compiled(pattern.strip())
        if found.fullmatch(facts.value(selector.strip(), instance_id)) is None:
            return False
    return True


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
