"""Replication quotas: how fast throttled replicas may be copied (KIP-73).

One on each side: a leader leaves throttled followers' records out of its answers, a follower
leaves throttled partitions out of its fetches, while the rate over the last samples is above
the limit. Only replicas that are not in sync are held back. Source: ReplicationQuotaManager.
"""

from collections import deque
from collections.abc import Iterable

from barnabas.base.clock import Clock
from barnabas.base.ids import TopicPartition

UNLIMITED = 2**63 - 1
ALL = "*"


class ReplicationQuota:
    """The rate of throttled replication in one direction."""

    def __init__(self, clock: Clock, samples: int, sample_ms: int) -> None:
        self._clock = clock
        self._samples_max = samples
        self._sample_ms = sample_ms
        self._samples: deque[tuple[int, int]] = deque()
        """(start in monotonic ms, bytes)"""
        self._throttled: dict[str, frozenset[int] | None] = {}
        """Partitions by topic; None: all."""
        self.rate_max = UNLIMITED
        """Bytes a second."""

    @property
    def is_active(self) -> bool:
        """True if anything can be held back."""
        return bool(self._throttled) and self.rate_max != UNLIMITED

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        """Return whether the replica here is one of the topic's throttled ones."""
        topic, index = topic_partition
        if topic not in self._throttled:
            return False
        partitions = self._throttled[topic]
        return partitions is None or index in partitions

    def set_throttled(self, topic: str, entries: Iterable[str], node_id: int) -> None:
        """Follow `*.replication.throttled.replicas` of a topic: `*`, or partition:broker …"""
        listed = [entry.strip() for entry in entries if entry.strip()]
        if not listed:
            self._throttled.pop(topic, None)
        elif ALL in listed:
            self._throttled[topic] = None
        else:
            pairs = (entry.split(":") for entry in listed)
            self._throttled[topic] = frozenset(
                int(index) for index, broker in pairs if int(broker) == node_id
            )

    def record_if_throttled(self, topic_partition: TopicPartition, size_bytes: int) -> None:
        """Count bytes of a throttled replica."""
        if self.is_throttled(topic_partition):
            self.record(size_bytes)

    def record(self, size_bytes: int) -> None:
        """Count bytes."""
        now_ms = self._clock.monotonic_ms()
        start_ms = now_ms - now_ms % self._sample_ms
        if self._samples and self._samples[-1][0] == start_ms:
            self._samples[-1] = (start_ms, self._samples[-1][1] + size_bytes)
        else:
            self._samples.append((start_ms, size_bytes))

    def is_exceeded(self) -> bool:
        """Return whether the rate over the last samples is above the limit."""
        now_ms = self._clock.monotonic_ms()
        window_ms = self._samples_max * self._sample_ms
        samples = self._samples
        while samples and samples[0][0] <= now_ms - window_ms:
            samples.popleft()
        if not samples:
            return False
        # As Kafka's Rate: at least all samples but one count as elapsed.
        elapsed_ms = max(now_ms - samples[0][0], (self._samples_max - 1) * self._sample_ms)
        return sum(size for _, size in samples) * 1000 / elapsed_ms > self.rate_max
