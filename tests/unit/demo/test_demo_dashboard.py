"""The dashboard's state, and how its server publishes it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from starlette.testclient import TestClient

from barnabas import Cluster
from barnabas.demo.dashboard.groups import Furthest, GroupMonitor, History, watched_groups
from barnabas.demo.dashboard.monitors import (
    BrokerMonitor,
    cluster_status,
    described,
    registry_status,
)
from barnabas.demo.dashboard.readers import Rate
from barnabas.demo.dashboard.server import _CONNECTIONS_MAX, DashboardServer
from barnabas.demo.dashboard.state import (
    FEED_LENGTH_MAX,
    MINUTES_SHOWN_MAX,
    DashboardState,
    GroupStatus,
    RegistryStatus,
    SchemaStatus,
    SqlServerStatus,
    StatementStatus,
)
from barnabas.demo.generators.run import ensure_topics
from barnabas.demo.reading import AvroValues
from barnabas.demo.schemas import EVOLVED_FROM
from barnabas.demo.topics import (
    ENERGY_PER_MINUTE,
    RECOMMENDATIONS_GROUP,
    STATION_AVAILABILITY,
    USER_ACTIVITY,
)
from barnabas.node.coordinator.group.service import GroupCoordinator
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.offsets import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.wire_format import prefix_of
from support.dashboard_page import serving
from support.node_process import wait_until


def put(board: DashboardState, topic: str, key: str, /, **row: Any) -> None:
    board.apply(topic, key.encode(), row)


def energy(state: DashboardState, minute: int, energy_wh: int) -> None:
    put(
        state,
        ENERGY_PER_MINUTE,
        f"Ghent@{minute}",
        city="Ghent",
        window_start_ms=minute * 60_000,
        window_end_ms=(minute + 1) * 60_000,
        energy_wh=energy_wh,
        readings=1,
        charges_started=0,
        charges_stopped=0,
        faults=0,
    )


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def state() -> DashboardState:
    return DashboardState("broker:9092")


def test_a_repeated_key_replaces_what_was_shown(state: DashboardState) -> None:
    energy(state, 1, 100)
    energy(state, 1, 250)
    energy(state, 2, 50)
    assert state.snapshot()["figures"]["charging"]["energy_wh"] == 300


def test_a_station_without_a_report_is_unknown(state: DashboardState) -> None:
    for number, city in ((1, "Lyon"), (2, "Ghent")):
        state.set_station(f"s{number}", {"name": f"S {number}", "city": city})
    put(
        state,
        STATION_AVAILABILITY,
        "s1@0",
        station_id="s1",
        name="S 1",
        city="Lyon",
        window_start_ms=0,
        window_end_ms=1,
        state="charging",
        state_time_ms=5,
        state_sequence=1,
        reports=2,
        available_reports=1,
    )
    tiles = state.snapshot()["stations"]
    assert [(t["id"], t["state"]) for t in tiles] == [("s2", "unknown"), ("s1", "charging")]
    state.set_station("s2", None)
    assert [t["id"] for t in state.snapshot()["stations"]] == ["s1"]


def test_the_page_gets_the_newest_minutes_only(state: DashboardState) -> None:
    for minute in range(1, MINUTES_SHOWN_MAX + 11):
        energy(state, minute, minute)
    cut = state.snapshot(MINUTES_SHOWN_MAX)["figures"]["energy_wh_per_minute"]
    assert len(cut) == MINUTES_SHOWN_MAX
    assert list(cut)[-1] == str((MINUTES_SHOWN_MAX + 10) * 60_000)
    assert len(state.snapshot()["figures"]["energy_wh_per_minute"]) == MINUTES_SHOWN_MAX + 10


def test_event_time_never_goes_back(state: DashboardState) -> None:
    state.add_activity([{"event_time_ms": 50}, {"event_time_ms": 20}], 2, 1.0)
    state.add_activity([{"event_time_ms": 30}] * 20, 22, 1.0)
    snapshot = state.snapshot()
    assert snapshot["event_time_ms"] == 50
    assert len(snapshot["feed"]) == FEED_LENGTH_MAX


def test_only_changes_make_a_new_version(state: DashboardState) -> None:
    state.set_connection("connected")
    version = state.version
    state.set_connection("connected")
    state.snapshot()
    assert state.version == version
    state.set_connection("lost", "no broker answers")
    assert state.version == version + 1


FIRST = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'
SECOND = (
    '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "int", "default": 0},'
    ' {"name": "a", "type": "string"}]}'
)


def version(number: int, schema: str, **more: Any) -> dict[str, Any]:
    return {"subject": "s", "version": number, "id": 10 + number, "schema": schema, **more}


def test_how_schemas_have_evolved() -> None:
    evolved = {"properties": {EVOLVED_FROM: "2025-03-03T07:20:00+00:00"}}
    status = registry_status(
        "http://r",
        {
            "one": [version(1, FIRST)],
            "two": [version(1, FIRST), version(2, SECOND, metadata=evolved)],
            "none": [],
        },
    )
    assert status == RegistryStatus(
        "http://r",
        up=True,
        schemas=[
            SchemaStatus("one", 1, 11),
            SchemaStatus("two", 2, 12, "2025-03-03T07:20:00+00:00", ["b"]),
        ],
    )


def test_a_registry_that_is_away_is_told_with_what_is_known(state: DashboardState) -> None:
    state.set_registry(RegistryStatus("http://r", True, [SchemaStatus("one", 1, 11)]))
    version_before = state.version
    state.set_registry_down()
    state.set_registry_down()
    assert state.version == version_before + 1
    registry = state.snapshot()["registry"]
    assert not registry["up"]
    assert registry["schemas"][0]["topic"] == "one"


class FewSchemas(RegistryClient):
    """A registry of two schemas."""

    def resolved_avro(self, schema_id: int) -> str | None:
        return {1: FIRST, 2: SECOND}.get(schema_id)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (prefix_of(1) + b"\x04hi", {"a": "hi"}),
        (prefix_of(2) + b"\x06\x04hi", {"a": "hi", "b": 3}),
        (prefix_of(3) + b"\x04hi", None),
        (prefix_of(1) + b"\x04h", None),
        (prefix_of(1) + b"\x04\xff\xff", None),
        (b"hi", None),
        (None, None),
    ],
)
def test_a_value_is_read_with_the_schema_of_its_id(
    value: bytes | None, expected: dict[str, Any] | None
) -> None:
    assert AvroValues(FewSchemas("http://r")).read(value) == expected


def metadata(*up: int, leader: int = 1, in_sync: tuple[int, ...] = (1, 2)) -> Any:
    """librdkafka's metadata of two partitions with replicas on nodes 1 and 2."""
    partition = {"leader": leader, "replicas": [1, 2], "isrs": list(in_sync)}
    return SimpleNamespace(
        brokers={n: SimpleNamespace(host="127.0.0.1", port=9090 + n) for n in up},
        topics={
            "t": SimpleNamespace(partitions={n: SimpleNamespace(id=n, **partition) for n in (0, 1)})
        },
    )


def test_a_node_that_was_seen_is_down_when_it_is_seen_no_more() -> None:
    addresses: dict[int, str] = {}
    before = cluster_status(metadata(1, 2), addresses)
    assert [(b.node_id, b.up, b.leads, b.in_sync, b.replicas) for b in before.brokers] == [
        (1, True, 2, 2, 2),
        (2, True, 0, 2, 2),
    ]
    assert (before.partitions, before.without_leader, before.under_replicated) == (2, 0, 0)
    after = cluster_status(metadata(2, leader=-1, in_sync=(2,)), addresses)
    assert [(b.address, b.up, b.leads) for b in after.brokers] == [
        ("127.0.0.1:9091", False, 0),
        ("127.0.0.1:9092", True, 0),
    ]
    assert (after.without_leader, after.under_replicated) == (2, 2)


def test_records_are_lost_where_a_partition_goes_back() -> None:
    seen = Furthest()
    assert seen.lost({("t", 0): 10, ("t", 1): 5}) == 0
    assert seen.lost({("t", 0): 12}) == 0  # the other's leader does not answer
    assert seen.lost({("t", 0): 12, ("t", 1): 3}) == 2
    assert seen.lost({("t", 0): 9, ("t", 1): 6}) == 3


def test_the_brokers_are_asked(cluster: Cluster) -> None:
    state = DashboardState(cluster.bootstrap_servers)
    monitor = BrokerMonitor(cluster.bootstrap_servers, state)
    monitor.start()
    wait_until(lambda: bool(state.snapshot()["cluster"]["brokers"]), "an answer of the brokers")
    monitor.stop()
    (broker,) = state.snapshot()["cluster"]["brokers"]
    assert (broker["up"], broker["address"]) == (True, cluster.bootstrap_servers)
    state.set_brokers_down()
    assert not state.snapshot()["cluster"]["brokers"][0]["up"]


def test_a_coordinator_that_has_moved_is_found_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """librdkafka's admin client ends the process where it gets the answer NOT_COORDINATOR."""
    ensure_topics(cluster.bootstrap_servers)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": RECOMMENDATIONS_GROUP}
    consumer = Consumer(settings)
    consumer.commit(offsets=[TopicPartition(USER_ACTIVITY, 0, 3)], asynchronous=False)
    consumer.close()
    answer = GroupCoordinator.offset_fetch
    refusals = iter(range(3))

    def refuse_at_first(
        service: GroupCoordinator,
        request: OffsetFetchRequestGroup,
        *,
        require_stable: bool,
    ) -> Any:
        if next(refusals, None) is None:
            return answer(service, request, require_stable=require_stable)
        error = ErrorCode.NOT_COORDINATOR
        return OffsetFetchResponseGroup(group_id=request.group_id, error_code=error)

    monkeypatch.setattr(GroupCoordinator, "offset_fetch", refuse_at_first)
    state = DashboardState(cluster.bootstrap_servers)
    monitor = GroupMonitor(cluster.bootstrap_servers, state, watched_groups())
    monitor.start()
    wait_until(lambda: bool(state.snapshot()["groups"]), "the groups' positions")
    monitor.stop()
    positions = {group["name"]: group["position"] for group in state.snapshot()["groups"]}
    assert positions == {**dict.fromkeys(watched_groups(), 0), RECOMMENDATIONS_GROUP: 3}
    assert next(refusals, None) is None


def test_a_group_is_as_late_as_its_topic_has_been_further() -> None:
    history = History()
    found = [history.behind_seconds(float(at), 10 * max(0, at - 3), 10 * at) for at in range(10)]
    assert found == [0.0, 0.0, 1.0, *[2.0] * 7]
    assert history.behind_seconds(10.0, 100, 100) == 0.0


def test_figures_are_as_late_as_the_slowest_query(state: DashboardState) -> None:
    def group(name: str, lag: int | None, seconds: float, is_spark: bool) -> GroupStatus:
        return GroupStatus(name, ["t"], lag=lag, behind_seconds=seconds, is_spark=is_spark)

    def statements(lag: int | None) -> SqlServerStatus:
        found = [StatementStatus("one", ["t"], lag=lag, behind_seconds=3.0)]
        return SqlServerStatus("http://s", up=True, statements=found)

    page = group("dashboard", 900, 90.0, False)
    state.set_groups([page, group("a", 5, 0.5, True)])
    assert state.snapshot()["behind"] is None
    state.set_statements(statements(None))
    assert state.snapshot()["behind"] is None
    state.set_statements(statements(2))
    assert state.snapshot()["behind"] == {"records": 5, "seconds": 3.0}


def test_what_the_sql_server_says_of_its_statements() -> None:
    query = {"id": "CTAS_T_5", "queryString": "CREATE TABLE T …", "state": "RUNNING"}
    summary = {
        "topicSummaries": [
            {"kafkaTopic": topic, "offsets": [{"partition": 0, "consumerOffset": offset}]}
            for topic, offset in (("b", 7), ("a", 3))
        ]
    }
    table = {"name": "T", "topic": "t", "writeQueries": [query], "queryOffsetSummaries": [summary]}
    source = {"name": "S", "topic": "s", "writeQueries": [], "queryOffsetSummaries": []}
    answers: list[dict[str, Any]] = [
        {"sourceDescriptions": [source]},
        {"sourceDescriptions": [table]},
    ]
    status = StatementStatus("t", ["a", "b"], state="RUNNING", sink="t", text="CREATE TABLE T …")
    assert described(answers) == [(status, {("a", 0): 3, ("b", 0): 7})]


def test_a_sql_server_that_is_away_is_told_with_its_statements(state: DashboardState) -> None:
    running = StatementStatus("one", ["t"], lag=2, state="RUNNING")
    state.set_statements(SqlServerStatus("http://s", up=True, statements=[running]))
    state.set_sql_server_down()
    snapshot = state.snapshot()
    assert snapshot["sql_server"] == {"url": "http://s", "up": False}
    (statement,) = snapshot["statements"]
    assert (statement["name"], statement["state"], statement["lag"]) == ("one", "DOWN", 2)


def test_a_rate_is_over_the_last_seconds() -> None:
    rate = Rate(5.0)
    for second in range(10):
        rate.add(float(second), 10)
    assert rate.per_second(9.0) == 10.0
    assert rate.per_second(100.0) == 0.0


@pytest.fixture
def url(state: DashboardState) -> Iterator[str]:
    """A server of that state, without any reader."""
    with serving(state) as url:
        yield url


def next_state(stream: Any) -> dict[str, Any]:
    for line in stream:
        if line.startswith(b"data: "):
            return dict(json.loads(line.removeprefix(b"data: ")))
    raise AssertionError("the stream ended")


def test_the_stream_sends_the_state_and_each_change(state: DashboardState, url: str) -> None:
    energy(state, 1, 100)
    with urllib.request.urlopen(f"{url}/events", timeout=20) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert next_state(stream)["figures"]["charging"]["energy_wh"] == 100
        energy(state, 2, 11)
        assert next_state(stream)["figures"]["charging"]["energy_wh"] == 111


def test_an_open_stream_does_not_hold_up_the_end(state: DashboardState, url: str) -> None:
    stream = urllib.request.urlopen(f"{url}/events", timeout=20)
    stream.readline()
    stream.close()
    energy(state, 1, 1)
    with urllib.request.urlopen(f"{url}/events", timeout=20) as again:
        next_state(again)


def test_the_whole_state_is_one_request_away(state: DashboardState, url: str) -> None:
    state.set_groups([GroupStatus("warehouse", ["user-activity"], position=3, end=5, lag=2)])
    with urllib.request.urlopen(f"{url}/api/state", timeout=20) as answer:
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        content = json.load(answer)
    assert content["groups"][0]["lag"] == 2
    assert content["connection"] == {
        "bootstrap": "broker:9092",
        "state": "connecting",
        "detail": "",
    }


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css", "/icon.svg"])
def test_the_page_is_served_and_names_no_other_host(url: str, path: str) -> None:
    with urllib.request.urlopen(f"{url}{path}", timeout=20) as answer:
        text = answer.read().decode()
    for scheme in ("http://", "https://"):
        assert text.count(scheme) == text.count(f"{scheme}www.w3.org/")  # SVG's namespace only


@pytest.mark.parametrize("path", ["/../server.py", "/%2e%2e/server.py", "/absent"])
def test_nothing_else_is_served(url: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{url}{path}", timeout=20)
    assert refused.value.code == 404
    refused.value.close()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/api/state", {}, 200),
        ("/api/state", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("/api/state", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("/api/state", {"Origin": "http://elsewhere"}, 403),
        ("/events", {"Sec-Fetch-Site": "same-site"}, 403),
        ("/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ("/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ],
)
def test_other_pages_may_link_and_no_more(
    state: DashboardState, path: str, headers: dict[str, str], status: int
) -> None:
    with contextlib.closing(DashboardServer(state)) as server:
        client = TestClient(server.app, base_url="http://localhost:8088")
        assert client.get(path, headers=headers).status_code == status


def test_silent_clients_do_not_shut_the_page(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        for _ in range(_CONNECTIONS_MAX + 20):
            stack.enter_context(socket.create_connection((host, int(port))))
        with urllib.request.urlopen(f"{url}/api/state", timeout=20) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("host", "is_on_loopback", "status"),
    [("localhost:8088", True, 200), ("evil.example", True, 421), ("demo.example", False, 200)],
)
def test_the_page_is_for_its_own_host_and_in_no_frame(
    state: DashboardState, host: str, is_on_loopback: bool, status: int
) -> None:
    listener = "127.0.0.1" if is_on_loopback else "0.0.0.0"
    with contextlib.closing(DashboardServer(state, (), listener)) as server:
        client = TestClient(server.app, base_url=f"http://{host}")
        answer = client.get("/api/state")
    assert answer.status_code == status
    if status == 200:
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


RAISED = """
import resource
from unittest.mock import patch
from barnabas.base import descriptors
from barnabas.demo.dashboard import server

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 512))
with patch.object(server, "build_server") as build:
    build.side_effect = lambda *_, **__: print("limit", descriptors.limit()) or build.return_value
    arguments = "--bootstrap b:1 --registry http://r --sql-server http://s".split()
    server.main(arguments, standalone_mode=False)
"""


def test_the_limit_on_descriptors_is_raised_before_anything_is_built() -> None:
    """As every service does."""
    done = subprocess.run(
        [sys.executable, "-c", RAISED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "limit 512"
