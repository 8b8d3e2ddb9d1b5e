"""How long one SQL query on Spark takes from a record to its result, and where the time goes.

    python bench/sql_spark.py [records per second] [keys] [seconds] [--setting key=value]… [--c2]

A windowed count over a topic of two partitions; broker, producer, consumer and Spark share the
machine. The second half of the run is measured, as the JVM compiles during the first. A record's
result is there when a consumer of the results has a count that includes it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas import Cluster
from barnabas.app.testing import Kafka
from barnabas.pipeline.progress import recent_progress
from barnabas.pipeline.session import SessionOptions, start_session
from barnabas.pipeline.sql.analysis.analyse import analyse
from barnabas.pipeline.sql.analysis.commands import QueryCommand, apply
from barnabas.pipeline.sql.analysis.metastore import MetaStore
from barnabas.pipeline.sql.functions.built_in import functions
from barnabas.pipeline.sql.plan.steps import QueryPlan, TableSink
from barnabas.pipeline.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.pipeline.sql.spark.query import SparkQuery
from barnabas.pipeline.sql.syntax.parser import parse

STATEMENTS = """
CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='{source}', value_format='JSON');
CREATE TABLE q WITH (kafka_topic='{sink}') AS SELECT k, COUNT(*) n FROM s
  WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY k;
"""
_BUCKET_SECONDS = 5
_WINDOW_MS = 10_000


def plan_of(statements: str) -> QueryPlan:
    """The plan of the query among the statements."""
    metastore = MetaStore()
    for parsed in parse(statements):
        command = analyse(parsed.statement, metastore, {}, functions(), text=parsed.text)
        apply(command, metastore, parsed.text)
        if isinstance(command, QueryCommand):
            return command.plan
    raise AssertionError("no query")


class Load:
    """A producer at a constant rate; `sent`: by key and window, when each record was sent."""

    def __init__(self, kafka: Kafka, topic: str, rate: int, keys: int) -> None:
        self.sent: dict[tuple[str, int], list[float]] = defaultdict(list)
        self._stop = threading.Event()
        self._arguments = kafka, topic, rate, keys
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        kafka, topic, rate, keys = self._arguments
        producer, count, began = kafka.producer(linger_ms=5), 0, time.time()
        while not self._stop.wait(0.01):
            while count < (time.time() - began) * rate:
                now = time.time()
                at_ms = int(now * 1000)
                number = count * 7919 % keys
                key = f"k{number}"
                self.sent[key, at_ms - at_ms % _WINDOW_MS].append(now)
                value = f'{{"V": {count % 13}}}'
                producer.produce(topic, value, key, partition=number % 2, timestamp=at_ms)
                count += 1
            producer.poll(0)
        producer.flush()


class Results:
    """A consumer that notes how late each record is in a result: when, and its latency."""

    def __init__(self, kafka: Kafka, topic: str, load: Load) -> None:
        self.found: list[tuple[float, list[float]]] = []
        self._stop = threading.Event()
        self._arguments = kafka, topic, load
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        kafka, topic, load = self._arguments
        consumer = kafka.consumer(topic, isolation_level="read_committed", fetch_wait_max_ms=50)
        counted: dict[tuple[str, int], int] = {}
        began = time.time()
        while not self._stop.is_set():
            messages = consumer.consume(5_000, 0.02)
            now = time.time()
            latencies: list[float] = []
            for message in messages:
                key, value = message.key() or b"", message.value() or b"{}"
                place = key[:-8].decode(), int.from_bytes(key[-8:], "big")
                before, count = counted.get(place, 0), json.loads(value)["N"]
                latencies += [now - sent for sent in load.sent[place][before:count]]
                counted[place] = max(before, count)
            if latencies:
                self.found.append((now - began, latencies))
        consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rate", type=int, nargs="?", default=10_000)
    parser.add_argument("keys", type=int, nargs="?", default=1_000)
    parser.add_argument("seconds", type=int, nargs="?", default=60)
    parser.add_argument("--setting", action="append", default=[], help="key=value, of Spark")
    parser.add_argument("--c2", action="store_true", help="let the JVM optimise and Spark compile")
    parser.add_argument("--exactly-once", action="store_true")
    arguments = parser.parse_args()
    with Cluster() as cluster, tempfile.TemporaryDirectory() as directory:
        kafka = Kafka(cluster.bootstrap_servers)
        source, sink = kafka.topic("source", 2), kafka.topic("sink", 2)
        plan = plan_of(STATEMENTS.format(source=source, sink=sink))
        assert isinstance(plan.step, TableSink)
        events = Path(directory, "events")
        events.mkdir()
        settings = {
            "spark.sql.streaming.numRecentProgressUpdates": "10000",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            **dict(setting.split("=", 1) for setting in arguments.setting),
        }
        spark = start_session(
            SessionOptions(
                telemetry_path=f"{directory}/spark.log",
                small_batches=not arguments.c2,
                settings=settings,
            )
        )
        guarantee = Guarantee.EXACTLY_ONCE if arguments.exactly_once else Guarantee.AT_LEAST_ONCE
        query = SparkQuery(
            plan,
            SparkQueryOptions(
                cluster.bootstrap_servers,
                directory,
                auto_offset_reset="earliest",
                guarantee=guarantee,
            ),
            spark,
        )
        load = Load(kafka, source, arguments.rate, arguments.keys)
        results = Results(kafka, sink, load)
        query.start()
        time.sleep(arguments.seconds)
        load.stop()
        results.stop()
        stream = query._stream
        assert stream is not None
        progress = [p for p in recent_progress(stream) if p["numInputRows"]]
        figures = query.figures
        query.stop()
        _report(results.found, arguments.seconds)
        batches = progress[len(progress) // 2 :]
        sys.stdout.write(
            f"{figures.batches} micro-batches; Python "
            f"{figures.seconds / max(1, figures.read) * 1e6:.0f} us a record; "
            f"{figures.state_calls / max(1, figures.batches):.0f} calls to the state each\n"
        )
        _print_medians("micro-batch", [_parts_ms(each) for each in batches])
        spark.stop()
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
    return sorted(numbers)[int(len(numbers) * share)]


def _parts_ms(progress: dict[str, Any]) -> dict[str, float]:
    parts: dict[str, float] = {"records": progress["numInputRows"], **progress["durationMs"]}
    for operator in progress["stateOperators"]:
        for name in ("allUpdatesTimeMs", "commitTimeMs"):
            parts[name] = parts.get(name, 0) + operator[name]
        for name, value in operator["customMetrics"].items():
            if value:
                parts[name] = parts.get(name, 0) + value
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
        "shuffle write": metrics["Shuffle Write Metrics"]["Shuffle Write Time"] / 1e6,
    }
    for accumulable in info["Accumulables"]:
        name, update = accumulable.get("Name", ""), accumulable.get("Update")
        if "ython" in name or "time" in name:
            value = float(update)
            found[name] = value / 1e6 if "shuffle" in name else value
    return found


def _print_medians(name: str, rows: Sequence[dict[str, float]]) -> None:
    names = dict.fromkeys(key for row in rows for key in row)
    parts = (f"{key} {statistics.median(row.get(key, 0) for row in rows):.0f}" for key in names)
    sys.stdout.write(f"{name} (median of {len(rows)}, ms): {', '.join(parts)}\n")


if __name__ == "__main__":
    main()
