"""Partitions created and deleted by one request, against its sender's quota (KIP-599)."""

from typing import Final

from barnabas.node.security.quotas.sensors import MutationSensor
from barnabas.protocol.api import ApiKey

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
