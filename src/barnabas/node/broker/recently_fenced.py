"""Brokers that were fenced a short while ago, whom clients still hear of.

A broker whose process dies is fenced at once here, and would be gone from the very next answer to
Metadata. In Kafka it stays there until its session ends, and clients rest on that: librdkafka
forgets a broker that it hears of no more together with what would have told a transactional
producer that its group has another coordinator, and waits for ever (librdkafka issue 5511). So
Metadata goes on naming such a broker for as long as its session would have lasted.

One whose session has ended is named no more, as in Kafka: it may be alive, and hold connections. A
producer of librdkafka that hears of a new leader, and no more of the old one, takes back what that
one has not answered, and sends it again. If it still hears of the old one it may send the records
behind those first, and lose them (ARCHITECTURE.md, Not obvious).
"""

from barnabas.base.clock import Clock
from barnabas.node.metadata.image import BrokerImage, MetadataImage
from barnabas.node.metadata.replay import ImageDelta


class RecentlyFencedBrokers:
    """Brokers that were fenced before their session ended, as one node remembers them."""

    __slots__ = ("_active", "_clock", "_lost_ms", "_session_timeout_ms")

    def __init__(self, clock: Clock, session_timeout_ms: int) -> None:
        self._clock = clock
        self._session_timeout_ms = session_timeout_ms
        self._active: set[int] = set()
        self._lost_ms: dict[int, int] = {}
        """By broker, since when, on the monotonic clock."""

    def load(self, image: MetadataImage) -> None:
        """Begin with the image that the node has at its start."""
        self._active = {broker.id for broker in image.brokers.values() if broker.is_active}

    def image_changed(self, delta: ImageDelta) -> None:
        """Note who was fenced, and who is back."""
        for broker_id, broker in delta.brokers.items():
            if broker is None or not broker.fenced or broker_id in delta.expired_brokers:
                self._lost_ms.pop(broker_id, None)
            elif broker_id in self._active:
                self._lost_ms[broker_id] = self._clock.monotonic_ms()
            if broker is not None and broker.is_active:
                self._active.add(broker_id)
            else:
                self._active.discard(broker_id)

    def is_named(self, broker: BrokerImage) -> bool:
        """Return whether clients hear of the broker."""
        if not broker.fenced:
            return True
        since_ms = self._lost_ms.get(broker.id)
        if since_ms is None:
            return False
        return self._clock.monotonic_ms() - since_ms < self._session_timeout_ms
