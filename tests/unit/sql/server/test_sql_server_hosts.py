"""Servers of one service: who is alive, what they tell each other, and what a client sees of it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.config import ServerConfig, ServerConfigError
from barnabas.sql.server.hosts import FORGET_MS, HeartbeatConfig, Hosts, missed_last
from barnabas.sql.server.peers import INTERNAL, Peers
from barnabas.web.listening import ListenAddress
from support.sql_server_world import SqlWorld

ON = HeartbeatConfig(is_enabled=True)


@pytest.mark.parametrize(
    ("heartbeats", "missed"),
    [
        ([1000, 1100, 1200, 1300, 1400], 0),
        ([1000, 1100, 1200], 2),
        ([1000, 1400], 0),
        ([1000], 4),
        ([], 4),
        ([1000, 1100, 1700], 3),
    ],
)
def test_heartbeats_missed_at_the_end_count(heartbeats: list[int], missed: int) -> None:
    assert missed_last(heartbeats, 1000, 1500, 100) == missed


def test_a_server_dies_and_comes_back() -> None:
    hosts = Hosts("a:1", ON, 0)
    hosts.found(["a:1", "b:1"], 0)
    assert hosts.statuses["b:1"].is_alive
    for at in range(0, 1000, 100):
        hosts.received("b:1", at)
    hosts.received("stranger:1", 0)
    hosts.check(1000)
    assert hosts.statuses["b:1"].is_alive
    hosts.check(1500)
    assert not hosts.statuses["b:1"].is_alive
    hosts.check(9000)
    assert (hosts.statuses["b:1"].updated_ms, hosts.statuses["b:1"].heartbeats) == (1500, [])
    hosts.received("b:1", 9050)
    hosts.check(9060)
    assert hosts.statuses["b:1"].is_alive
    assert list(hosts.statuses) == ["a:1", "b:1"]
    hosts.check(20_000)
    hosts.found(["a:1"], 20_000)
    assert "b:1" in hosts.statuses
    hosts.found(["a:1"], 20_000 + FORGET_MS)
    assert list(hosts.statuses) == ["a:1"]


def test_without_heartbeats_the_group_says_who_is_alive() -> None:
    hosts = Hosts("a:1", HeartbeatConfig(), 0)
    hosts.found(["b:1"], 10)
    hosts.found([], 20)
    alive = {host: status.is_alive for host, status in hosts.statuses.items()}
    assert alive == {"a:1": True, "b:1": False}


class Members:
    def __init__(self, slots: dict[str, frozenset[int]]) -> None:
        self.slots = slots

    def servers(self) -> dict[str, frozenset[int]]:
        return self.slots


async def test_the_cluster_status_is_ksqldbs() -> None:
    world = SqlWorld()
    await world.ksql(
        "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
        "partitions=1);"
        "CREATE TABLE t AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;"
    )
    (query_id,) = world.engine.queries
    members = Members({"http://a:1": frozenset(range(16)), "http://b:2": frozenset(range(16, 32))})
    peers = Peers(world.engine, "http://a:1", members, ON)
    world.client = world.client_of(KsqlApi(world.engine, peers))
    await peers.discover()
    peers.hosts.reported("a:1", peers.own_lags())
    lags = {"stateStoreLags": {f"{query_id}#T": {"lagByPartition": {}}}, "updateTimeMs": 5}
    for host in ("b:2", {"host": "b", "port": 2}):
        told = await world.post("/lag", {"ksqlHost": host, "hostStoreLags": lags})
        assert told.json() == {"isOk": True}
        told = await world.post("/heartbeat", {"hostInfo": host, "timestamp": 1})
        assert told.json() == {"isOk": True}
    status = (await world.client.get("/clusterStatus")).json()["clusterStatus"]
    place = {"topic": "s", "partition": 0}
    own = status["a:1"]
    assert own["hostAlive"] is True
    assert own["activeStandbyPerQuery"] == {
        query_id: {
            "activeStores": ["T"],
            "activePartitions": [place],
            "standByStores": [],
            "standByPartitions": [],
        }
    }
    lag = {"currentOffsetPosition": 0, "endOffsetPosition": 0, "offsetLag": 0}
    stores = own["hostStoreLags"]["stateStoreLags"]
    assert stores == {f"{query_id}#T": {"lagByPartition": {"0": lag}}}
    assert status["b:2"]["hostStoreLags"] == lags
    assert status["b:2"]["activeStandbyPerQuery"][query_id]["standByStores"] == ["T"]
    peers.hosts.check(10**15)
    dead = (await world.client.get("/clusterStatus")).json()["clusterStatus"]["b:2"]
    assert (dead["hostAlive"], dead["activeStandbyPerQuery"]) == (False, {})
    assert dead["hostStoreLags"] == {"stateStoreLags": {}, "updateTimeMs": 0}
    await world.close()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/heartbeat", {}),
        ("/heartbeat", {"hostInfo": "nowhere", "timestamp": 1}),
        ("/heartbeat", {"hostInfo": "a:1", "timestamp": "soon"}),
        ("/heartbeat", {"hostInfo": "a:1", "timestamp": None}),
        ("/lag", {"ksqlHost": "a:1"}),
        ("/lag", {"ksqlHost": {"host": "a"}, "hostStoreLags": {}}),
    ],
)
async def test_malformed_messages_of_servers_are_refused(path: str, body: Any) -> None:
    world = SqlWorld()
    answer = await world.post(path, body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 40000)
    await world.close()


async def test_queries_of_others_count_where_they_run() -> None:
    world = SqlWorld()
    await world.ksql(
        "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', value_format='JSON', "
        "partitions=1);"
        "CREATE STREAM t AS SELECT * FROM s;"
    )
    answers = await world.ksql("SHOW QUERIES;", requestProperties={INTERNAL: True})
    assert answers[0]["queries"][0]["statusCount"] == {"RUNNING": 1}
    world.engine.own(())
    answers = await world.ksql("SHOW QUERIES;", requestProperties={INTERNAL: True})
    assert answers[0]["queries"][0]["statusCount"] == {}
    # Nobody runs it yet: it is about to be taken over.
    answers = await world.ksql("SHOW QUERIES;")
    assert answers[0]["queries"][0]["statusCount"] == {"RUNNING": 1}
    described = await world.ksql("DESCRIBE t EXTENDED;", requestProperties={INTERNAL: True})
    assert described[0]["sourceDescription"]["writeQueries"][0]["statusCount"] == {}
    await world.close()


def test_the_properties_of_servers() -> None:
    config = ServerConfig(
        {
            "ksql.heartbeat.enable": "TRUE",
            "ksql.heartbeat.send.interval.ms": "50",
            "ksql.heartbeat.missed.threshold.ms": 5,
            "ksql.advertised.listener": "https://sql.example:9",
            "ksql.streams.consumer.session.timeout.ms": "7000",
        }
    )
    assert config.heartbeats == HeartbeatConfig(True, send_interval_ms=50, missed_threshold=5)
    assert config.session_timeout_ms == 7000
    assert config.advertised([]) == "https://sql.example:9"
    assert ServerConfig().advertised([ListenAddress("127.0.0.1", 5)]) == "http://127.0.0.1:5"
    assert "0.0.0.0" not in ServerConfig().advertised([ListenAddress("0.0.0.0", 5)])
    with pytest.raises(ServerConfigError, match=r"ksql.heartbeat.window.ms is a positive number"):
        _ = ServerConfig({"ksql.heartbeat.window.ms": "soon"}).heartbeats
