"""What the demo's micro-batches are made of, and how late their results come.

`python -m bench.micro_batches` takes two minutes: a node, the registry, the generators at the
demo's own rate, the dashboard, and Spark with the demo's queries in this process. After a minute a
schema evolves, and the query that reads it starts again. It prints for each query the
milliseconds of each part of a micro-batch as Spark reports them (`durationMs`), of the sink's two
parts (`records` and `tables`, both within `addBatch`), and how late its results are: from the
publishing of an event to its results being readable in their topics, over all events.

`--setting key=value` overrides a setting of Spark, to compare.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from barnabas.demo import registry
from barnabas.demo.contract import DEFAULT_RATE, TOPIC_PARTITIONS
from barnabas.demo.spark.queries import STORY_QUERIES
from barnabas.demo.spark.stories import Stories, StoryOptions, session_options, wait_for_topics
from barnabas.demo.spark.warehouse import WarehouseTable
from barnabas.demo.topics import INPUT_TOPICS
from barnabas.demo.workspace import FIRST_REGISTRY_PORT, choose_port
from barnabas.demo.workspace import Settings as DemoSettings
from barnabas.pipeline.exactly_once import TransactionalWriter
from barnabas.pipeline.progress import recent_progress
from barnabas.pipeline.record_writer import OutgoingRecord, RecordWriter
from barnabas.pipeline.session import start_session
from barnabas.pipeline.sink import Rows
from bench.barnabas_server import BarnabasServer
from bench.measure import TICKS_PER_SECOND, cpu_seconds
from bench.settings import Settings

PARTS = (
    *("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitBatch"),
    *("commitOffsets", "triggerExecution"),
)
QUERY_OF_TOPIC = {output.topic: query.name for query in STORY_QUERIES for output in query.outputs}
Batch = tuple[str, int]
"""A query's name and the number of a micro-batch."""


class PublishTimes(threading.Thread):
    """Notes when each record of the input topics was published: their own timestamps."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._servers = bootstrap
        self.stopping = threading.Event()
        self.at_ms: dict[tuple[str, int], dict[int, int]] = {
            (topic, p): {} for topic in INPUT_TOPICS for p in range(TOPIC_PARTITIONS[topic])
        }

    def run(self) -> None:
        """Read until `stopping` is set."""
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "publish-times"})
        consumer.assign([TopicPartition(topic, p, 0) for topic, p in self.at_ms])
        while not self.stopping.is_set():
            for message in consumer.consume(1000, 1.0):
                offset = message.offset()
                if message.error() is None and offset is not None:
                    place = (message.topic() or "", message.partition() or 0)
                    self.at_ms[place][offset] = message.timestamp()[1]
        consumer.close()


@dataclass
class Stopwatch:
    """How long the sink's parts take, and when a micro-batch's results became readable."""

    records_ms: dict[Batch, float] = field(default_factory=dict)
    tables_ms: dict[Batch, float] = field(default_factory=lambda: defaultdict(float))
    readable_at_ms: dict[Batch, float] = field(default_factory=dict)

    def install(self) -> None:
        """Time the sink's methods from now on."""
        write_table = WarehouseTable.write
        for writer in (RecordWriter, TransactionalWriter):
            self._time_writer(writer)

        def timed_table(table: WarehouseTable, rows: Rows, batch_id: int) -> None:
            begun = time.monotonic()
            write_table(table, rows, batch_id)
            topic = os.path.basename(table._path).replace("_", "-")
            self.tables_ms[QUERY_OF_TOPIC[topic], batch_id] += (time.monotonic() - begun) * 1e3

        WarehouseTable.write = timed_table  # type: ignore[method-assign,assignment]

    def _time_writer(self, writer: Any) -> None:
        write = writer.write

        def timed(self_: Any, batch_id: int, records: Sequence[OutgoingRecord]) -> None:
            begun = time.monotonic()
            write(self_, batch_id, records)
            if records:
                batch = (QUERY_OF_TOPIC[records[0][0]], batch_id)
                self.records_ms[batch] = (time.monotonic() - begun) * 1e3
                self.readable_at_ms[batch] = time.time() * 1e3

        writer.write = timed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.micro_batches")
    parser.add_argument("--seconds", type=int, default=90, help="how long events are published")
    parser.add_argument("--warm-up", type=int, default=20, help="seconds that do not count")
    parser.add_argument("--rate", type=int, default=DEFAULT_RATE)
    parser.add_argument("--exactly-once", action="store_true")
    parser.add_argument("--setting", action="append", default=[], help="key=value, of Spark")
    arguments = parser.parse_args()
    directory = Settings().directory / "micro-batches"
    server = BarnabasServer(directory)
    with server:
        server.format()
        server.start()
        bootstrap = f"127.0.0.1:{server.port}"
        with _registry(bootstrap) as registry_url:
            _measure(bootstrap, registry_url, str(directory), arguments)


def _measure(
    bootstrap: str, registry_url: str, directory: str, arguments: argparse.Namespace
) -> None:
    stop = threading.Event()
    watch = Stopwatch()
    watch.install()
    options = StoryOptions(
        bootstrap,
        registry_url,
        os.path.join(directory, "warehouse"),
        os.path.join(directory, "checkpoints"),
        exactly_once=arguments.exactly_once,
    )
    session = session_options(options, "local[2]", os.path.join(directory, "scratch"))
    overrides = dict(setting.split("=", 1) for setting in arguments.setting)
    many = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
    spark = start_session(
        replace(session, settings={**session.settings, **many, **overrides}), print
    )
    progress_path = os.path.join(directory, "progress.json")
    python, demo = sys.executable, "barnabas.demo"
    generators = [python, "-m", f"{demo}.generators", "--bootstrap", bootstrap]
    generators += ["--state-dir", os.path.join(directory, "generators")]
    generators += ["--registry", registry_url]
    generators += ["--rate", str(arguments.rate)]
    dashboard = [python, "-m", f"{demo}.dashboard.server", "--bootstrap", bootstrap]
    dashboard += ["--registry", registry_url]
    dashboard += ["--port", "0", "--pipeline-progress", progress_path]
    with ExitStack() as stack:
        stack.callback(spark.stop)
        stack.enter_context(_process(generators))
        stack.enter_context(_process(dashboard))
        wait_for_topics(bootstrap, stop)
        times = PublishTimes(bootstrap)
        times.start()
        stories = Stories(spark, options, progress_path)
        stack.callback(stories.stop)
        stories.start()
        counted_from_ms = time.time() * 1e3 + arguments.warm_up * 1e3
        threading.Timer(arguments.seconds, stop.set).start()
        gateway: Any = spark.sparkContext._gateway
        jvm = gateway.proc.pid
        cpu_before, busy_before, begun = cpu_seconds(jvm), _busy_seconds(), time.monotonic()
        stories.run(stop)
        seconds = time.monotonic() - begun
        cores = (cpu_seconds(jvm) - cpu_before) / seconds
        all_cores = (_busy_seconds() - busy_before) / seconds
        progresses = {
            (stream.name, progress["batchId"]): progress
            for stream in spark.streams.active
            for progress in recent_progress(stream)
            if progress["numInputRows"]
        }
        times.stopping.set()
        times.join()
        for query in STORY_QUERIES:
            _report(query.name, progresses, watch, times, counted_from_ms)
        each = cores * seconds / len(progresses) * 1e3
        print(f"Spark's JVM used {cores:.2f} cores, {each:.0f} ms for each micro-batch; all of the "
              f"machine {all_cores:.2f}", flush=True)  # fmt: skip


@contextmanager
def _registry(bootstrap: str) -> Iterator[str]:
    """Run the demo's registry as a process; gives its URL."""
    port = choose_port(FIRST_REGISTRY_PORT, set())
    settings = DemoSettings(0, 0, 0, "", [], [], 0, registry_port=port)
    spec = registry.registry_spec(settings, bootstrap, is_own_cluster=True)
    with _process(spec.command):
        while not registry.answers(settings.registry_url):
            time.sleep(0.1)
        yield settings.registry_url


def _busy_seconds() -> float:
    """Processor time that all of the machine has used."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, *_ = (int(ticks) for ticks in file.readline().split()[1:])
    return (user + nice + system) / TICKS_PER_SECOND


@contextmanager
def _process(command: list[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def _report(
    name: str,
    progresses: dict[Batch, dict[str, Any]],
    watch: Stopwatch,
    times: PublishTimes,
    counted_from_ms: float,
) -> None:
    """Print a query's parts (medians) and lags."""
    batches = sorted(
        batch
        for batch in progresses
        if batch[0] == name and watch.readable_at_ms.get(batch, 0) >= counted_from_ms
    )
    if not batches:
        print(f"{name}: no micro-batch")
        return
    found = [progresses[batch] for batch in batches]
    parts = {part: [p["durationMs"].get(part, 0) for p in found] for part in PARTS}
    parts["records"] = [watch.records_ms[batch] for batch in batches]
    parts["tables"] = [watch.tables_ms[batch] for batch in batches]
    parts["state commit"] = [sum(o["commitTimeMs"] for o in p["stateOperators"]) for p in found]
    rows = _middle(p["numInputRows"] for p in found)
    print(f"{name}: {len(batches)} micro-batches, {rows:.0f} rows each (median)")
    print("   ms " + "  ".join(f"{part} {_middle(ms):.0f}" for part, ms in parts.items()))
    lags = sorted(
        lag
        for batch in batches
        for lag in _lags_ms(progresses[batch], watch.readable_at_ms[batch], times)
    )
    if lags:
        half, most, worst = (lags[int(len(lags) * share)] / 1e3 for share in (0.5, 0.95, 0.9999))
        print(f"   results later than their events by {half:.1f} s (median), "
              f"{most:.1f} s (95 %), {worst:.1f} s (most)", flush=True)  # fmt: skip


def _lags_ms(
    progress: dict[str, Any], readable_at_ms: float, times: PublishTimes
) -> Iterator[float]:
    """How much later than its publishing each event of a micro-batch was in the results."""
    for source in progress["sources"]:
        starts = _offsets(source["startOffset"])
        for place, end in _offsets(source["endOffset"]).items():
            published = times.at_ms[place]
            for offset in range(starts.get(place, 0), end):
                if offset in published:
                    yield readable_at_ms - published[offset]


def _offsets(found: dict[str, dict[str, int]] | None) -> dict[tuple[str, int], int]:
    return {
        (topic, int(partition)): offset
        for topic, offsets in (found or {}).items()
        for partition, offset in offsets.items()
    }


def _middle(numbers: Iterable[float]) -> float:
    return statistics.median(numbers)


if __name__ == "__main__":
    main()
