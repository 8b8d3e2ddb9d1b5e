"""One round of the engines, over one broker of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final

from bench.queries.engines import Engine, KafkaStreams, LoneQueries, SqlServer
from bench.queries.flink import FlinkSql
from bench.queries.jobs import KINDS
from bench.queries.plain_spark import PlainSpark
from bench.queries.workloads import (
    QuerySession,
    highest_rate,
    latency,
    pull,
    query_session,
    rate,
)
from bench.settings import Settings

RIVALS: Final[dict[str, type[Engine]]] = {
    "alone": LoneQueries,
    "spark": PlainSpark,
    "flink": FlinkSql,
}
"""Measured if they are asked for."""
ENGINES: Final[dict[str, type[Engine]]] = {
    "streams": KafkaStreams,
    "barnabas": SqlServer,
    **RIVALS,
}
QUERY_NAMES: Final = (
    *(f"query-{kind}" for kind in KINDS),
    "query-exactly-once",
    "query-one-core",
    "query-latency",
    "query-highest-rate",
    "query-pull",
)
Noting = Callable[[str], AbstractContextManager[None]]
Note = Callable[[str, dict[str, float]], None]


def available(rivals: Sequence[str]) -> list[str]:
    """Those of `RIVALS` that can run here; a line says why another cannot."""
    found = []
    for name in rivals:
        try:
            RIVALS[name].fetch()
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0]
            print(f"Queries are not measured on {name}: {reason}", flush=True)
        else:
            found.append(name)
    return found


def query_round(
    number: int,
    settings: Settings,
    only: set[str],
    rivals: Sequence[str],
    noting: Noting,
    note: Note,
) -> None:
    """Kafka Streams, our server and the rivals once each; who is first changes with the round.

    `noting` reports a failure and goes on, `note` takes figures by the engine's name.
    """
    names = [name for name in ENGINES if name not in RIVALS or name in rivals]
    if number % 2:
        names.reverse()
    for name in names:
        print(f"Round {number + 1} of {settings.rounds}: queries on {name}", flush=True)
        with noting(f"queries on {name}"), query_session(settings) as session:
            _measure(name, session, only, noting, partial(note, name))


def _measure(
    name: str,
    session: QuerySession,
    only: set[str],
    noting: Noting,
    note: Callable[[dict[str, float]], None],
) -> None:
    directory = session.settings.directory / f"queries-{name}"
    with engine_of(name, directory, session) as engine:
        for kind in KINDS:
            if f"query-{kind}" in only and kind in engine.kinds:
                with noting(f"{kind} on {name}"):
                    found = rate(session, engine, kind)
                    note({f"query_{kind}_s": found.events_s})
                    note({f"query_{kind}_first_s": found.first_s})
                    note({f"query_{kind}_cpu_us": found.cpu_us})
                    note({f"query_{kind}_memory_mb": found.memory_mb})
        if "query-exactly-once" in only and engine.has_exactly_once:
            with noting(f"exactly once on {name}"):
                found = rate(session, engine, "count", is_exactly_once=True)
                note({"query_exactly_once_s": found.events_s})
        if "query-latency" in only:
            with noting(f"latency on {name}"):
                note(latency(session, engine))
        if "query-highest-rate" in only:
            with noting(f"the highest rate of {name}"):
                note(highest_rate(session, engine))
        if "query-pull" in only and isinstance(engine, SqlServer):
            with noting(f"pull queries on {name}"):
                note(pull(session, engine))
    if "query-one-core" in only:
        with noting(f"one core for {name}"), engine_of(name, directory, session, 1) as engine:
            note({"query_one_core_s": rate(session, engine, "count").events_s})


def engine_of(
    name: str, directory: Path, session: QuerySession, cores: int | None = None
) -> Engine:
    """An engine that can reach a session's cluster and registry."""
    return ENGINES[name](directory, session.access, cores)
