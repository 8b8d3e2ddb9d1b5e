"""How long SQL queries on Spark take from a record to its result, and where the time goes.

    python -m bench.sql_spark [records per second] [keys] [seconds] [--queries n] [--exactly-once]
                              [--shared] [--setting key=value]… [--optimising]

Windowed counts over a topic of two partitions. A node, a process that produces and consumes, and
Spark share the machine. A record's result is there when a consumer of the results has a count that
includes it. The second half of the run is measured: the JVM compiles during the first.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from barnabas.app.testing import Kafka
from barnabas.spark.progress import recent_progress
from barnabas.spark.session import SessionOptions, start_session
from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import QueryCommand, apply
from barnabas.sql.analysis.metastore import MetaStore
from barnabas.sql.engine.queries import PersistentQuery
from barnabas.sql.engine.shared_runner import SharedHosted
from barnabas.sql.engine.spark_runner import SparkHosted, SparkQueryRunner
from barnabas.sql.functions.built_in import functions
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.sql.spark.query import SparkQuery
from barnabas.sql.syntax.parser import parse
from bench.barnabas_server import BarnabasServer
from bench.measure import cpu_seconds

SOURCE = "CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='{source}', value_format='JSON');"
QUERY = """
CREATE TABLE q{number} WITH (kafka_topic='{sink}') AS SELECT k, COUNT(*) n FROM s
  WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY k;
"""
_BUCKET_SECONDS = 5


def plans_of(statements: str) -> list[QueryPlan]:
    """The plans of the queries among the statements."""
    metastore, plans = MetaStore(), []
    for parsed in parse(statements):
        command = analyse(parsed.statement, metastore, {}, functions(), text=parsed.text)
        apply(command, metastore, parsed.text)
        if isinstance(command, QueryCommand):
            plans.append(command.plan)
    return plans


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sql_spark")
    parser.add_argument("rate", type=int, nargs="?", default=10_000)
    parser.add_argument("keys", type=int, nargs="?", default=1_000)
    parser.add_argument("seconds", type=int, nargs="?", default=60)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--setting", action="append", default=[], help="key=value, of Spark")
    parser.add_argument("--optimising", action="store_true", help="both compilers of the JVM")
    parser.add_argument("--exactly-once", action="store_true")
    parser.add_argument("--shared", action="store_true", help="one stream for all queries")
    parser.add_argument("--tasks", action="store_true", help="what Spark notes of its tasks")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = BarnabasServer(Path(directory, "node"))
        with server:
            server.format()
            server.start()
            _measure(f"127.0.0.1:{server.port}", server, directory, arguments)


def _measure(
    servers: str, server: BarnabasServer, directory: str, arguments: argparse.Namespace
) -> None:
    kafka = Kafka(servers)
    source = kafka.topic("source", 2)
    sinks = [kafka.topic(f"sink{number}", 2) for number in range(arguments.queries)]
    statements = [QUERY.format(number=number, sink=sink) for number, sink in enumerate(sinks)]
    plans = plans_of(SOURCE.format(source=source) + "".join(statements))
    events = Path(directory, "events")
    events.mkdir()
    settings = {
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
        **dict(setting.split("=", 1) for setting in arguments.setting),
    }
    if arguments.tasks:
        settings["spark.eventLog.enabled"] = "true"
        settings["spark.eventLog.dir"] = events.as_uri()
        settings["spark.eventLog.rolling.enabled"] = "false"
        settings["spark.eventLog.compress"] = "false"
    spark = start_session(
        SessionOptions(
            telemetry_path=f"{directory}/spark.log",
            small_batches=not arguments.optimising,
            settings=settings,
        )
    )
    guarantee = Guarantee.EXACTLY_ONCE if arguments.exactly_once else Guarantee.AT_LEAST_ONCE
    options = SparkQueryOptions(
        servers, directory, auto_offset_reset="earliest", guarantee=guarantee
    )
    load = [sys.executable, "-m", "bench.sql_load", servers, str(arguments.rate)]
    load += [str(arguments.keys), str(arguments.seconds), source, *sinks]
    gateway: Any = spark.sparkContext._gateway
    runner = SparkQueryRunner(replace(options, is_shared=True), lambda: spark)
    with subprocess.Popen(load, stdout=subprocess.PIPE, text=True) as loading:
        queries: list[SparkQuery] = []
        shared: list[SparkHosted | SharedHosted] = []
        if arguments.shared:
            given = {
                "ksql.streams.auto.offset.reset": "earliest",
                "ksql.streams.processing.guarantee": guarantee.value,
            }
            shared = [runner.start(PersistentQuery(plan, "", "bench", given)) for plan in plans]
            assert all(isinstance(one, SharedHosted) for one in shared)
        else:
            queries = [SparkQuery(plan, options, spark) for plan in plans]
            for query in queries:
                query.start()
        pids = {"node": server.pid, "load": loading.pid, "JVM": gateway.proc.pid}
        pids["this process"] = os.getpid()
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        assert loading.stdout is not None
        text = loading.stdout.readline()
        used = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
    _report(json.loads(text), arguments.seconds)
    cores = ", ".join(f"{name} {used[name] / arguments.seconds:.2f}" for name in pids)
    sys.stdout.write(f"cores used: {cores}\n")
    for one in shared:
        for failure in one.failures:
            sys.stdout.write(f"failed: {failure.message}\n")
        took = [batch.phases_ms for batch in one.batches() or ()]
        count = one.figures["batches"]
        sys.stdout.write(f"{count:.0f} micro-batches of all queries\n")
        _print_medians("micro-batch", took)
    runner.close()
    for query in queries:
        stream = query.life.stream
        assert stream is not None
        for failure in query.status().errors:
            sys.stdout.write(f"failed: {failure.message}\n")
        progress = [p for p in recent_progress(stream) if p["numInputRows"]]
        figures = query.figures
        query.stop()
        batches = progress[len(progress) // 2 :]
        sys.stdout.write(
            f"{figures.batches} micro-batches; Python "
            f"{figures.seconds / max(1, figures.read) * 1e6:.0f} us a record; "
            f"{figures.state_calls / max(1, figures.batches):.0f} calls to the state each\n"
        )
        _print_medians("micro-batch", [_parts_ms(each) for each in batches])
    spark.stop()
    if arguments.tasks:
        _report_tasks(events, len(progress) // 2)


def _report(found: Sequence[tuple[float, list[float]]], seconds: int) -> None:
    buckets: dict[int, list[float]] = defaultdict(list)
    for at, latencies in found:
        buckets[int(at / _BUCKET_SECONDS)] += latencies
    for bucket, latencies in sorted(buckets.items()):
        sys.stdout.write(
            f"{bucket * _BUCKET_SECONDS:4} s: p50 {_share(latencies, 0.5):.2f} s, "
            f"most {max(latencies):.2f} s\n"
        )
    measured = [each for at, latencies in found if at > seconds / 2 for each in latencies]
    for share in (0.5, 0.95, 0.99):
        sys.stdout.write(f"p{share * 100:.0f} {_share(measured, share):.2f} s\n")


def _share(numbers: Sequence[float], share: float) -> float:
    return sorted(numbers)[int(len(numbers) * share)] if numbers else float("nan")


def _parts_ms(progress: dict[str, Any]) -> dict[str, float]:
    parts: dict[str, float] = {"records": progress["numInputRows"], **progress["durationMs"]}
    for operator in progress["stateOperators"]:
        for name in ("allUpdatesTimeMs", "commitTimeMs"):
            parts[name] = parts.get(name, 0) + operator[name]
    return parts


def _report_tasks(events: Path, first_batch: int) -> None:
    """What Spark's own log of events says of the tasks, per stage of a micro-batch."""
    (path,) = (path for path in events.iterdir() if path.suffix != ".crc")
    jobs: dict[int, tuple[int, dict[str, float]]] = {}
    stages: dict[int, list[dict[str, float]]] = defaultdict(list)
    place: dict[int, int] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        kind = event["Event"]
        if kind == "SparkListenerJobStart":
            batch = event.get("Properties", {}).get("streaming.sql.batchId")
            if batch is None or int(batch) < first_batch:
                continue
            jobs[event["Job ID"]] = event["Submission Time"], {}
            place |= {stage: at for at, stage in enumerate(sorted(event["Stage IDs"]))}
        elif kind == "SparkListenerJobEnd" and event["Job ID"] in jobs:
            began, found = jobs[event["Job ID"]]
            found["job"] = event["Completion Time"] - began
        elif kind == "SparkListenerTaskEnd" and event["Stage ID"] in place:
            stages[place[event["Stage ID"]]].append(_task_ms(event))
    _print_medians("job", [found for _, found in jobs.values()])
    for number, tasks in sorted(stages.items()):
        _print_medians(f"task of stage {number}", tasks)


def _task_ms(event: dict[str, Any]) -> dict[str, float]:
    info, metrics = event["Task Info"], event["Task Metrics"]
    found = {
        "all": info["Finish Time"] - info["Launch Time"],
        "deserialise": metrics["Executor Deserialize Time"],
        "run": metrics["Executor Run Time"],
        "cpu": metrics["Executor CPU Time"] / 1e6,
        "gc": metrics["JVM GC Time"],
    }
    for accumulable in info["Accumulables"]:
        name, update = accumulable.get("Name", ""), accumulable.get("Update")
        if "Python workers" in name or name.startswith(("time to", "RocksDB")):
            found[name] = float(update)
    return found


def _print_medians(name: str, rows: Sequence[Mapping[str, float]]) -> None:
    names = dict.fromkeys(key for row in rows for key in row)
    parts = (f"{key} {statistics.median(row.get(key, 0) for row in rows):.0f}" for key in names)
    sys.stdout.write(f"{name} (median of {len(rows)}, ms): {', '.join(parts)}\n")


if __name__ == "__main__":
    main()
