"""The benchmark's command: rounds of both servers, results as JSON, chart and table."""

import argparse
import contextlib
import datetime
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.barnabas_server import BarnabasServer
from bench.chart import draw_chart
from bench.cluster import Cluster
from bench.connectors.run import CONNECTOR_NAMES, connector_round
from bench.figures import Rounds, compare
from bench.kafka_jars import kafka_classpath
from bench.kafka_server import KafkaServer
from bench.machine import describe_machine
from bench.machine_limit import machine_limits
from bench.measure import memory_megabytes
from bench.metrics_cost import METRICS, metrics_round
from bench.queries.run import QUERY_NAMES, RIVALS, available, query_round
from bench.registry.run import REGISTRY_NAMES, registry_round
from bench.registry.servers import has_karapace
from bench.report import render_table
from bench.server import Server
from bench.settings import RESULTS, ROUNDS, Settings
from bench.wire import produce_first
from bench.workloads import CLUSTERS, TLS_WORKLOADS, WORKLOADS
from bench.workloads.cluster_failures import first_record
from bench.workloads.cluster_session import ClusterSession
from bench.workloads.session import Session

SERVERS: dict[str, type[Server]] = {"kafka": KafkaServer, "barnabas": BarnabasServer}
ALWAYS = ("startup", "memory-idle")
"""Measured whenever a server starts, and free to name in --only."""
CLUSTER_NAMES = tuple(name for _, workloads in CLUSTERS for name in workloads)
NAMES = (
    *ALWAYS,
    *WORKLOADS,
    *TLS_WORKLOADS,
    *CLUSTER_NAMES,
    *REGISTRY_NAMES,
    *QUERY_NAMES,
    *CONNECTOR_NAMES,
    METRICS,
    "limit",
)
BESIDE = frozenset((*REGISTRY_NAMES, *QUERY_NAMES, *CONNECTOR_NAMES, METRICS, "limit"))
"""The parts that are not measured on the two brokers."""
ClusterWorkload = Callable[[ClusterSession], dict[str, float]]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark. Returns 0 if every workload ran on every server; figures do not matter."""
    options = _parse(arguments)
    settings = _settings(options)
    try:
        only = _select(options.only.split(",")) if options.only else set(NAMES)
    except KeyError as unknown:
        print(f"no such workload: {unknown.args[0]}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _interrupt)
    if only - {*REGISTRY_NAMES, METRICS}:
        kafka_classpath()  # fetches the jars before anything is timed
    karapace = options.karapace
    if only.intersection(REGISTRY_NAMES) and (karapace is None or not has_karapace(karapace)):
        missing = "not given (--karapace PYTHON)" if karapace is None else f"not at {karapace}"
        print(f"Karapace is {missing}: our registry is measured alone")
        karapace = None
    rivals = available(options.beside) if only.intersection(QUERY_NAMES) else []
    started = datetime.datetime.now(datetime.UTC)
    rounds: Rounds = []
    failures: list[str] = []
    try:
        for number in range(settings.rounds if only - {"limit"} else 0):
            figures = _round(number, settings, options.servers, only, failures)
            if only.intersection(REGISTRY_NAMES):
                _registries(number, settings, karapace, only, figures, failures)
            if only.intersection(QUERY_NAMES):
                _queries(number, settings, rivals, only, figures, failures)
            if only.intersection(CONNECTOR_NAMES):
                _connectors(number, settings, only, figures, failures)
            if METRICS in only:
                print(f"Round {number + 1} of {settings.rounds}: metrics off and on", flush=True)
                metrics_round(settings, lambda what: _noting(what, failures), _notes(figures))
            rounds.append(figures)
        limits: dict[str, float] = {}
        if "limit" in only:
            print("The machine's limits", flush=True)
            _note(limits, machine_limits(settings))
    except KeyboardInterrupt:
        print("\nStopped; all that was started has ended.", file=sys.stderr)
        return 130
    result = {
        "date": started.isoformat(timespec="seconds"),
        "minutes": round((datetime.datetime.now(datetime.UTC) - started).total_seconds() / 60, 1),
        "quick": options.quick,
        "machine": describe_machine(),
        "settings": {key: value for key, value in asdict(settings).items() if key != "directory"},
        "rounds": rounds,
        "limits": limits,
        "failures": failures,
    }
    _write(result, options.output, is_whole=not (options.only or options.quick or failures))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


def _select(wanted: list[str]) -> set[str]:
    """The names that are asked for, where `cluster` stands for all that begin so.

    Raises KeyError with a word that names nothing.
    """
    selected = set()
    for word in wanted:
        found = {name for name in NAMES if name == word}
        found = found or {name for name in NAMES if name.startswith(f"{word}-")}
        if not found:
            raise KeyError(word)
        selected |= found
    return selected


def _interrupt(*_: object) -> None:
    """SIGTERM ends the run as Ctrl-C does: servers and clients first."""
    raise KeyboardInterrupt


def _round(
    number: int, settings: Settings, servers: list[str], only: set[str], failures: list[str]
) -> dict[str, dict[str, float]]:
    """Each server once; who is first changes with the round."""
    order = servers if number % 2 == 0 else servers[::-1]
    figures: dict[str, dict[str, float]] = {}
    for name in order:
        figures[name] = {}
        if not only - BESIDE:
            continue
        print(f"Round {number + 1} of {settings.rounds}: {name}", flush=True)
        if chosen_tls := [key for key in TLS_WORKLOADS if key in only]:
            with _noting(name, failures), SERVERS[name](settings.directory / name, tls=True) as it:
                it.format()
                it.start()
                produce_first(it.port, "bench-first")
                _run_all(Session(it, settings), chosen_tls, TLS_WORKLOADS, figures[name], failures)
        if only - {*CLUSTER_NAMES, *TLS_WORKLOADS, *BESIDE}:
            with _noting(name, failures), SERVERS[name](settings.directory / name) as server:
                _measure(server, settings, only, figures[name], failures)
        for properties, workloads in CLUSTERS:
            if chosen := [run for key, run in workloads.items() if key in only]:
                cluster = Cluster(SERVERS[name], settings.directory / name, properties)
                with _noting(f"three nodes of {name}", failures), cluster:
                    _measure_cluster(cluster, settings, chosen, figures[name], failures)
    return figures


def _registries(
    number: int,
    settings: Settings,
    karapace: Path | None,
    only: set[str],
    figures: dict[str, dict[str, float]],
    failures: list[str],
) -> None:
    registry_round(
        number, settings, karapace, only, lambda what: _noting(what, failures), _notes(figures)
    )


def _queries(
    number: int,
    settings: Settings,
    rivals: list[str],
    only: set[str],
    figures: dict[str, dict[str, float]],
    failures: list[str],
) -> None:
    query_round(
        number, settings, only, rivals, lambda what: _noting(what, failures), _notes(figures)
    )


def _connectors(
    number: int,
    settings: Settings,
    only: set[str],
    figures: dict[str, dict[str, float]],
    failures: list[str],
) -> None:
    connector_round(number, settings, only, lambda what: _noting(what, failures), _notes(figures))


def _measure(
    server: Server,
    settings: Settings,
    only: set[str],
    figures: dict[str, float],
    failures: list[str],
) -> None:
    server.format()
    began = time.monotonic()
    server.start()
    produce_first(server.port, "bench-first")
    _note(figures, {"startup_s": time.monotonic() - began})
    session = Session(server, settings)
    session.rest(settings.idle_seconds)
    _note(figures, {"memory_idle_mb": memory_megabytes(server.pid)})
    workloads = [name for name in WORKLOADS if name in only]
    if workloads:
        _run_all(session, workloads, WORKLOADS, figures, failures)


def _run_all(
    session: Session,
    names: list[str],
    workloads: Mapping[str, Callable[[Session], dict[str, float]]],
    figures: dict[str, float],
    failures: list[str],
) -> None:
    session.produce("bench-warm-up", session.settings.warm_up_records, 1000)
    for name in names:
        with _noting(f"{session.server.name}, {name}", failures):
            _note(figures, workloads[name](session))
        session.server.check_alive()


def _measure_cluster(
    cluster: Cluster,
    settings: Settings,
    workloads: list[ClusterWorkload],
    figures: dict[str, float],
    failures: list[str],
) -> None:
    cluster.format()
    began = time.monotonic()
    cluster.start()
    first_record(cluster)
    seconds = time.monotonic() - began
    cluster.wait_all_brokers()
    session = ClusterSession(cluster, settings)
    if "cluster_startup_s" not in figures:
        session.rest()
        idle = cluster.memory_megabytes()
        _note(figures, {"cluster_startup_s": seconds, "cluster_memory_idle_mb": idle})
    for workload in workloads:
        name = workload.__name__.replace("_", "-")
        with _noting(f"{cluster.name}, {name}", failures):
            _note(figures, workload(session))
            cluster.check_alive()


@contextlib.contextmanager
def _noting(what: str, failures: list[str]) -> Iterator[None]:
    """Report the failure of one part, so that the others still run."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        failures.append(f"{what}: {error}")
        print(f"  {what} failed: {error}", flush=True)


def _notes(figures: dict[str, dict[str, float]]) -> Callable[[str, dict[str, float]], None]:
    return lambda name, found: _note(figures.setdefault(name, {}), found)


def _note(figures: dict[str, float], found: dict[str, float]) -> None:
    for name, value in found.items():
        print(f"  {name:32} {value:12.3f}", flush=True)
    figures.update({name: round(value, 4) for name, value in found.items()})


def _write(result: dict[str, Any], output: Path | None, *, is_whole: bool) -> None:
    """A whole run becomes the latest result; a partial one is kept aside."""
    stem = result["date"][:10] if is_whole else f"raw/{result['date'].replace(':', '')[:17]}"
    path = output or RESULTS / f"{stem}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    comparisons = compare(result["rounds"])
    if comparisons:
        path.with_suffix(".svg").write_text(draw_chart(comparisons, result))
    if result["rounds"]:
        print()
        print(render_table(result))
    print(f"\nWritten to {path}")


def _settings(options: argparse.Namespace) -> Settings:
    common = {
        "rounds": options.rounds or (1 if options.quick else ROUNDS),
        "directory": options.directory.resolve(),
        "partitions": options.partitions,
    }
    return Settings.quick(**common) if options.quick else Settings(**common)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Barnabas and Apache Kafka beside each other.",
        epilog="example: python -m bench --only produce-1000,cluster --rounds 1",
    )
    parser.add_argument(
        "--only", metavar="NAMES",
        help=f"comma-separated, the beginning of several will do: {', '.join(NAMES)}",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, help="interleaved rounds (3; with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="a smoke run with small volumes")
    parser.add_argument(
        "--servers", type=lambda text: text.split(","), default=list(SERVERS),
        metavar="NAMES", help="kafka,barnabas",
    )  # fmt: skip
    parser.add_argument("--partitions", type=int, default=1, help="of the topics (1)")
    parser.add_argument(
        "--directory", type=Path, default=Settings().directory,
        help="for the servers' data; decides the disk",
    )  # fmt: skip
    parser.add_argument(
        "--karapace", type=Path, metavar="PYTHON",
        help="interpreter of an environment that has Karapace, the schema registry's rival",
    )  # fmt: skip
    parser.add_argument(
        "--beside", type=lambda text: text.split(","), default=[], metavar="NAMES",
        help=f"run the queries on these too: {','.join(RIVALS)}",
    )  # fmt: skip
    parser.add_argument("--output", type=Path, help="the JSON file to write")
    options = parser.parse_args(arguments)
    if unknown := set(options.servers) - set(SERVERS):
        parser.error(f"no such server: {', '.join(sorted(unknown))}")
    if unknown := set(options.beside) - set(RIVALS):
        parser.error(f"no such engine: {', '.join(sorted(unknown))}")
    return options
