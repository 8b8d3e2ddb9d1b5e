"""Client quotas of one role's listeners: they follow the cluster's metadata while it serves."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Protocol

from barnabas.base.clock import Clock, SystemClock
from barnabas.node.broker.throttling import EXEMPT, Throttling
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.controller.decision import NO_MUTATION_QUOTA, MutationQuota
from barnabas.node.metadata.image import MetadataImage, QuotaEntity
from barnabas.node.metadata.quota_filter import CONNECTION_CREATION_RATE, IP
from barnabas.node.metadata.replay import ImageDelta
from barnabas.node.net.connection_quotas import IpRates
from barnabas.node.net.server import Server
from barnabas.node.security.authorizer import Authorizer
from barnabas.node.security.quotas.client_quotas import (
    STRICT_FROM,
    ClientQuotas,
    Figure,
    QuotaWindows,
    RequestMutations,
)
from barnabas.protocol.apis import API_OF, ApiKey
from barnabas.protocol.schema import Message


class Throttled(Protocol):
    """The check whether there are quotas."""

    throttling: Throttling | None


class ThrottledServices(Throttled, Protocol):
    """The services of a broker's handlers, or of a controller's."""

    authorizer: Authorizer


class ListenerQuotas:
    """Quotas on the listeners of a broker, or of a controller."""

    def __init__(
        self,
        config: NodeConfig,
        clock: Clock,
        server: Server,
        dispatcher: Throttled,
        services: ThrottledServices,
        exempt: Collection[ApiKey] = EXEMPT,
    ) -> None:
        self._clock = clock
        self._server = server
        self._throttled: tuple[Throttled, ...] = (dispatcher, services)
        self._quotas = ClientQuotas(_windows(config))
        self._throttling = Throttling(
            self._quotas, clock, busy_clock(clock), services.authorizer, exempt
        )
        self._limits: Mapping[QuotaEntity, Mapping[str, float]] = {}

    def load(self, image: MetadataImage) -> None:
        """Hold clients to what is set in the cluster."""
        self._limits = image.client_quotas
        self._quotas.configure(image.client_quotas)
        self._server.set_ip_rates(_ip_rates(image))
        throttling = self._throttling if self._quotas.is_enforced else None
        for part in self._throttled:
            part.throttling = throttling

    def image_changed(self, _: ImageDelta, image: MetadataImage) -> None:
        """Follow a change of the metadata."""
        if image.client_quotas is not self._limits:
            self.load(image)

    def mutations_of(self, asker: Asker, request: Message) -> MutationQuota:
        """The quota of a client that asks the controller to change topics. Part of
        MutationQuotas."""
        strict_from = STRICT_FROM.get(API_OF[type(request)].key)
        if strict_from is None or asker.is_own or not self._quotas.limits_mutations:
            return NO_MUTATION_QUOTA
        now_ms = self._clock.monotonic_ms()
        user = asker.principal.partition(":")[2]
        sensor = self._quotas.of(user, asker.client_id or "", now_ms).mutations
        if sensor is None:
            return NO_MUTATION_QUOTA
        is_strict = asker.api_version is None or asker.api_version >= strict_from
        return RequestMutations(sensor, now_ms, is_strict=is_strict)

    def figures(self) -> Iterator[Figure]:
        """Figures of clients and connections, under the names of Kafka's metrics."""
        now_ms = self._clock.monotonic_ms()
        yield from self._quotas.figures(now_ms)
        for listener, count, rate in self._server.connection_figures():
            tags = {"listener": listener}
            yield Figure("socket-server-metrics", tags, "connection-count", count)
            yield Figure("socket-server-metrics", tags, "connection-accept-rate", rate)


def _windows(config: NodeConfig) -> QuotaWindows:
    return QuotaWindows(
        of_clients=(
            config.get_int("quota.window.num"),
            config.get_int("quota.window.size.seconds") * 1000,
        ),
        of_mutations=(
            config.get_int("controller.quota.window.num"),
            config.get_int("controller.quota.window.size.seconds") * 1000,
        ),
    )


def busy_clock(clock: Clock) -> Callable[[], int]:
    """A clock for single requests; in a simulation they take no time."""
    if isinstance(clock, SystemClock):
        return time.perf_counter_ns
    return lambda: clock.monotonic_ms() * 1_000_000


def _ip_rates(image: MetadataImage) -> IpRates:
    default: int | None = None
    by_ip: dict[str, int] = {}
    for entity, values in image.client_quotas.items():
        rate = values.get(CONNECTION_CREATION_RATE)
        if entity[0][0] != IP or rate is None:
            continue
        ip = entity[0][1]
        if ip is None:
            default = int(rate)
        else:
            by_ip[ip] = int(rate)
    return IpRates(default, by_ip)
