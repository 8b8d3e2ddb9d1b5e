"""How long one SQL query on Spark takes from a record to its result, and where the time goes.

    python bench/sql_spark.py [records per second] [keys] [seconds]

A windowed count over a topic of two partitions; broker, producer and Spark share the machine. The
second half of the run is measured, as the JVM compiles during the first. A record's result is there
when its micro-batch is written.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time

from barnabas import Cluster
from barnabas.app.testing import Kafka
from barnabas.pipeline.progress import planned_offsets
from barnabas.pipeline.session import SessionOptions, start_session
from barnabas.pipeline.sql.analysis.analyse import analyse
from barnabas.pipeline.sql.analysis.commands import QueryCommand, apply
from barnabas.pipeline.sql.analysis.metastore import MetaStore
from barnabas.pipeline.sql.functions.built_in import functions
from barnabas.pipeline.sql.plan.steps import QueryPlan, TableSink
from barnabas.pipeline.sql.spark.options import SparkQueryOptions
from barnabas.pipeline.sql.spark.query import SparkQuery
from barnabas.pipeline.sql.syntax.parser import parse

STATEMENTS = """
CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='{source}', value_format='JSON');
CREATE TABLE q WITH (kafka_topic='{sink}') AS SELECT k, COUNT(*) n FROM s
  WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY k;
"""


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
    """A producer at a constant rate that remembers when it sent what."""

    def __init__(self, kafka: Kafka, topic: str, rate: int, keys: int) -> None:
        self.sent: tuple[list[float], list[float]] = ([], [])
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
                self.sent[count % 2].append(time.time())
                value, key = json.dumps({"V": count % 13}), f"k{count * 7919 % keys}"
                producer.produce(topic, value, key, partition=count % 2)
                count += 1
            producer.poll(0)
        producer.flush()


def main() -> None:
    rate, keys, seconds = (*map(int, sys.argv[1:]), *(10_000, 1_000, 60)[len(sys.argv) - 1 :])
    with Cluster() as cluster, tempfile.TemporaryDirectory() as directory:
        kafka = Kafka(cluster.bootstrap_servers)
        source, sink = kafka.topic("source", 2), kafka.topic("sink", 2)
        plan = plan_of(STATEMENTS.format(source=source, sink=sink))
        assert isinstance(plan.step, TableSink)
        spark = start_session(SessionOptions(telemetry_path=f"{directory}/spark.log"))
        query = SparkQuery(
            plan,
            SparkQueryOptions(cluster.bootstrap_servers, directory, auto_offset_reset="earliest"),
            spark,
        )
        load = Load(kafka, source, rate, keys)
        query.start()
        reached, latencies, batches = [0, 0], [], 0
        began = time.time()
        while time.time() - began < seconds:
            done = query.status().figures.batches
            if done == batches:
                time.sleep(0.01)
                continue
            now, batches = time.time(), done
            ends = planned_offsets(query.checkpoint_directory, batches - 1)[source]
            for partition, end in ends.items():
                times = load.sent[partition][reached[partition] : end]
                if now - began > seconds / 2:
                    latencies += [now - sent for sent in times]
                reached[partition] = end
        load.stop()
        status = query.status()
        latencies.sort()
        for share in (0.5, 0.95, 0.99):
            sys.stdout.write(f"p{share:.0%} {latencies[int(len(latencies) * share)]:.2f} s\n")
        figures = status.figures
        per_record_us = figures.seconds / max(1, figures.read) * 1e6
        sys.stdout.write(
            f"{batches} micro-batches; Python {per_record_us:.0f} us a record; "
            f"{figures.state_calls / max(1, batches):.0f} calls to the state a micro-batch\n"
            f"last micro-batch by phase in ms: {dict(status.batch_ms)}\n"
        )
        query.stop()
        spark.stop()


if __name__ == "__main__":
    main()
