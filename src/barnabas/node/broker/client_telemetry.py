"""Metrics that clients push (KIP-714): what each client should push, and what it pushed last.

A subscription is a resource of kind client-metrics: prefixes of metrics, an interval, and patterns
that select clients. A client asks for its subscription and pushes those metrics until the
subscription changes. The ids of instances and subscriptions mean the same on every node, so a
client may ask one node and push to another. Everything kept is bounded. Source: Kafka's
ClientMetricsManager and ClientMetricsInstance. Different from Kafka: there is no plugin, the node
shows the metrics itself; and it asks for totals instead of deltas, because Prometheus wants totals.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from barnabas.base.checksum import crc32c
from barnabas.base.ids import ZERO_UUID, Uuid, uuid_to_text
from barnabas.node.metadata.image import ConfigResourceType, ConfigsImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.telemetry import PushTelemetryRequest
from barnabas.protocol.otlp import Point, read_metrics
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.compression import decompress

INSTANCES_MAX: Final = 2000
"""Clients that are remembered. One more replaces the client that was silent longest."""
SERIES_MAX: Final = 500
"""Series kept of one client; the rest of its push is dropped."""
ALL_SERIES_MAX: Final = 50_000
"""Series kept of all clients together."""
TEXT_MAX: Final = 128
"""Characters kept of a name, an attribute or a fact about a client."""
ATTRIBUTES_MAX: Final = 8
"""Attributes kept of a series."""
DECOMPRESSED_RATIO_MAX: Final = 16
"""A push may decompress to this many times `telemetry.max.bytes`."""
PUSH_INTERVAL_MS: Final = 300_000
MISSED_MAX: Final = 3
FORGET_MS_MIN: Final = 60_000
"""A client is remembered for at least this long after its last request."""
LONG_AGO_MS: Final = -(1 << 62)
ALL_METRICS: Final = "*"
RESERVED_IDS: Final = (ZERO_UUID, Uuid(bytes(15) + b"\x01"))
ACCEPTED_CODECS: Final = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""In the order in which clients should choose."""
Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """The facts about a client that subscriptions can match."""

    client_id: str
    software_name: str
    software_version: str
    host: str
    port: int

    def value(self, selector: str, instance_id: Uuid) -> str:
        """The value of a selector of KIP-714."""
        return {
            "client_instance_id": uuid_to_text(instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.host,
            "client_source_port": str(self.port),
        }.get(selector, "")


@dataclass(frozen=True, slots=True)
class Subscription:
    """The metrics that a client should push, and the interval."""

    id: int
    metrics: tuple[str, ...]
    interval_ms: int


@dataclass(slots=True)
class Instance:
    """One client. Its `counters` and `gauges` are replaced by each push and never changed."""

    facts: ClientFacts
    subscription: Subscription
    configs: ConfigsImage
    seen_ms: int
    asked_ms: int = LONG_AGO_MS
    pushed_ms: int = LONG_AGO_MS
    is_terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE
    counters: Mapping[Series, float] = field(default_factory=dict)
    gauges: Mapping[Series, float] = field(default_factory=dict)

    @property
    def series_count(self) -> int:
        """The number of series that are kept."""
        return len(self.counters) + len(self.gauges)

    def forget_at_ms(self) -> int:
        """The time at which a client that sends nothing more is forgotten."""
        return self.seen_ms + max(FORGET_MS_MIN, MISSED_MAX * self.subscription.interval_ms)

    def may_ask(self, now_ms: int) -> bool:
        """Return whether the client may ask for its subscription now."""
        due_ms = max(self.asked_ms, self.pushed_ms) + self.subscription.interval_ms
        if now_ms >= due_ms:
            self.asked_ms = now_ms
            return True
        return self.last_error in (
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        )

    def may_push(self, now_ms: int) -> bool:
        """Return whether the client may push now: once per interval, and once after it asked."""
        if self.asked_ms > self.pushed_ms or (
            now_ms >= self.pushed_ms + self.subscription.interval_ms
        ):
            self.pushed_ms = now_ms
            return True
        return False


class ClientTelemetry:
    """The clients of one node. `now_ms` is the monotonic clock's."""

    def __init__(self, size_max_bytes: int) -> None:
        """`size_max_bytes` is telemetry.max.bytes."""
        self.size_max_bytes = size_max_bytes
        self.dropped_series = 0
        self._instances: OrderedDict[Uuid, Instance] = OrderedDict()
        self._series_count = 0
        self._thread: ThreadPoolExecutor | None = None

    def subscribe(
        self, instance_id: Uuid, facts: ClientFacts, configs: ConfigsImage, now_ms: int
    ) -> Subscription | None:
        """Return the client's subscription; None if it asks before its interval is over."""
        instance = self._instance(instance_id, facts, configs, now_ms)
        if not instance.may_ask(now_ms):
            return None
        instance.last_error = ErrorCode.NONE
        return instance.subscription

    def check(
        self,
        instance_id: Uuid,
        facts: ClientFacts,
        request: PushTelemetryRequest,
        configs: ConfigsImage,
        now_ms: int,
    ) -> ErrorCode:
        """Return the error of a push that must not be read, or NONE."""
        if instance_id in RESERVED_IDS:
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(instance_id, facts, configs, now_ms)
        instance.last_error = self._refusal(instance, request, now_ms)
        instance.is_terminating = request.terminating
        return instance.last_error

    def _refusal(self, instance: Instance, request: PushTelemetryRequest, now_ms: int) -> ErrorCode:
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(now_ms) and not request.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.subscription.id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression_type not in (Codec.NONE, *ACCEPTED_CODECS):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > self.size_max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    async def read(self, codec: int, data: bytes) -> list[Point]:
        """Decode a push in a thread, one push at a time.

        Raises DecodeError or CorruptBatchError for bytes that are not metrics.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="client-telemetry")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._points, codec, data)

    def _points(self, codec: int, data: bytes) -> list[Point]:
        size_max = self.size_max_bytes * DECOMPRESSED_RATIO_MAX
        return read_metrics(decompress(Codec(codec), data, size_max=size_max))

    def take(self, instance_id: Uuid, points: Sequence[Point]) -> None:
        """Replace the metrics that the client pushed before."""
        instance = self._instances.get(instance_id)
        if instance is None:
            return  # forgotten while its push was read
        others = self._series_count - instance.series_count
        count_max = min(SERIES_MAX, ALL_SERIES_MAX - others)
        counters: dict[Series, float] = {}
        gauges: dict[Series, float] = {}
        for number, point in enumerate(points):
            if len(gauges) + len(counters) >= count_max:
                self.dropped_series += len(points) - number
                break
            attributes = [
                (key[:TEXT_MAX], value[:TEXT_MAX])
                for key, value in point.attributes[:ATTRIBUTES_MAX]
            ]
            series = (point.name[:TEXT_MAX], tuple(attributes))
            if not point.is_counter:
                gauges[series] = point.value
            elif point.is_delta:
                counters[series] = instance.counters.get(series, 0.0) + point.value
            else:
                counters[series] = point.value
        instance.counters, instance.gauges = counters, gauges
        self._series_count = others + instance.series_count

    def refuse(self, instance_id: Uuid, error: ErrorCode) -> None:
        """Record that a push could not be decoded."""
        instance = self._instances.get(instance_id)
        if instance is not None:
            instance.last_error = error

    def items(self, now_ms: int) -> list[tuple[Uuid, Instance]]:
        """Forget clients that have been silent, and return those with metrics."""
        for instance_id, instance in list(self._instances.items()):
            if now_ms > instance.forget_at_ms():
                self._forget(instance_id)
        return [
            (key, instance) for key, instance in self._instances.items() if instance.series_count
        ]

    def __len__(self) -> int:
        return len(self._instances)

    def close(self) -> None:
        """Stop the thread that reads pushes."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _instance(
        self, instance_id: Uuid, facts: ClientFacts, configs: ConfigsImage, now_ms: int
    ) -> Instance:
        """A client as configured now. A changed configuration resets its intervals, as in Kafka."""
        known = self._instances.get(instance_id)
        if known is None or known.configs is not configs:
            subscription = subscription_of(instance_id, facts, configs)
            if known is None:
                known = Instance(facts, subscription, configs, now_ms)
                self._instances[instance_id] = known
                if len(self._instances) > INSTANCES_MAX:
                    self._forget(next(iter(self._instances)))
            elif subscription != known.subscription:
                known.subscription, known.configs = subscription, configs
                known.asked_ms = known.pushed_ms = LONG_AGO_MS
                known.is_terminating, known.last_error = False, ErrorCode.NONE
            else:
                known.configs = configs
        known.seen_ms = now_ms
        self._instances.move_to_end(instance_id)
        return known

    def _forget(self, instance_id: Uuid) -> None:
        self._series_count -= self._instances.pop(instance_id).series_count


def subscription_of(instance_id: Uuid, facts: ClientFacts, configs: ConfigsImage) -> Subscription:
    """Combine all subscriptions that match a client."""
    metrics: set[str] = set()
    interval_ms = 0
    for name in configs.names(ConfigResourceType.CLIENT_METRICS):
        values = configs.for_resource(ConfigResourceType.CLIENT_METRICS, name)
        if not _selects(values, facts, instance_id):
            continue
        metrics.update(_entries(values.get("metrics", "")))
        own_ms = int(values.get("interval.ms", PUSH_INTERVAL_MS))
        interval_ms = min(interval_ms or own_ms, own_ms)
    wanted = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    interval_ms = interval_ms or PUSH_INTERVAL_MS
    text = f"{','.join(wanted)}/{interval_ms}".encode()
    return Subscription(crc32c(instance_id + text) & 0x7FFFFFFF, wanted, interval_ms)


def _selects(values: Mapping[str, str], facts: ClientFacts, instance_id: Uuid) -> bool:
    """Return whether all patterns of a subscription match a client."""
    for entry in _entries(values.get("match", "")):
        selector, _, pattern = entry.partition("=")
        compiled = _compiled(pattern.strip())
        if compiled.fullmatch(facts.value(selector.strip(), instance_id)) is None:
            return False
    return True


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
