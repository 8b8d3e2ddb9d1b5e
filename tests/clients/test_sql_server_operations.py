"""What operators of `barnabas sql server` rely on: its broker goes away and comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from support.node_process import NodeProcess, wait_until
from support.patience import PATIENCE_S
from support.sql_server_process import LOCAL, SqlServer, running

SETTINGS = (
    *LOCAL,
    "ksql.logging.processing.topic.auto.create=true",
    "ksql.logging.processing.stream.auto.create=true",
    "ksql.query.retry.backoff.initial.ms=100",
    "ksql.query.retry.backoff.max.ms=200",
)
STORY = """
CREATE STREAM charges (station STRING KEY, kwh INT)
  WITH (kafka_topic='charges', value_format='JSON', partitions=2);
CREATE TABLE energy WITH (kafka_topic='energy') AS
  SELECT station, SUM(kwh) AS total FROM charges GROUP BY station EMIT CHANGES;
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    found = NodeProcess(tmp_path)
    found.start()
    yield found
    found.stop()


def metrics(server: SqlServer) -> dict[str, float]:
    """The sum of each metric's samples."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(server.client.get("/metrics").text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


def is_taken(server: SqlServer, text: str) -> bool:
    """Return whether the server takes a statement; what it refuses it refuses as ksqlDB does."""
    answer = server.client.post("/ksql", json={"ksql": text})
    return answer.status_code == 200 or not answer.json()["message"]


def query(server: SqlServer) -> dict[str, Any]:
    (answer,) = server.ksql("SHOW QUERIES EXTENDED;")
    found: dict[str, Any] = answer["queryDescriptions"][0]
    return found


def test_a_lost_broker_is_told_once_and_in_the_servers_own_words(
    node: NodeProcess, capfd: pytest.CaptureFixture[str]
) -> None:
    """And not by each client of the library, for each attempt to connect."""
    told: list[str] = []

    def is_told() -> bool:
        told.extend(capfd.readouterr().err.splitlines())
        return any("no broker answers" in line for line in told)

    with running(node.bootstrap_servers) as server:
        server.ksql(
            "CREATE STREAM s (n INT) WITH (kafka_topic='s', value_format='JSON', partitions=1);"
        )
        server.ksql("INSERT INTO s VALUES (1);")
        assert not is_told()
        node.kill()
        wait_until(is_told, "a line that says so")
    assert sum("no broker answers" in line for line in told) == 1
    assert [line for line in told if line.startswith("%")] == []


def produce_nonsense(bootstrap_servers: str) -> None:
    """By a producer that is gone then: when it connects again, librdkafka's creates topics that it
    knows and that are no longer there."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce("charges", b"nonsense", b"a")
    assert producer.flush(PATIENCE_S) == 0


@pytest.mark.slow
def test_queries_outlive_their_broker_and_their_topic(node: NodeProcess) -> None:
    with running(node.bootstrap_servers, SETTINGS) as server:
        server.ksql(STORY)
        server.ksql("INSERT INTO charges VALUES ('a', 7); INSERT INTO charges VALUES ('b', 1);")
        server.wait_for_rows("SELECT * FROM energy;", [["a", 7], ["b", 1]])

        produce_nonsense(node.bootstrap_servers)
        log = (
            "SELECT message->type, message->deserializationError->`TOPIC` FROM ksql_processing_log;"
        )
        server.wait_for_rows(log, [[0, "charges"]])
        found = metrics(server)
        assert found["ksql_query_consumed_messages_total"] == 3
        assert found["ksql_query_processing_errors_total"] == 1
        wait_until(lambda: metrics(server)["ksql_query_consumer_lag"] == 0, "the lag's end")

        node.kill()
        # A request for metrics does not wait for brokers.
        assert metrics(server)["ksql_liveness_indicator"] == 1
        node.start()
        wait_until(lambda: is_taken(server, "INSERT INTO charges VALUES ('a', 1);"), "an insert")
        server.wait_for_rows("SELECT * FROM energy WHERE station = 'a';", [["a", 8]])

        admin = AdminClient({"bootstrap.servers": node.bootstrap_servers})
        admin.delete_topics(["charges"])["charges"].result(PATIENCE_S)
        wait_until(lambda: query(server)["state"] == "ERROR", "the query's failure")
        error = query(server)["queryErrors"][-1]
        assert error["type"] == "USER", error
        wait_until(lambda: metrics(server)["ksql_query_restarts_total"] > 1, "restarts")
        assert metrics(server)["ksql_query_error_status"] == 1
        failed = "SELECT message->kafkaStreamsThreadError->threadName FROM ksql_processing_log "
        rows = server.rows(failed + "WHERE message->type = 4;")
        assert rows[0][0].startswith("CTAS_ENERGY_")

        admin.create_topics([NewTopic("charges", 2, 1)])["charges"].result(PATIENCE_S)
        wait_until(lambda: query(server)["state"] == "RUNNING", "the query's return")
        # The state held the old topic's records; that of the new topic starts empty.
        server.ksql("INSERT INTO charges VALUES ('c', 5);")
        server.wait_for_rows("SELECT * FROM energy WHERE station = 'c';", [["c", 5]])
        assert json.loads(server.client.get("/healthcheck").text)["isHealthy"] is True
