"""The quotas of users and client ids on one node.

They are Kafka's: a limit on bytes produced, on bytes fetched, on the share of the node's time and
on partitions created and deleted, each a second, for a user, a client id or both. Those who share
a limit share a sensor. A sensor that nobody used for an hour goes; so do those longest unused
when there are too many, as clients may call themselves what they like.

Source: KIP-55, KIP-546; Kafka's ClientQuotaManager.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

from barnabas.node.loop.rate import Rate
from barnabas.node.metadata.image import QuotaEntity
from barnabas.node.metadata.quota_filter import (
    CLIENT_ID,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from barnabas.node.security.quotas.sensors import MutationSensor, RateSensor, Sensor
from barnabas.protocol.api import ApiKey

SENSOR_IDLE_MAX_MS: Final = 3_600_000
EXPIRY_PERIOD_MS: Final = 600_000
"""The interval at which idle clients are looked for."""
SENSORS_MAX: Final = 10_000
"""Of each kind; and as many clients whose limits are remembered."""
CLIENT_ID_SIZE_MAX: Final = 256
"""Of longer ids only the beginning is kept, since clients choose them: names with the same
beginning share a sensor."""
KEYS: Final = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
)
PERCENT_PER_NS: Final = 100 / 1e9

AnySensor = TypeVar("AnySensor", bound=Sensor)


class Limit(NamedTuple):
    """A limit, and who shares it: all clients with the same `user` and `client_id`."""

    per_second: float
    user: str
    """Empty if the limit applies to a client id of any user."""
    client_id: str
    """Empty where the limit holds for a user, with all client ids."""


@dataclass(frozen=True, slots=True)
class QuotaWindows:
    """`quota.window…` and `controller.quota.window…`: number of samples, and the ms of one."""

    of_clients: tuple[int, int] = (11, 1000)
    of_mutations: tuple[int, int] = (11, 1000)


class ClientQuota(NamedTuple):
    """The limits of one client; None: no limit."""

    produce: RateSensor | None
    fetch: RateSensor | None
    request: RateSensor | None
    mutations: MutationSensor | None


class Figure(NamedTuple):
    """One number of Kafka's metrics: `kafka.server:type=<kind>,<tags>`, attribute `name`."""

    kind: str
    tags: Mapping[str, str]
    name: str
    value: float


class ClientQuotas:
    """Limits, sensors and figures of one node. Time is an argument, in monotonic ms."""

    def __init__(self, windows: QuotaWindows) -> None:
        self._windows = windows
        self._by_key: dict[str, dict[QuotaEntity, float]] = {key: {} for key in KEYS}
        self._clients: dict[tuple[str, str], ClientQuota] = {}
        self._produce: dict[tuple[str, str], RateSensor] = {}
        self._fetch: dict[tuple[str, str], RateSensor] = {}
        self._request: dict[tuple[str, str], RateSensor] = {}
        self._mutations: dict[tuple[str, str], MutationSensor] = {}
        self._exempt = Rate(*windows.of_clients)
        self._expired_ms = 0

    @property
    def is_enforced(self) -> bool:
        """True if any client may have a limit."""
        return any(self._by_key.values())

    @property
    def limits_mutations(self) -> bool:
        """True if any client may have a limit on topic changes."""
        return bool(self._by_key[CONTROLLER_MUTATION_RATE])

    def configure(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Hold clients to these limits from now on; what was measured stays."""
        self._by_key = {
            key: {entity: values[key] for entity, values in quotas.items() if key in values}
            for key in KEYS
        }
        self._clients.clear()

    def of(self, user: str, client_id: str, now_ms: int) -> ClientQuota:
        """The current limits of a client. Keep it for one request at most."""
        client = self._clients.get((user, client_id))
        if client is None:
            if now_ms - self._expired_ms >= EXPIRY_PERIOD_MS:
                self.expire(now_ms)
            if len(self._clients) >= SENSORS_MAX:
                self._clients.clear()
            client = self._find(user, client_id, now_ms)
            if len(client_id) <= CLIENT_ID_SIZE_MAX:
                self._clients[user, client_id] = client
        return client

    def bytes_in_window(self, per_second: float) -> float:
        """The bytes that a whole window allows. A client that takes more at once must wait."""
        samples, sample_ms = self._windows.of_clients
        return per_second * (samples - 1) * sample_ms / 1000

    def _find(self, user: str, client_id: str, now_ms: int) -> ClientQuota:
        window = self._windows.of_clients
        limits = {key: find_limit(self._by_key[key], user, client_id) for key in KEYS}
        request = self._rate_sensor(
            # As in Kafka, whose threads have to go on serving: at most a sample's length at a time.
            self._request,
            limits[REQUEST_PERCENTAGE],
            now_ms,
            throttle_max_ms=window[1],
        )
        return ClientQuota(
            self._rate_sensor(self._produce, limits[PRODUCER_BYTE_RATE], now_ms),
            self._rate_sensor(self._fetch, limits[CONSUMER_BYTE_RATE], now_ms),
            request,
            self._mutation_sensor(limits[CONTROLLER_MUTATION_RATE], now_ms),
        )

    def _rate_sensor(
        self,
        sensors: dict[tuple[str, str], RateSensor],
        limit: Limit | None,
        now_ms: int,
        throttle_max_ms: int | None = None,
    ) -> RateSensor | None:
        if limit is None:
            return None
        per_second, user, client_id = limit
        client_id = client_id[:CLIENT_ID_SIZE_MAX]
        sensor = sensors.get((user, client_id))
        if sensor is None:
            window = self._windows.of_clients
            sensor = RateSensor(user, client_id, per_second, window, throttle_max_ms)
            self._add(sensors, sensor, now_ms)
        sensor.limit = per_second
        return sensor

    def _mutation_sensor(self, limit: Limit | None, now_ms: int) -> MutationSensor | None:
        if limit is None:
            return None
        per_second, user, client_id = limit
        client_id = client_id[:CLIENT_ID_SIZE_MAX]
        sensor = self._mutations.get((user, client_id))
        if sensor is None:
            window = self._windows.of_mutations
            sensor = MutationSensor(user, client_id, per_second, window, now_ms)
            self._add(self._mutations, sensor, now_ms)
        sensor.set_limit(per_second, now_ms)
        return sensor

    def _add(
        self, sensors: dict[tuple[str, str], AnySensor], sensor: AnySensor, now_ms: int
    ) -> None:
        sensor.last_used_ms = now_ms
        if len(sensors) >= SENSORS_MAX:
            by_use = sorted(sensors.values(), key=lambda sensor: sensor.last_used_ms)
            self._drop(sensors, by_use[: SENSORS_MAX // 10])
        sensors[sensor.user, sensor.client_id] = sensor

    def _drop(self, sensors: dict[tuple[str, str], AnySensor], gone: Iterable[AnySensor]) -> None:
        for sensor in gone:
            del sensors[sensor.user, sensor.client_id]
        self._clients.clear()  # some of them may hold what is gone

    def expire(self, now_ms: int) -> None:
        """Forget the sensors that nobody has used for long; `of` sees to it now and then."""
        self._expired_ms = now_ms
        for sensors in (self._produce, self._fetch, self._request):
            self._expire(sensors, now_ms)
        self._expire(self._mutations, now_ms)

    def _expire(self, sensors: dict[tuple[str, str], AnySensor], now_ms: int) -> None:
        gone = [
            sensor
            for sensor in sensors.values()
            if now_ms - sensor.last_used_ms >= SENSOR_IDLE_MAX_MS
        ]
        if gone:
            self._drop(sensors, gone)

    def exempt(self, busy_ns: int, now_ms: int) -> None:
        """The node spent this time on a request that no limit holds for."""
        self._exempt.record(now_ms, busy_ns * PERCENT_PER_NS)

    def figures(self, now_ms: int) -> Iterator[Figure]:
        """The measurements, under the names of Kafka's metrics."""
        self.expire(now_ms)
        for kind, name, sensors in (
            ("Produce", "byte-rate", self._produce),
            ("Fetch", "byte-rate", self._fetch),
            ("Request", "request-time", self._request),
        ):
            for sensor in sensors.values():
                tags = _tags(sensor)
                yield Figure(kind, tags, name, sensor.rate.per_second(now_ms))
                yield Figure(kind, tags, "throttle-time", sensor.throttle_time_ms(now_ms))
        for mutation in filter(lambda sensor: sensor.was_used, self._mutations.values()):
            tags, kind = _tags(mutation), "ControllerMutation"
            yield Figure(kind, tags, "mutation-rate", mutation.rate.per_second(now_ms))
            yield Figure(kind, tags, "tokens", mutation.bucket.tokens(now_ms))
            yield Figure(kind, tags, "throttle-time", mutation.throttle_time_ms(now_ms))
        if self.is_enforced:
            yield Figure("Request", {}, "exempt-request-time", self._exempt.per_second(now_ms))


def _tags(sensor: Sensor) -> dict[str, str]:
    """Names of users as Kafka writes them, so that no character means something else."""
    return {"user": quote(sensor.user, safe="*-._"), "client-id": sensor.client_id}


def find_limit(quotas: Mapping[QuotaEntity, float], user: str, client_id: str) -> Limit | None:
    """The most specific of the limits of one key that fit the client; None: it has none.

    A client without an id has the limits of its user alone, as in Kafka.
    """
    if client_id:
        candidates: tuple[QuotaEntity, ...] = (
            ((CLIENT_ID, client_id), (USER, user)),
            ((CLIENT_ID, None), (USER, user)),
            ((USER, user),),
            ((CLIENT_ID, client_id), (USER, None)),
            ((CLIENT_ID, None), (USER, None)),
            ((USER, None),),
            ((CLIENT_ID, client_id),),
            ((CLIENT_ID, None),),
        )
    else:
        candidates = (((USER, user),), ((USER, None),))
    for entity in candidates:
        per_second = quotas.get(entity)
        if per_second is not None:
            kinds = {kind for kind, _ in entity}
            return Limit(
                per_second, user if USER in kinds else "", client_id if CLIENT_ID in kinds else ""
            )
    return None


STRICT_FROM: Final = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""Since when clients know THROTTLING_QUOTA_EXCEEDED. Requests before are carried out, and their
senders told to wait. Source: Kafka's ControllerApis."""


class RequestMutations:
    """A `MutationQuota`, of one request."""

    __slots__ = ("_is_strict", "_now_ms", "_sensor", "throttle_ms")

    def __init__(self, sensor: MutationSensor, now_ms: int, *, is_strict: bool) -> None:
        self._sensor = sensor
        self._now_ms = now_ms
        self._is_strict = is_strict
        self.throttle_ms = 0
        """For how long the sender should wait."""

    def spend(self, partitions: int) -> bool:
        """Count as many more; False where the quota was used up before.

        One that is not used up yet allows any number at once.
        """
        bucket = self._sensor.bucket
        if self._is_strict:
            self.throttle_ms = bucket.wait_ms(self._now_ms)
            if self.throttle_ms:
                self._sensor.throttled(self.throttle_ms, self._now_ms)
                return False
            self._sensor.take(partitions, self._now_ms)
            return True
        self._sensor.take(partitions, self._now_ms)
        self.throttle_ms = bucket.wait_ms(self._now_ms)
        if self.throttle_ms:
            self._sensor.throttled(self.throttle_ms, self._now_ms)
        return True
