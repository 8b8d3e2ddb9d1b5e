"""The demo's page with a state that a test fills, and a busy demo's figures."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from barnabas.demo.contract import DEFAULT_ACCELERATION, DEFAULT_RATE, DEFAULT_SEED, START_TIME_MS
from barnabas.demo.dashboard.groups import watched_groups
from barnabas.demo.dashboard.server import DashboardServer
from barnabas.demo.dashboard.state import (
    BrokerStatus,
    ClusterStatus,
    DashboardState,
    GroupStatus,
    RegistryStatus,
    SchemaStatus,
    SqlServerStatus,
    StatementStatus,
)
from barnabas.demo.generators.simulation import World
from barnabas.demo.schemas import AVRO_TOPICS, EVOLVED_FIELD, EVOLVING_TOPIC
from barnabas.demo.topics import (
    ACTIVITY_PER_MINUTE,
    ENERGY_PER_MINUTE,
    RECOMMENDATIONS,
    SQL_TOPICS,
    STATION_AVAILABILITY,
    STATION_STATUS,
    TOP_SEARCHES,
    TOP_SEARCHES_KEY,
    USER_ACTIVITY,
)
from support.node_process import wait_until

PARTITIONS = 13
RECORDS = 12_345_678
"""About as many as a night's run has published."""


@contextlib.contextmanager
def serving(state: DashboardState) -> Iterator[str]:
    """Serve a state without any reader; gives the page's URL."""
    server, stopping = DashboardServer(state), asyncio.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(stopping),))
    thread.start()
    wait_until(lambda: server.is_up, "the server's start")
    yield f"http://127.0.0.1:{server.port}"
    loop.call_soon_threadsafe(stopping.set)
    thread.join(20)
    assert not thread.is_alive()
    loop.close()


class Dashboard:
    """A server of a state that the test fills itself."""

    def __init__(self) -> None:
        self.state = DashboardState("broker:9092", "http://127.0.0.1:8090/")
        self._stack = contextlib.ExitStack()
        self.url = self._stack.enter_context(serving(self.state))

    def put(self, topic: str, key: str, **row: Any) -> None:
        self.state.apply(topic, key.encode(), row)

    def put_station(self, station_id: str, state: str, at_ms: int, city: str = "Ghent") -> None:
        self.put(
            STATION_AVAILABILITY,
            f"{station_id}@{at_ms}",
            station_id=station_id,
            name=f"Station {station_id}",
            city=city,
            window_start_ms=at_ms,
            window_end_ms=at_ms + 1,
            state=state,
            state_time_ms=at_ms,
            state_sequence=1,
            reports=1,
            available_reports=int(state == "available"),
        )

    def stop(self) -> None:
        self._stack.close()


def cluster(*up: bool, **more: int) -> ClusterStatus:
    """Nodes, each of which is up or not; `more` says what their partitions lack."""
    nodes = [
        BrokerStatus(node_id, f"127.0.0.1:{19091 + node_id}", is_up, 4 if is_up else 0, 13, 13)
        for node_id, is_up in enumerate(up, start=1)
    ]
    return ClusterStatus(nodes, partitions=PARTITIONS, **more)


def schemas(evolved: bool = True) -> RegistryStatus:
    """The registry's schemas; one has evolved or not."""
    since = datetime.fromtimestamp(START_TIME_MS / 1000, UTC).isoformat()
    found = {topic: SchemaStatus(topic, 1, number) for number, topic in enumerate(AVRO_TOPICS)}
    if evolved:
        found[EVOLVING_TOPIC] = SchemaStatus(EVOLVING_TOPIC, 2, 5, since, [EVOLVED_FIELD])
    return RegistryStatus("http://127.0.0.1:18081", True, list(found.values()))


def fill(dashboard: Dashboard, nodes: int, minutes: int = 300) -> None:
    """Put onto the page what the demo shows at its own rate after a long run."""
    world = World(
        {
            "seed": DEFAULT_SEED,
            "rate": DEFAULT_RATE,
            "acceleration": DEFAULT_ACCELERATION,
            "seconds": None,
        }
    )
    deliveries = [delivery for _ in range(minutes) for delivery in world.step()]
    figures = world.truth()["figures"]
    states = ("available", "charging", "available", "charging", "faulted", "offline")
    for number, station in enumerate(world.stations):
        state = states[number % len(states)]
        dashboard.put_station(station["station_id"], state, number, station["city"])
    # The events of many hours, all in the first minute.
    for minute, energy_wh in figures["energy_wh_per_minute"].items():
        for city, total_wh in figures["energy_wh_by_city"].items():
            row = {"city": city, "window_start_ms": int(minute), "energy_wh": energy_wh}
            counts = {"readings": 13_832, "charges_started": 447, "charges_stopped": 405}
            dashboard.put(ENERGY_PER_MINUTE, f"{city}@{minute}", faults=22, **row, **counts)
            if minute == min(figures["energy_wh_per_minute"]):
                row["energy_wh"] = 1000 * total_wh
                dashboard.put(ENERGY_PER_MINUTE, f"{city}@{minute}", faults=22, **row, **counts)
    window = {"window_start_ms": START_TIME_MS}
    no_sums = {"sessions": 0, "revenue_cents": 0}
    for kind in figures["activity"]:
        is_purchase = kind == "purchase"
        counts = {"events": RECORDS // 5 if is_purchase else RECORDS}
        sums = {"sessions": RECORDS, "revenue_cents": 98_765_432_199} if is_purchase else no_sums
        dashboard.put(ACTIVITY_PER_MINUTE, f"{kind}@0", kind=kind, **counts, **sums, **window)
        for minute, events in figures["activity_per_minute"].items():
            row = {"kind": kind, "window_start_ms": int(minute), "events": events, **no_sums}
            dashboard.put(ACTIVITY_PER_MINUTE, f"{kind}@{minute}", **row)
    dashboard.put(TOP_SEARCHES, TOP_SEARCHES_KEY, searches=figures["top_searches"])
    for item, together in figures["recommendations"].items():
        dashboard.put(RECOMMENDATIONS, item, item_id=item, together=together)
    activity = [delivery.value for delivery in deliveries if delivery.topic == USER_ACTIVITY]
    dashboard.state.add_activity(activity, RECORDS, 291.4)
    dashboard.state.set_cluster(cluster(*[True] * nodes))
    dashboard.state.set_records(3 * RECORDS, lost=0)
    dashboard.state.set_registry(schemas())
    groups = []
    lag = 12_345
    for name, topics in watched_groups().items():
        group = GroupStatus(name, list(topics), RECORDS, RECORDS + lag, lag, 4321.0, 2.0)
        group.lag_history = [(second * 37) % 600 for second in range(60)]
        groups.append(group)
    dashboard.state.set_groups(groups)
    statements = [
        StatementStatus(
            topic.replace("-", "_"),
            [STATION_STATUS],
            *(RECORDS, RECORDS + lag, lag, 4321.0),
            state="RUNNING",
        )
        for topic in SQL_TOPICS
    ]
    dashboard.state.set_statements(
        SqlServerStatus("http://127.0.0.1:18088", up=True, statements=statements)
    )
    dashboard.state.set_connection("connected")
