"""Topics of the two stories (charging stations, retail) and what travels on them.

Input topics, the station table and the results of the SQL statements carry Avro in a schema
registry's framing (`demo.schemas`, `demo/sql`), the results of the Python pipeline JSON. Every time
is epoch milliseconds of *event time* in a field that ends in `_ms`, every quantity is an integer
(watt-hours, cents, counts), so that figures can be compared exactly. Fields may be added; readers
ignore those they do not know.

What goes out is an upsert: the last value of a key counts. The pipeline repeats a key whenever its
figure changes, and may repeat a value after a restart, so a reader that keeps the latest value per
key sees each event counted once. Records of SQL have the names of SQL's columns, in upper case; the
first column and the window are in the key (`demo.results` reads both).
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

STATIONS = "stations"
STATION_STATUS = "station-status"
CHARGING_EVENTS = "charging-events"
USER_ACTIVITY = "user-activity"

STATION_AVAILABILITY = "station-availability"
ENERGY_PER_MINUTE = "energy-per-minute"
ACTIVITY_PER_MINUTE = "activity-per-minute"
TOP_SEARCHES = "top-searches"
RECOMMENDATIONS = "recommendations"

INPUT_TOPICS = (STATION_STATUS, CHARGING_EVENTS, USER_ACTIVITY)
SQL_TOPICS = (STATION_AVAILABILITY, ENERGY_PER_MINUTE, ACTIVITY_PER_MINUTE)
"""Results of the SQL statements."""
OUTPUT_TOPICS = (*SQL_TOPICS, TOP_SEARCHES, RECOMMENDATIONS)

RECOMMENDATIONS_GROUP = "recommendations"
WAREHOUSE_GROUP = "warehouse"

CONSUMER_GROUPS: dict[str, tuple[str, ...]] = {
    RECOMMENDATIONS_GROUP: (USER_ACTIVITY,),
    WAREHOUSE_GROUP: SQL_TOPICS,
}
"""The two queries of the Python pipeline, each with the topics that it reads.

Spark keeps its offsets in its checkpoint; the server commits them to these groups too after each
micro-batch, so that any tool shows their lag.
"""

WAREHOUSE_CONNECTOR = "warehouse"
ICEBERG_GROUP = f"connect-{WAREHOUSE_CONNECTOR}"
"""The group of the connector that writes the warehouse where that is Iceberg: no query does."""


def consumer_groups(*, is_iceberg: bool) -> dict[str, tuple[str, ...]]:
    """Return the groups of a demo's pipelines, each with the topics that it reads."""
    if not is_iceberg:
        return dict(CONSUMER_GROUPS)
    return {RECOMMENDATIONS_GROUP: (USER_ACTIVITY,), ICEBERG_GROUP: (USER_ACTIVITY,)}


MINUTE_MS = 60_000
AVAILABILITY_WINDOW_MS = 15 * MINUTE_MS
WATERMARK_DELAY_MS = 30 * MINUTE_MS
"""The delay behind the newest event within which an event is still counted."""

STATION_STATES = ("available", "charging", "faulted", "offline")
CHARGING_KINDS = ("start", "meter", "stop", "fault")
ACTIVITY_KINDS = ("click", "search", "purchase")

TOP_SEARCHES_KEY = "all"
TOP_SEARCHES_COUNT_MAX = 10
RECOMMENDATIONS_COUNT_MAX = 3


class Station(TypedDict):
    """`stations` (compacted), key `station_id`: the table that events are joined to.

    Rows of a table in PostgreSQL, by change capture; without PostgreSQL the generators write them.
    """

    station_id: str
    name: str
    city: str
    power_w: int
    since_ms: int
    """When it was built: a row is older than any event of its station."""
    firmware: str
    """Now and then a station gets a newer one, and its row changes."""


class StationStatus(TypedDict):
    """`station-status`, key `station_id`: sent at each change of state and every few minutes."""

    event_id: str
    station_id: str
    sequence: int
    """Ascends per station; decides between two events of one millisecond."""
    event_time_ms: int
    state: str
    """One of STATION_STATES."""
    temperature_c: NotRequired[int | None]
    """Inside its cabinet; from the second version of the schema on."""


class ChargingEvent(TypedDict):
    """`charging-events`, key `station_id`."""

    event_id: str
    station_id: str
    charge_id: str
    event_time_ms: int
    kind: str
    """One of CHARGING_KINDS."""
    energy_wh: int
    """Energy since the charge's previous event; 0 for a start."""
    fault_code: str | None


class UserActivity(TypedDict):
    """`user-activity`, key `user_id`."""

    event_id: str
    user_id: str
    session_id: str
    sequence: int
    """Position in the session: 0 opens it."""
    event_time_ms: int
    kind: str
    """One of ACTIVITY_KINDS; a session has one purchase at most."""
    item_id: str | None
    """The item of a click."""
    query: str | None
    """The words of a search."""
    items: list[str]
    """The distinct items of a purchase, ascending; empty otherwise."""
    amount_cents: int
    """The amount of a purchase; 0 otherwise."""


class StationAvailability(TypedDict):
    """`station-availability`, key `station_id` and window: windows of 15 minutes.

    `state` is the latest in the window. A station's state now is that of its greatest
    (`state_time_ms`, `state_sequence`). Availability is `available_reports` / `reports`.
    """

    station_id: str
    name: str
    city: str
    window_start_ms: int
    window_end_ms: int
    state: str
    state_time_ms: int
    state_sequence: int
    reports: int
    available_reports: int


class EnergyPerMinute(TypedDict):
    """`energy-per-minute`, key `city` and window: windows of one minute."""

    city: str
    window_start_ms: int
    window_end_ms: int
    energy_wh: int
    readings: int
    """Events of kind meter."""
    charges_started: int
    charges_stopped: int
    faults: int


class ActivityPerMinute(TypedDict):
    """`activity-per-minute`, key `kind` and window: windows of one minute.

    Sessions are those that an event of this kind opened. Conversion over any span is the purchases
    / sum(sessions).
    """

    kind: str
    window_start_ms: int
    window_end_ms: int
    events: int
    sessions: int
    revenue_cents: int


class SearchCount(TypedDict):
    """One line of the top searches."""

    query: str
    count: int


class TopSearches(TypedDict):
    """`top-searches`, key `all`: the whole list, by count descending, then query ascending."""

    searches: list[SearchCount]


class ItemCount(TypedDict):
    """One recommended item, and in how many purchases it came together with the other."""

    item_id: str
    count: int


class Recommendations(TypedDict):
    """`recommendations`, key `item_id`: the 3 items most often bought together with it.

    By count descending, then item id ascending.
    """

    item_id: str
    together: list[ItemCount]
