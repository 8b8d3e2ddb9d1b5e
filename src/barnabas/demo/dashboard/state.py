"""State of the dashboard, filled by reader threads, read as JSON snapshots.

The pipeline's output topics are folded into the figures that it shows.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from dataclasses import asdict, dataclass, field
from typing import Any

from barnabas.demo.contract import CityAvailability, Figures
from barnabas.demo.topics import (
    ACTIVITY_KINDS,
    ACTIVITY_PER_MINUTE,
    ENERGY_PER_MINUTE,
    OUTPUT_TOPICS,
    RECOMMENDATIONS,
    STATION_AVAILABILITY,
    STATION_STATES,
    TOP_SEARCHES,
    TOP_SEARCHES_KEY,
)

FEED_LENGTH_MAX = 8
MINUTES_SHOWN_MAX = 240
"""Four hours of event time; the whole series is in /api/state."""


@dataclass(slots=True)
class ReaderStatus:
    """The progress of a reader of topics: a consumer group, or a statement."""

    name: str
    topics: list[str]
    position: int = 0
    """Sum of its offsets over topics and partitions."""
    end: int = 0
    """Sum of the log end offsets over the partitions."""
    lag: int | None = None
    """Records not yet processed; None until it has said anything."""
    per_second: float = 0.0
    """Records processed per second of wall time, over the last seconds."""
    behind_seconds: float = 0.0
    """Time since the topics passed the position."""
    lag_history: list[int] = field(default_factory=list)


@dataclass(slots=True)
class GroupStatus(ReaderStatus):
    """A consumer group."""

    is_spark: bool = False
    """True if figures on the page wait for this group."""


@dataclass(slots=True)
class StatementStatus(ReaderStatus):
    """A statement of SQL that runs on the server, named as its stream or table."""

    state: str = ""
    """ksqlDB's word: RUNNING, PAUSED, ERROR or UNRESPONSIVE; DOWN where the server is away."""
    sink: str = ""
    text: str = ""


@dataclass(slots=True)
class SqlServerStatus:
    """The SQL server and its statements."""

    url: str
    up: bool = False
    statements: list[StatementStatus] = field(default_factory=list)


@dataclass(slots=True)
class BrokerStatus:
    """One node: whether it is up, and of how many partitions it has what."""

    node_id: int
    address: str
    up: bool
    leads: int = 0
    in_sync: int = 0
    replicas: int = 0


@dataclass(slots=True)
class ClusterStatus:
    """The brokers and their partitions."""

    brokers: list[BrokerStatus] = field(default_factory=list)
    partitions: int = 0
    without_leader: int = 0
    under_replicated: int = 0


@dataclass(slots=True)
class SchemaStatus:
    """The newest version of a topic's schema."""

    topic: str
    version: int
    schema_id: int
    evolved_from: str = ""
    """The event time from which on records have the new fields, in ISO 8601; empty if unknown."""
    new_fields: list[str] = field(default_factory=list)
    """Fields that the first version does not have."""


@dataclass(slots=True)
class RegistryStatus:
    """The schema registry."""

    url: str
    up: bool = False
    schemas: list[SchemaStatus] = field(default_factory=list)


@dataclass(slots=True)
class Connection:
    """Whether the brokers answer: connecting, connected or lost."""

    bootstrap: str
    state: str = "connecting"
    detail: str = ""


class DashboardState:
    """All that is shown. Every method may be called from any thread."""

    def __init__(self, bootstrap: str, console_url: str = "") -> None:
        self._lock = threading.Lock()
        self._console_url = console_url
        self._board = FigureBoard()
        self._stations: dict[str, dict[str, Any]] = {}
        self._feed: deque[dict[str, Any]] = deque(maxlen=FEED_LENGTH_MAX)
        self._groups: list[GroupStatus] = []
        self._cluster = ClusterStatus()
        self._registry = RegistryStatus("")
        self._sql = SqlServerStatus("")
        self._connectors: dict[str, str] = {}
        self._records = 0
        self._lost = 0
        self._connection = Connection(bootstrap)
        self._outputs_read: dict[str, int] = {}
        self._event_time_ms = 0
        self._activity_records = 0
        self._activity_per_second = 0.0
        self._version = 0

    @property
    def version(self) -> int:
        """Ascends with each change; equal versions mean equal snapshots."""
        return self._version

    @property
    def is_connected(self) -> bool:
        """True if the brokers answer."""
        return self._connection.state == "connected"

    def apply(self, topic: str, key: bytes, row: dict[str, Any]) -> None:
        """Take one row of an output topic."""
        with self._lock:
            self._version += 1
            self._board.apply(topic, key, row)

    def set_station(self, station_id: str, station: dict[str, Any] | None) -> None:
        """Take one row of the station table; None removes it."""
        with self._lock:
            self._version += 1
            if station is None:
                self._stations.pop(station_id, None)
            else:
                self._stations[station_id] = station

    def set_outputs_read(self, positions: dict[str, int]) -> None:
        """Note how far each output topic was read: the next offsets, summed over partitions."""
        with self._lock:
            self._version += 1
            self._outputs_read = dict(positions)

    def add_activity(
        self, events: list[dict[str, Any]], records: int, records_per_second: float
    ) -> None:
        """Take the newest activity events, and how many records the group has read in all."""
        with self._lock:
            self._version += 1
            self._feed.extend(events[-FEED_LENGTH_MAX:])
            for event in events:
                self._event_time_ms = max(self._event_time_ms, event["event_time_ms"])
            self._activity_records = records
            self._activity_per_second = records_per_second

    def set_groups(self, groups: list[GroupStatus]) -> None:
        """Replace what is known of the consumer groups."""
        with self._lock:
            self._version += 1
            self._groups = groups

    def set_statements(self, sql: SqlServerStatus) -> None:
        """Replace what is known of the SQL server and its statements."""
        with self._lock:
            self._version += 1
            self._sql = sql

    def set_sql_server_down(self) -> None:
        """Note that the SQL server does not answer; what else was known of it stays."""
        with self._lock:
            self._version += self._sql.up
            self._sql.up = False
            for statement in self._sql.statements:
                statement.state = "DOWN"

    def set_connectors(self, states: dict[str, str]) -> None:
        """Replace what is known of the connectors."""
        with self._lock:
            self._version += states != self._connectors
            self._connectors = states

    def set_cluster(self, cluster: ClusterStatus) -> None:
        """Replace what is known of the brokers."""
        with self._lock:
            self._version += cluster != self._cluster
            self._cluster = cluster

    def set_registry(self, registry: RegistryStatus) -> None:
        """Replace what is known of the schema registry."""
        with self._lock:
            self._version += registry != self._registry
            self._registry = registry

    def set_registry_down(self) -> None:
        """Note that the registry does not answer; what else was known of it stays."""
        with self._lock:
            self._version += self._registry.up
            self._registry.up = False

    def set_records(self, records: int, lost: int) -> None:
        """Note how many records the input topics hold, and how many that were readable are gone."""
        with self._lock:
            self._version += (records, lost) != (self._records, self._lost)
            self._records, self._lost = records, lost

    def set_brokers_down(self) -> None:
        """Note that no broker answers; what else was known of them stays."""
        with self._lock:
            self._version += 1
            for broker in self._cluster.brokers:
                broker.up = False

    def set_connection(self, state: str, detail: str = "") -> None:
        """Note whether the brokers answer."""
        with self._lock:
            if (state, detail) != (self._connection.state, self._connection.detail):
                self._version += 1
                self._connection.state = state
                self._connection.detail = detail

    def snapshot(self, minutes_max: int | None = None) -> dict[str, Any]:
        """Return everything as one JSON-ready object.

        `minutes_max` cuts the per-minute series to the newest so many minutes.
        """
        with self._lock:
            figures: dict[str, Any] = dict(self._board.figures())
            if minutes_max is not None:
                for name in ("energy_wh_per_minute", "activity_per_minute"):
                    series = sorted(figures[name].items(), key=lambda entry: int(entry[0]))
                    figures[name] = dict(series[-minutes_max:])
            return {
                "version": self._version,
                "connection": asdict(self._connection),
                "event_time_ms": self._event_time_ms,
                "activity_records": self._activity_records,
                "activity_per_second": round(self._activity_per_second, 1),
                "figures": figures,
                "stations": self._station_tiles(),
                "feed": list(self._feed),
                "groups": [asdict(group) for group in self._groups],
                "sql_server": {"url": self._sql.url, "up": self._sql.up},
                "statements": [asdict(statement) for statement in self._sql.statements],
                "connectors": dict(self._connectors),
                "cluster": asdict(self._cluster),
                "registry": asdict(self._registry),
                "console": self._console_url,
                "records": {"published": self._records, "lost": self._lost},
                "behind": self._behind(),
                "outputs_read": dict(self._outputs_read),
            }

    def _behind(self) -> dict[str, Any] | None:
        """Return how late the figures are: those of the slowest query. None before the first."""
        waited_for: list[ReaderStatus] = [group for group in self._groups if group.is_spark]
        waited_for += self._sql.statements
        lags = [reader.lag for reader in waited_for if reader.lag is not None]
        if not self._sql.statements or len(lags) < len(waited_for):
            return None
        return {
            "records": max(lags),
            "seconds": max(reader.behind_seconds for reader in waited_for),
        }

    def _station_tiles(self) -> list[dict[str, Any]]:
        """Return each station with its state now; one without a report yet is 'unknown'."""
        rows = self._board.station_rows()
        known = {**{i: rows[i] for i in rows}, **self._stations}
        tiles = [
            {
                "id": station_id,
                "name": station.get("name", station_id),
                "city": station.get("city", ""),
                "power_w": station.get("power_w"),
                "state": rows[station_id]["state"] if station_id in rows else "unknown",
            }
            for station_id, station in known.items()
        ]
        return sorted(tiles, key=lambda tile: (tile["city"], tile["id"]))


class FigureBoard:
    """The latest value of each key of each output topic, and what they add up to."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: dict[str, dict[bytes, Any]] = {topic: {} for topic in OUTPUT_TOPICS}

    def apply(self, topic: str, key: bytes, row: dict[str, Any]) -> None:
        """Upsert one row of an output topic, as `results.read_row` gives it.

        Raises KeyError for a topic that is not an output topic.
        """
        self.rows[topic][key] = row

    def station_rows(self) -> dict[str, dict[str, Any]]:
        """Return each station's newest row of `station-availability`, by station id."""
        newest: dict[str, dict[str, Any]] = {}
        for row in self.rows[STATION_AVAILABILITY].values():
            known = newest.get(row["station_id"])
            if known is None or _state_order(row) > _state_order(known):
                newest[row["station_id"]] = row
        return newest

    def figures(self) -> Figures:
        """Return every figure, in the shape and order in which the truth has them."""
        by_state = dict.fromkeys(STATION_STATES, 0)
        for row in self.station_rows().values():
            by_state[row["state"]] += 1
        availability: dict[str, CityAvailability] = {}
        for row in self.rows[STATION_AVAILABILITY].values():
            city = availability.setdefault(row["city"], {"reports": 0, "available_reports": 0})
            city["reports"] += row["reports"]
            city["available_reports"] += row["available_reports"]
        energy = list(self.rows[ENERGY_PER_MINUTE].values())
        activity = list(self.rows[ACTIVITY_PER_MINUTE].values())
        by_kind = _sums(activity, "kind", "events")
        searches = self.rows[TOP_SEARCHES].get(TOP_SEARCHES_KEY.encode(), {"searches": []})
        by_city = _sums(energy, "city", "energy_wh")
        return {
            "stations_by_state": by_state,
            "availability_by_city": dict(sorted(availability.items())),
            "charging": {
                "energy_wh": _sum(energy, "energy_wh"),
                "readings": _sum(energy, "readings"),
                "charges_started": _sum(energy, "charges_started"),
                "charges_stopped": _sum(energy, "charges_stopped"),
                "faults": _sum(energy, "faults"),
            },
            "energy_wh_by_city": {city: wh for city, wh in by_city.items() if wh},
            "energy_wh_per_minute": {
                minute: wh
                for minute, wh in _sums(energy, "window_start_ms", "energy_wh").items()
                if wh
            },
            "activity": {**dict.fromkeys(ACTIVITY_KINDS, 0), **by_kind},
            "activity_per_minute": _sums(activity, "window_start_ms", "events"),
            "conversion": {
                "sessions": _sum(activity, "sessions"),
                "purchases": by_kind.get("purchase", 0),
                "revenue_cents": _sum(activity, "revenue_cents"),
            },
            "top_searches": searches["searches"],
            "recommendations": {
                row["item_id"]: row["together"]
                for _, row in sorted(self.rows[RECOMMENDATIONS].items())
            },
        }


def _state_order(row: dict[str, Any]) -> tuple[int, int]:
    return row["state_time_ms"], row["state_sequence"]


def _sum(rows: list[dict[str, Any]], field: str) -> int:
    return sum(row[field] for row in rows)


def _sums(rows: list[dict[str, Any]], by: str, field: str) -> dict[str, int]:
    totals: dict[str, int] = defaultdict(int)
    for row in rows:
        totals[str(row[by])] += row[field]
    return dict(sorted(totals.items()))
