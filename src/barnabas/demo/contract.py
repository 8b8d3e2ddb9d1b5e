"""Contract between the parts of the demo: topics, processes, files and figures.

Processes (each its own process group, ended with SIGTERM, clean within seconds):

`barnabas registry start --bootstrap-servers B --listeners URL`
    The schema registry, until SIGTERM.

`python -m barnabas.demo.generators --bootstrap B --registry URL --state-dir D --seed N --rate R
[--seconds S] [--acceleration A] [--database-port P]`
    Creates the topics and registers their schemas (idempotent), publishes the station table, then
    the events. With P the table is in PostgreSQL, and the generators insert and update its rows.
    R is the mean number of events per second of wall time, A the seconds of event time per second
    of wall time. In the middle of S, or after a minute, one schema evolves. With S it
    publishes the events of S seconds and exits 0 (restarted later, it does nothing and exits 0);
    without, it goes on until SIGTERM, upon which it publishes what it holds back (late events),
    writes the truth and exits 0. State in D is bound to (seed, rate, acceleration); other values
    there are refused with exit code 2. One line of JSON per second on stdout: `GeneratorProgress`.
    Files in D, each replaced atomically: `checkpoint.json` (where to go on), `truth.json`
    (`Truth`, exact for everything acknowledged so far whenever `pending` is 0, and at the end).

`python -m barnabas.demo.database.server --directory D --port P --password-file F`
    PostgreSQL, where it is installed, until SIGTERM.

`barnabas connect start FILE CONNECTOR…` (`barnabas.demo.connectors`)
    The worker of connectors, until SIGTERM: it captures the changes of the stations' table into
    their topic.

`python -m barnabas.demo.lake.server --directory D`
    The S3 server, fetched the first time, until SIGTERM. It ends with an error if its packages or
    Iceberg's are not available.

`barnabas connect start FILE CONNECTOR` (`barnabas.demo.lake.worker`)
    A second worker, until SIGTERM: it writes `user-activity` to the warehouse. It is caught up once
    its group `connect-warehouse` has read the topic to its end.

`barnabas sql server …` (`barnabas.demo.statements`)
    The SQL server, until SIGTERM. It runs the statements of `demo/sql`, which the demo sends to it,
    and the Python pipeline of `demo/spark`, in one Spark session. Restarted, all goes on where it
    was. It is caught up once every statement and the pipeline's two groups have read their topics
    to the end; every figure is then readable from the output topics.

Topics and what they carry are described in `barnabas.demo.topics`. The dashboard folds the output
topics into figures with `barnabas.demo.dashboard.state.FigureBoard` and compares
`board.figures()` with `truth["figures"]`: at the end of a run they are equal.
"""

from __future__ import annotations

from typing import TypedDict

from barnabas.demo.topics import (
    INPUT_TOPICS,
    OUTPUT_TOPICS,
    STATIONS,
    ItemCount,
    SearchCount,
)

CHECKPOINT_FILE = "checkpoint.json"
TRUTH_FILE = "truth.json"

DEFAULT_SEED = 7
DEFAULT_RATE = 250
DEFAULT_ACCELERATION = 240
"""A day passes in six minutes."""
START_TIME_MS = 1_740_981_600_000
"""Monday 2025-03-03 06:00 UTC, where event time starts in every run."""

TOPIC_PARTITIONS = {
    # As many as the events that are joined to it.
    STATIONS: 2,
    **dict.fromkeys(INPUT_TOPICS, 2),
    **dict.fromkeys(OUTPUT_TOPICS, 1),
}


class CityAvailability(TypedDict):
    """Sums over a city's stations and windows."""

    reports: int
    available_reports: int


class ChargingFigures(TypedDict):
    """Sums over all cities and minutes."""

    energy_wh: int
    readings: int
    charges_started: int
    charges_stopped: int
    faults: int


class ConversionFigures(TypedDict):
    """Sums over all minutes; the rate is purchases / sessions."""

    sessions: int
    purchases: int
    revenue_cents: int


class Figures(TypedDict):
    """Every figure that the dashboard shows. All integers and sorted lists: compare with `==`."""

    stations_by_state: dict[str, int]
    """Every state of STATION_STATES, also with 0."""
    availability_by_city: dict[str, CityAvailability]
    charging: ChargingFigures
    energy_wh_by_city: dict[str, int]
    energy_wh_per_minute: dict[str, int]
    """By the minute's start in epoch milliseconds (as a string); minutes without a reading are
    absent."""
    activity: dict[str, int]
    """By kind, every kind of ACTIVITY_KINDS."""
    activity_per_minute: dict[str, int]
    """All kinds, by the minute's start."""
    conversion: ConversionFigures
    top_searches: list[SearchCount]
    recommendations: dict[str, list[ItemCount]]


class Plan(TypedDict):
    """The parameters that determine a run of the generator."""

    seed: int
    rate: int
    acceleration: int
    seconds: int | None


class Truth(TypedDict):
    """truth.json."""

    plan: Plan
    done: bool
    """The events of all the `seconds` are acknowledged."""
    event_time_ms: int
    """Event time reached."""
    pending: int
    """Events counted in `figures` that are still held back (they will arrive late)."""
    events: dict[str, int]
    """Distinct events by input topic."""
    duplicates: int
    """Records sent a second time on purpose (not those repeated by a restart)."""
    late: int
    """Events that were held back on purpose."""
    figures: Figures


class GeneratorProgress(TypedDict):
    """One line of the generator's stdout."""

    published: int
    """Distinct events acknowledged since the run began (restarts included)."""
    planned: int | None
    """The number at the end (an estimate from 100,000 on); None without --seconds."""
    fraction: float | None
    """0.0 to 1.0 of the event time planned."""
    event_time_ms: int
    done: bool
    evolved_ms: int | None
    """The event time from which on `station-status` has its second schema; None before."""
    refused: str
    """Why the registry refused the change that breaks readers; empty before it was tried."""
