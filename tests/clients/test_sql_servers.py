"""Several SQL servers of one service as processes: each query runs on one of them."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.node_process import wait_until
from support.patience import PATIENCE_S
from support.sql_server_process import LOCAL, SqlServer

pytestmark = pytest.mark.slow
SETTINGS = (
    *LOCAL,
    "ksql.heartbeat.enable=true",
    "ksql.heartbeat.discover.interval.ms=200",
    "ksql.lag.reporting.enable=true",
    "ksql.lag.reporting.send.interval.ms=200",
    "ksql.streams.consumer.session.timeout.ms=6000",
)
STORY = """
CREATE STREAM charges (station STRING KEY, kwh BIGINT)
  WITH (kafka_topic='charges-{0}', value_format='JSON', partitions=2);
CREATE TABLE energy WITH (kafka_topic='energy-{0}') AS
  SELECT station, SUM(kwh) AS total, COUNT(*) AS charges FROM charges GROUP BY station EMIT CHANGES;
CREATE STREAM doubled WITH (kafka_topic='doubled-{0}') AS
  SELECT station, kwh * 2 AS kwh FROM charges EMIT CHANGES;
"""
STATIONS = 5


@pytest.fixture
def servers(kafka_bootstrap_servers: str) -> Iterator[list[SqlServer]]:
    """Two servers of one service, which know each other."""
    with ExitStack() as stack:
        first = SqlServer(kafka_bootstrap_servers, SETTINGS)
        both = [first, SqlServer(kafka_bootstrap_servers, SETTINGS, suffix=first.suffix)]
        for server in both:
            stack.callback(lambda one=server: one.process and one.stop(signal.SIGKILL))
            server.start()
        for server in both:
            wait_for(lambda one=server: len(alive(one)) == 2, lambda one=server: str(alive(one)))  # type: ignore[misc]  # mypy does not type defaults of lambdas
        yield both


def wait_for(is_so: Callable[[], bool], shown: Callable[[], str]) -> None:
    wait_until(is_so, "what servers share", shown=shown)


def alive(server: SqlServer) -> set[str]:
    status = server.client.get("/clusterStatus").json()["clusterStatus"]
    return {host for host, one in status.items() if one["hostAlive"]}


def owners(server: SqlServer) -> dict[str, list[str]]:
    """Which servers run each query, as one of them says."""
    answer = server.ksql("SHOW QUERIES EXTENDED;")[0]
    return {one["id"]: list(one["ksqlHostQueryStatus"]) for one in answer["queryDescriptions"]}


def are_shared(owners: dict[str, list[str]]) -> bool:
    """Return whether each query has one owner, and no two have the same."""
    hosts = [host for found in owners.values() for host in found]
    return len(hosts) == len(set(hosts)) == len(owners)


def produce(bootstrap_servers: str, topic: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "partitioner": "murmur2_random"})
    for number in range(first, first + count):
        producer.produce(topic, json.dumps({"kwh": number}), f"s{number % STATIONS}")
    assert producer.flush(PATIENCE_S) == 0


def expected(count: int) -> list[list[Any]]:
    mine = {f"s{number}": range(number, count, STATIONS) for number in range(STATIONS)}
    return [[name, sum(own), len(own)] for name, own in sorted(mine.items())]


def written(bootstrap_servers: str, topic: str) -> list[tuple[str, dict[str, Any]]]:
    """The records of a topic, each partition in order."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "check"})
    found: list[tuple[str, dict[str, Any]]] = []
    try:
        for partition in range(2):
            place = TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(place, PATIENCE_S)
            consumer.assign([place])
            while end and (not found or consumer.position([place])[0].offset < end):
                message = consumer.poll(PATIENCE_S)
                assert message is not None
                assert message.error() is None
                found.append(((message.key() or b"").decode(), json.loads(message.value() or b"")))
    finally:
        consumer.close()
    return found


def test_a_query_goes_on_elsewhere_when_its_server_is_killed(
    servers: list[SqlServer], kafka_bootstrap_servers: str
) -> None:
    first, second = servers
    suffix = first.suffix
    first.ksql(STORY.format(suffix))
    # Two queries, two servers: one each, as both tell.
    for server in servers:
        wait_for(lambda one=server: are_shared(owners(one)), lambda one=server: str(owners(one)))  # type: ignore[misc]  # mypy does not type defaults of lambdas
    produce(kafka_bootstrap_servers, f"charges-{suffix}", 0, 1000)
    for server in servers:
        server.wait_for_rows("SELECT * FROM energy;", expected(1000))
    counts = [one["statusCount"] for one in second.ksql("SHOW QUERIES;")[0]["queries"]]
    assert counts == [{"RUNNING": 1}] * 2
    described = second.ksql("DESCRIBE energy EXTENDED;")[0]["sourceDescription"]
    assert described["writeQueries"][0]["statusCount"] == {"RUNNING": 1}

    (owner,) = owners(first)[described["writeQueries"][0]["id"]]
    killed, other = servers if first.url.endswith(owner) else (second, first)
    killed.stop(signal.SIGKILL)
    produce(kafka_bootstrap_servers, f"charges-{suffix}", 1000, 500)
    other.wait_for_rows("SELECT * FROM energy;", expected(1500))
    wait_for(lambda: len(alive(other)) == 1, lambda: str(alive(other)))
    assert {tuple(hosts) for hosts in owners(other).values()} == {(next(iter(alive(other))),)}
    results = written(kafka_bootstrap_servers, f"energy-{suffix}")
    assert len({(key, one["CHARGES"]) for key, one in results}) == 1500
    doubled = written(kafka_bootstrap_servers, f"doubled-{suffix}")
    assert {one["KWH"] for _, one in doubled} == set(range(0, 3000, 2))

    killed.start()
    wait_for(lambda: len(alive(other)) == 2, lambda: str(alive(other)))


def test_a_server_that_stood_still_gives_way(
    servers: list[SqlServer], kafka_bootstrap_servers: str
) -> None:
    first, second = servers
    suffix = first.suffix
    energy = first.ksql(STORY.format(suffix))[1]["commandStatus"]["queryId"]
    wait_for(lambda: are_shared(owners(second)), lambda: str(owners(second)))
    produce(kafka_bootstrap_servers, f"charges-{suffix}", 0, 100)
    (owner,) = owners(first)[energy]
    still, other = servers if first.url.endswith(owner) else (second, first)
    other.wait_for_rows("SELECT * FROM energy;", expected(100))
    assert still.process is not None
    still.process.send_signal(signal.SIGSTOP)
    try:
        produce(kafka_bootstrap_servers, f"charges-{suffix}", 100, 100)
        other.wait_for_rows("SELECT * FROM energy;", expected(200))
    finally:
        still.process.send_signal(signal.SIGCONT)
    produce(kafka_bootstrap_servers, f"charges-{suffix}", 200, 100)
    wait_for(lambda: are_shared(owners(other)), lambda: str(owners(other)))
    produce(kafka_bootstrap_servers, f"charges-{suffix}", 300, 100)
    for server in servers:
        server.wait_for_rows("SELECT * FROM energy;", expected(400))
    results = written(kafka_bootstrap_servers, f"energy-{suffix}")
    last = {key: [key, one["TOTAL"], one["CHARGES"]] for key, one in results}
    assert sorted(last.values()) == expected(400)


def test_statements_work_at_any_server(
    servers: list[SqlServer], kafka_bootstrap_servers: str
) -> None:
    first, second = servers
    suffix = first.suffix
    answers = first.ksql(STORY.format(suffix))
    energy, doubled = (answer["commandStatus"]["queryId"] for answer in answers[1:])

    def states(server: SqlServer) -> dict[str, dict[str, int]]:
        return {one["id"]: one["statusCount"] for one in server.ksql("SHOW QUERIES;")[0]["queries"]}

    for server in (*servers, first):
        server.ksql(f"PAUSE {energy}; PAUSE {doubled};")
        for one in servers:
            both = {energy: {"PAUSED": 1}, doubled: {"PAUSED": 1}}
            wait_for(lambda one=one, both=both: states(one) == both, lambda: str(states(first)))  # type: ignore[misc]
        server.ksql("RESUME ALL;")
    produce(kafka_bootstrap_servers, f"charges-{suffix}", 0, 100)
    second.wait_for_rows("SELECT * FROM energy;", expected(100))

    for server in servers:
        wait_for(
            lambda one=server: lag(one, energy) == [0, 0], lambda one=server: str(lag(one, energy))
        )  # type: ignore[misc]

    # What one server drops with its topic is not deleted by the other once it is there again.
    second.ksql(f"TERMINATE {doubled}; DROP STREAM doubled DELETE TOPIC;")
    answer = second.ksql(
        f"CREATE STREAM doubled WITH (kafka_topic='doubled-{suffix}') AS SELECT * FROM charges;"
    )
    (made,) = (one["commandStatus"]["queryId"] for one in answer)
    wait_for(lambda: len(owners(first)[made]) == 1, lambda: str(owners(first)))
    rows = sorted([f"s{number % STATIONS}", number] for number in range(100))
    first.wait_for_rows("SELECT * FROM doubled;", rows)


def lag(server: SqlServer, query_id: str) -> list[int]:
    """Return the largest lag of a query's table, as each server reports it."""
    status = server.client.get("/clusterStatus").json()["clusterStatus"].values()
    lags = [one["hostStoreLags"]["stateStoreLags"].get(f"{query_id}#ENERGY") for one in status]
    return [
        max(each["offsetLag"] for each in one["lagByPartition"].values()) for one in lags if one
    ]
