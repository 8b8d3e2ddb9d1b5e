"""The brokers themselves, asked as any tool would: who is up, who leads what, what was lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from barnabas.demo.dashboard.groups import Place, latest_offsets
from barnabas.demo.dashboard.readers import ReaderThread
from barnabas.demo.dashboard.state import BrokerStatus, ClusterStatus, DashboardState
from barnabas.demo.topics import INPUT_TOPICS, OUTPUT_TOPICS

_EVERY_SECONDS = 1.0
_REQUEST_SECONDS = 5.0
WATCHED_TOPICS = (*INPUT_TOPICS, *OUTPUT_TOPICS)


@dataclass(slots=True)
class Seen:
    """What was seen earlier: nodes by their addresses, and how far each partition went."""

    addresses: dict[int, str] = field(default_factory=dict)
    furthest: dict[Place, int] = field(default_factory=dict)

    def lost(self, ends: dict[Place, int]) -> int:
        """Return how many records that were readable are gone: partitions that went back."""
        for place, end in ends.items():
            self.furthest[place] = max(end, self.furthest.get(place, 0))
        return sum(self.furthest[place] - end for place, end in ends.items())


class BrokerMonitor(ReaderThread):
    """Looks once a second at the cluster's metadata and the ends of the demo's topics."""

    def __init__(self, bootstrap: str, state: DashboardState) -> None:
        super().__init__("broker-monitor", bootstrap, state)
        self._seen = Seen()

    def read(self) -> None:
        """Look until `stopping` is set."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "client.id": "barnabas-broker-monitor",
            "error_cb": self.on_error,
            "log_level": 2,
        }
        admin = AdminClient(settings)
        while not self.stopping.is_set():
            try:
                metadata = admin.list_topics(timeout=_REQUEST_SECONDS)
            except KafkaException:
                self.state.set_brokers_down()
                raise
            status = cluster_status(metadata, self._seen)
            # A partition without a leader does not answer; the others' ends are known.
            ends = latest_offsets(admin, _led_partitions(metadata))
            status.lost = self._seen.lost(ends)
            status.records = sum(ends.values())
            self.state.set_cluster(status)
            self.stopping.wait(_EVERY_SECONDS)


def cluster_status(metadata: ClusterMetadata, seen: Seen) -> ClusterStatus:
    """Return each node that is up or was seen before, and how its partitions are."""
    for node_id, broker in metadata.brokers.items():
        seen.addresses[node_id] = f"{broker.host}:{broker.port}"
    leads: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    status = ClusterStatus()
    for topic in metadata.topics.values():
        for partition in topic.partitions.values():
            leads[partition.leader] += 1
            replicas.update(partition.replicas)
            in_sync.update(partition.isrs)
            status.partitions += 1
            status.without_leader += partition.leader < 0
            status.under_replicated += len(partition.isrs) < len(partition.replicas)
    status.brokers = [
        BrokerStatus(
            node_id, address, node_id in metadata.brokers, leads[node_id], in_sync[node_id],
            replicas[node_id],
        )
        for node_id, address in sorted(seen.addresses.items())
    ]  # fmt: skip
    return status


def _led_partitions(metadata: ClusterMetadata) -> list[Place]:
    return [
        (name, partition.id)
        for name in WATCHED_TOPICS
        if name in metadata.topics
        for partition in metadata.topics[name].partitions.values()
        if partition.leader >= 0
    ]
