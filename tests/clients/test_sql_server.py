"""`barnabas sql server` as a process: ksqlDB's REST interface over a real node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from support.patience import PATIENCE_S
from support.sql_server_process import EARLIEST, SqlServer, running

STORY = """
CREATE STREAM charges (station STRING KEY, kwh DOUBLE, moment BIGINT)
  WITH (kafka_topic='charges-{0}', value_format='JSON', partitions=2, timestamp='moment');
CREATE TABLE stations (station STRING PRIMARY KEY, city STRING)
  WITH (kafka_topic='stations-{0}', value_format='JSON', partitions=2);
CREATE TABLE energy WITH (kafka_topic='energy-{0}') AS
  SELECT station, SUM(kwh) AS total, COUNT(*) AS charges FROM charges GROUP BY station EMIT CHANGES;
CREATE TABLE hourly WITH (kafka_topic='hourly-{0}') AS
  SELECT station, COUNT(*) AS charges FROM charges WINDOW TUMBLING (SIZE 1 HOUR)
  GROUP BY station EMIT CHANGES;
CREATE STREAM placed WITH (kafka_topic='placed-{0}') AS
  SELECT c.station AS station, c.kwh AS kwh, s.city AS city
  FROM charges c JOIN stations s ON c.station = s.station EMIT CHANGES;
"""


@pytest.fixture(scope="module")
def server(kafka_bootstrap_servers: str) -> Iterator[SqlServer]:
    with running(kafka_bootstrap_servers) as found:
        yield found


def test_statements_run_and_go_on_after_a_restart(kafka_bootstrap_servers: str) -> None:
    with running(kafka_bootstrap_servers) as server:
        answers = server.ksql(STORY.format(server.suffix))
        assert [a["commandStatus"]["status"] for a in answers] == ["SUCCESS"] * 5
        energy_id = answers[2]["commandStatus"]["queryId"]
        assert energy_id.startswith("CTAS_ENERGY_")
        server.ksql("INSERT INTO stations (station, city) VALUES ('a', 'Oslo');")
        server.ksql(
            "INSERT INTO charges (station, kwh, moment) VALUES ('a', 7.5, 1000);"
            "INSERT INTO charges (station, kwh, moment) VALUES ('a', 2.5, 3600000);"
            "INSERT INTO charges (station, kwh, moment) VALUES ('b', 1.0, 2000);"
        )
        server.wait_for_rows("SELECT * FROM energy;", [["a", 10.0, 2], ["b", 1.0, 1]])
        server.wait_for_rows("SELECT * FROM energy WHERE station = 'b';", [["b", 1.0, 1]])
        server.wait_for_rows(
            "SELECT * FROM hourly WHERE station = 'a' AND WINDOWSTART >= 0;",
            [["a", 0, 3_600_000, 1], ["a", 3_600_000, 7_200_000, 1]],
        )
        server.wait_for_rows("SELECT * FROM placed;", [["a", 2.5, "Oslo"], ["a", 7.5, "Oslo"]])
        assert server.stop() == 0

        produce(
            kafka_bootstrap_servers, f"charges-{server.suffix}", "a", {"kwh": 1.0, "moment": 5000}
        )
        server.start()
        listed = server.ksql("SHOW QUERIES;")[0]["queries"]
        assert {query["state"] for query in listed} == {"RUNNING"}
        assert energy_id in {query["id"] for query in listed}
        server.wait_for_rows("SELECT * FROM energy WHERE station = 'a';", [["a", 11.0, 3]])
        # Nothing is written twice: the state was built up again, its results were not.
        rows = [["a", 1.0, "Oslo"], ["a", 2.5, "Oslo"], ["a", 7.5, "Oslo"]]
        server.wait_for_rows("SELECT * FROM placed;", rows)

        server.ksql(f"TERMINATE {energy_id}; DROP TABLE energy DELETE TOPIC;")
        assert server.stop() == 0
        server.start()
        assert "ENERGY" not in {t["name"] for t in server.ksql("SHOW TABLES;")[0]["tables"]}


def produce(bootstrap_servers: str, topic: str, key: str, value: dict[str, Any]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "partitioner": "murmur2_random"})
    producer.produce(topic, json.dumps(value), key)
    assert producer.flush(PATIENCE_S) == 0


def test_a_push_query_goes_on_until_it_is_closed(server: SqlServer) -> None:
    topic = f"pushed-{server.suffix}"
    server.ksql(
        f"CREATE STREAM pushed (k STRING KEY, v INT) WITH (kafka_topic='{topic}', "
        "value_format='JSON', partitions=1);"
    )
    body = {"sql": "SELECT k, v * 2 AS twice FROM pushed EMIT CHANGES;", "properties": EARLIEST}
    with server.client.stream("POST", "/query-stream", json=body) as answer:
        lines = answer.iter_lines()
        header = json.loads(next(lines))
        assert header["columnNames"] == ["K", "TWICE"]
        server.ksql("INSERT INTO pushed VALUES ('a', 1); INSERT INTO pushed VALUES ('b', 2);")
        assert [json.loads(next(lines)) for _ in range(2)] == [["a", 2], ["b", 4]]
        closed = server.client.post("/close-query", json={"queryId": header["queryId"]})
        assert closed.status_code == 200
        assert list(lines) == []


def test_rows_of_a_stream_of_inserts_are_acknowledged(server: SqlServer) -> None:
    topic = f"inserted-{server.suffix}"
    server.ksql(
        f"CREATE STREAM inserted (k STRING KEY, v INT) WITH (kafka_topic='{topic}', "
        "value_format='JSON', partitions=1);"
    )
    lines = [{"target": "inserted"}, {"k": "a", "v": 1}, {"k": "b", "v": "no number"}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    answer = server.client.post("/inserts-stream", content=text)
    first, second = map(json.loads, answer.text.splitlines())
    assert first == {"status": "ok", "seq": 0}
    assert (second["status"], second["seq"], second["error_code"]) == ("error", 1, 40000)
    assert server.rows("SELECT * FROM inserted;") == [["a", 1]]


def test_inserts_may_come_in_many_parts_before_an_answer_is_read(server: SqlServer) -> None:
    topic = f"many-{server.suffix}"
    server.ksql(
        f"CREATE STREAM many (k STRING KEY, v INT) WITH (kafka_topic='{topic}', "
        "value_format='JSON', partitions=1);"
    )
    rows = [{"target": "many"}, *({"k": f"k{number}", "v": number} for number in range(20_000))]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    answer = server.client.post("/inserts-stream", content=text)
    acknowledged = [json.loads(line)["seq"] for line in answer.text.splitlines()]
    assert acknowledged == list(range(20_000))
    assert len(server.rows("SELECT v FROM many;")) == 20_000


def test_print_shows_a_topic(server: SqlServer) -> None:
    topic = f"printed-{server.suffix}"
    server.ksql(
        f"CREATE STREAM printed (k STRING KEY, v INT) WITH (kafka_topic='{topic}', "
        "value_format='JSON', partitions=1);"
        "INSERT INTO printed (ROWTIME, k, v) VALUES (1, 'a', 1);"
    )
    body = {"sql": f"PRINT '{topic}' FROM BEGINNING LIMIT 1;"}
    answer = server.client.post("/query-stream", json=body)
    assert answer.text.splitlines()[-1] == (
        'rowtime: 1970/01/01 00:00:00.001 Z, key: a, value: {"V":1}, partition: 0'
    )


def test_it_speaks_http_1_too(server: SqlServer) -> None:
    with httpx.Client(
        base_url=server.client.base_url, trust_env=False, timeout=PATIENCE_S
    ) as client:
        info = client.get("/info")
        assert info.http_version == "HTTP/1.1"
        assert info.json()["KsqlServerInfo"]["serverStatus"] == "RUNNING"
        assert client.get("/healthcheck").json()["isHealthy"] is True
