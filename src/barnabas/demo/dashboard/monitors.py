"""Monitors that ask as any tool would: the brokers, the schema registry, the SQL server.

They say who is up, who leads what and what is in sync; which schemas there are, and how they
evolved; the state of the statements, and how far they have read.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import ClusterMetadata

from barnabas.demo.access import client_config
from barnabas.demo.dashboard.groups import History, Place, fill
from barnabas.demo.dashboard.readers import ReaderThread
from barnabas.demo.dashboard.state import (
    BrokerStatus,
    ClusterStatus,
    DashboardState,
    RegistryStatus,
    SchemaStatus,
    SqlServerStatus,
    StatementStatus,
)
from barnabas.demo.schemas import AVRO_TOPICS, EVOLVED_FROM, subject_of
from barnabas.kafka.admin import Admin
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient
from barnabas.sql.shell.client import Context, KsqlClient, ShellError

_EVERY_SECONDS = 1.0
_REQUEST_SECONDS = 5.0
_TIMEOUT_SECONDS = 10.0
_QUESTION = "SHOW STREAMS EXTENDED; SHOW TABLES EXTENDED;"


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


class SchemaMonitor(ReaderThread):
    """Looks once a second at the versions of the demo's subjects."""

    def __init__(self, bootstrap: str, registry: RegistryClient, state: DashboardState) -> None:
        super().__init__("schema-monitor", bootstrap, state)
        self._registry = registry

    def read(self) -> None:
        """Look until `stopping` is set."""
        while not self.stopping.is_set():
            try:
                versions = {
                    topic: self._registry.versions(subject_of(topic)) for topic in AVRO_TOPICS
                }
            except RegistryError:
                self.state.set_registry_down()
                raise
            self.state.set_registry(registry_status(self._registry.url, versions))
            self.stopping.wait(_EVERY_SECONDS)


def registry_status(url: str, versions: dict[str, list[dict[str, Any]]]) -> RegistryStatus:
    """Return the newest version of each topic's schema, and what it has more than the first."""
    return RegistryStatus(
        url,
        up=True,
        schemas=[
            SchemaStatus(
                topic,
                of_topic[-1]["version"],
                of_topic[-1]["id"],
                evolved_from=_property(of_topic[-1], EVOLVED_FROM),
                new_fields=_new_fields(version["schema"] for version in of_topic),
            )
            for topic, of_topic in versions.items()
            if of_topic
        ],
    )


def _new_fields(schemas: Iterable[str]) -> list[str]:
    names = [[field["name"] for field in json.loads(text)["fields"]] for text in schemas]
    return [name for name in names[-1] if name not in names[0]]


def _property(version: dict[str, Any], name: str) -> str:
    properties = (version.get("metadata") or {}).get("properties") or {}
    return str(properties.get(name, ""))


class StatementMonitor(ReaderThread):
    """Asks the server once a second, as any client could."""

    def __init__(self, bootstrap: str, url: str, state: DashboardState) -> None:
        super().__init__("statement-monitor", bootstrap, state)
        self._url = url
        self._ends = self.topic_ends("barnabas-statement-monitor")
        self._histories: dict[str, History] = defaultdict(History)

    def read(self) -> None:
        """Look until `stopping` is set."""
        client = KsqlClient(self._url, timeout_s=_TIMEOUT_SECONDS)
        try:
            while not self.stopping.is_set():
                try:
                    answers = client.statement(_QUESTION, Context({}, {}))
                except ShellError:
                    self.state.set_sql_server_down()
                else:
                    self.state.set_statements(self._status(answers))
                self.stopping.wait(_EVERY_SECONDS)
        finally:
            client.close()

    def _status(self, answers: list[dict[str, Any]]) -> SqlServerStatus:
        statements = described(answers)
        topics = {topic for _, offsets in statements for topic, _ in offsets}
        ends = self._ends.of(sorted(topics)) if topics else {}
        for status, offsets in statements:
            fill(status, offsets, ends, self._histories[status.name])
        return SqlServerStatus(self._url, up=True, statements=[status for status, _ in statements])


def described(
    answers: list[dict[str, Any]],
) -> list[tuple[StatementStatus, dict[Place, int]]]:
    """Return the statements that write streams and tables, each with the next offsets it reads."""
    statements = []
    for answer in answers:
        for source in answer.get("sourceDescriptions", []):
            writers = source.get("writeQueries", [])
            for query, summary in zip(
                writers, source.get("queryOffsetSummaries", []), strict=False
            ):
                offsets = {
                    (topic["kafkaTopic"], place["partition"]): place["consumerOffset"]
                    for topic in summary["topicSummaries"]
                    for place in topic["offsets"]
                }
                status = StatementStatus(
                    source["name"].lower(),
                    sorted({topic for topic, _ in offsets}),
                    state=query.get("state", ""),
                    sink=source.get("topic", ""),
                    text=query.get("queryString", ""),
                )
                statements.append((status, offsets))
    return sorted(statements, key=lambda entry: entry[0].name)
