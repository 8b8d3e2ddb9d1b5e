"""Rows of a topic into a table of PostgreSQL: our JDBC sink, and Debezium's in Kafka's worker.

Upserts by the record's key, in batches of 3000, the table made by the sink.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from bench.connectors.database import USER, access, postgres
from bench.connectors.kafka_plugins import DEBEZIUM_JDBC
from bench.connectors.sinks import CONVERTERS, sink_rate
from bench.connectors.workers import RUNNERS, connector, in_turn
from bench.settings import Settings
from bench.wire import make_topic

Figures = dict[str, dict[str, float]]
_BATCH: Final = "3000"


def jdbc_round(port: int, directory: Path, settings: Settings, number: int) -> Figures:
    """Measure each runner."""
    with postgres() as server:
        return {
            runner: _measure(runner, server, port, directory, settings)
            for runner in in_turn(RUNNERS, number)
        }


def _measure(
    runner: str, server: Any, port: int, directory: Path, settings: Settings
) -> dict[str, float]:
    topic, servers = f"charges_{runner}", f"127.0.0.1:{port}"
    make_topic(port, topic, 1)
    given = {"name": f"jdbc-{runner}", "topics": topic, **CONVERTERS, **_settings(runner, server)}
    with (
        server.connect() as connection,
        connector(runner, directory, servers, given, DEBEZIUM_JDBC) as running,
    ):

        def written() -> int:
            table = connection.execute("SELECT to_regclass(%s)", [topic]).fetchone()
            if table[0] is None:
                return 0
            # Rows come in order, and the index knows the last.
            found = connection.execute(f"SELECT max(id) FROM {topic}").fetchone()[0]
            return 0 if found is None else int(found) + 1

        rows_s = sink_rate(
            running, servers, topic, settings.connect_rows, written, settings.timeout_seconds
        )
        (count,) = connection.execute(f"SELECT count(*) FROM {topic}").fetchone()
        memory_mb = running.memory_mb
    if count != settings.connect_rows + 1:
        raise RuntimeError(f"{runner}: the table has {count} rows")
    return {"connect_jdbc_topic_s": rows_s, "connect_jdbc_mb": memory_mb}


def _settings(runner: str, server: Any) -> dict[str, str]:
    if runner == "kafka":
        return {
            "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "connection.url": server.jdbc_url,
            "connection.username": USER,
            "connection.password": server.password,
            "insert.mode": "upsert",
            "primary.key.mode": "record_key",
            "schema.evolution": "basic",
            "batch.size": _BATCH,
            "consumer.override.max.poll.records": _BATCH,
        }
    return {
        **access(server),
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "insert.mode": "upsert",
        "pk.mode": "record_key",
        "auto.create": "true",
        "batch.size": _BATCH,
    }
