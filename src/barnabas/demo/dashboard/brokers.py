"""The brokers themselves, asked as any tool would: who is up, who leads what, what is in sync."""

from __future__ import annotations

from collections import Counter
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import ClusterMetadata

from barnabas.demo.access import client_config
from barnabas.demo.dashboard.readers import ReaderThread
from barnabas.demo.dashboard.state import BrokerStatus, ClusterStatus, DashboardState
from barnabas.kafka.admin import Admin

_EVERY_SECONDS = 1.0
_REQUEST_SECONDS = 5.0


class BrokerMonitor(ReaderThread):
    """Looks once a second at the cluster's metadata and the ends of the demo's topics."""

    def __init__(self, bootstrap: str, state: DashboardState) -> None:
        super().__init__("broker-monitor", bootstrap, state)
        self._addresses: dict[int, str] = {}

    def read(self) -> None:
        """Look until `stopping` is set."""
        settings: dict[str, Any] = {
            **client_config(self.bootstrap),
            "client.id": "barnabas-broker-monitor",
            "error_cb": self.on_error,
        }
        admin = Admin(settings, _REQUEST_SECONDS)
        while not self.stopping.is_set():
            try:
                metadata = admin.metadata()
            except KafkaException:
                self.state.set_brokers_down()
                raise
            self.state.set_cluster(cluster_status(metadata, self._addresses))
            self.stopping.wait(_EVERY_SECONDS)


def cluster_status(metadata: ClusterMetadata, addresses: dict[int, str]) -> ClusterStatus:
    """Return each node that is up or was before (`addresses`), and how its partitions are."""
    for node_id, broker in metadata.brokers.items():
        addresses[node_id] = f"{broker.host}:{broker.port}"
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
        for node_id, address in sorted(addresses.items())
    ]  # fmt: skip
    return status
