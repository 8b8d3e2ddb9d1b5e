"""A database's tables captured to topics by workers, and copied from there to a second database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.connect.capture import PREFIX, settings
from support.connect.database_story import (
    DATABASE,
    PARTITIONS,
    Story,
    differences,
    rows_of,
    with_columns,
)
from support.connect.postgres import USER, Postgres
from support.connect.worker import OurWorker
from support.node_process import wait_until

COPY = "copy"
SETTLE_S = 240.0
WORKER = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "1000",
    "offset.storage.replication.factor": "-1",
    "config.storage.replication.factor": "-1",
    "status.storage.replication.factor": "-1",
    "barnabas.connect.restart.backoff.ms": "500",
    "barnabas.connect.restart.backoff.max.ms": "2000",
    "value.converter.replace.null.with.default": "false",
    # A member that was killed is waited for.
    "consumer.session.timeout.ms": "6000",
    "consumer.heartbeat.interval.ms": "500",
}
TRANSACTION_TIMEOUT_MS = "10000"


class Copying:
    """Workers with the two connectors."""

    def __init__(
        self,
        bootstrap_servers: str,
        folder: Path,
        story: Story,
        *,
        count: int = 2,
        engine: str = "local",
        is_exactly_once: bool = False,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.story, self.is_exactly_once = story, is_exactly_once
        self._servers = bootstrap_servers
        given = WORKER | dict(more or {})
        if is_exactly_once:
            given["exactly.once.source.support"] = "enabled"
            given["consumer.isolation.level"] = "read_committed"
        self.workers = [
            OurWorker(
                *(folder / f"w{n}", bootstrap_servers, f"w{n}", "copiers", given), engine=engine
            )
            for n in range(count)
        ]
        story.server.database(COPY)
        admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        topics = [NewTopic(_topic(table), PARTITIONS[table], -1) for table in PARTITIONS]
        for future in admin.create_topics(topics).values():
            future.result(60)

    def capture(self) -> dict[str, str]:
        """The source's configuration."""
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            **settings(
                self.story.server,
                DATABASE,
                max_batch_size="300",
                skipped_operations="none",
                time_precision_mode="connect",
                status_update_interval_ms="500",
                producer_override_transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            ),
        }

    def copy(self) -> dict[str, str]:
        """The sink's configuration."""
        server: Postgres = self.story.server
        return {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "tasks.max": "2",
            "topics": ",".join(map(_topic, PARTITIONS)),
            "connection.url": server.jdbc_url.rpartition("/")[0] + f"/{COPY}",
            "connection.user": USER,
            "connection.password": server.password,
            "transforms": "table",
            "transforms.table.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.table.regex": r".*\.([^.]+)",
            "transforms.table.replacement": "$1",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "truncate.enabled": "true",
            "replace.null.with.default": "false",
            "auto.create": "true",
            "auto.evolve": "true",
        }

    def start(self) -> None:
        """Start the workers, and both connectors."""
        for worker in self.workers:
            worker.start()
        self.put("capture", self.capture())
        self.put("copy", self.copy())

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Make a connector at any worker that does it."""
        said: list[object] = []

        def is_done() -> bool:
            for worker in self.running():
                try:
                    said.append(worker.ask("PUT", f"/connectors/{name}/config", config))
                except httpx.HTTPError as error:
                    said.append(error)
                    continue
                if said[-1][0] in (200, 201):  # type: ignore[index]
                    return True
            return False

        self.wait(is_done, lambda: said[-3:])

    def running(self) -> list[OurWorker]:
        """The workers that have not been killed."""
        return [worker for worker in self.workers if worker.process is not None]

    def records(self, table: str) -> list[tuple[bytes | None, bytes | None]]:
        """The records of a table's topic that are committed, each partition in its order."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "checks",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        found, ends = [], 0
        try:
            consumer.assign([TopicPartition(_topic(table), n, 0) for n in range(PARTITIONS[table])])
            while ends < PARTITIONS[table]:
                message = consumer.poll(60)
                assert message is not None, table
                if message.error() is None:
                    found.append((message.key(), message.value()))
                elif not message.error().retriable():
                    ends += 1
        finally:
            consumer.close()
        return found

    def copied(self, table: str) -> list[str]:
        """Return how the sink's table differs from the source's."""
        wanted = self.story.rows(table)
        try:
            with self.story.server.connect(COPY) as connection:
                found = rows_of(connection, table)
        except psycopg.Error as error:
            return [str(error)]
        return differences(with_columns(found, wanted), wanted)

    def told(self, table: str) -> list[str]:
        """Return how what the topic's records make differs from the table."""
        replayed = self.story.replayed(table, self.records(table), is_once=self.is_exactly_once)
        return differences(replayed, self.story.rows(table))

    def check(self) -> None:
        """Wait until the sink's tables equal the source's; the topics' records make the same."""
        for table in PARTITIONS:
            self.wait(lambda: not self.copied(table), lambda: self.copied(table)[:5])  # noqa: B023
            assert not self.told(table), self.told(table)[:5]

    def wait(self, until: Callable[[], bool], shown: Callable[[], object]) -> None:
        wait_until(until, "the copy", SETTLE_S, lambda: (shown(), self.statuses()))

    def statuses(self) -> list[Any]:
        """Return what each worker says of the connectors, and the end of its log."""
        said: list[Any] = []
        for worker in self.running():
            try:
                said.append(worker.ask("GET", "/connectors?expand=status")[1])
            except httpx.HTTPError as error:
                said.append(error)
            said.append(worker.log()[-1500:])
        return said

    def close(self) -> None:
        for worker in self.workers:
            worker.close()


def _topic(table: str) -> str:
    return f"{PREFIX}.public.{table}"
