"""Rows per second of `format("barnabas-share")` with one partition and 1, 4 and 8 readers.

    python -m bench.share_source [--records 200000] [--locks 10000]

A node of ours in a process, Spark in `local[2]` without the optimising compiler, records of 100
bytes in a topic of one partition, a query that only counts. The time is from the first batch with
records to the last. `--locks` is the group's share.partition.max.record.locks, which bounds what a
batch can hold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from pyspark.sql import DataFrame, SparkSession

from barnabas.app.testing import Kafka
from barnabas.spark.datasource.share import register_share_source
from barnabas.spark.session import SessionOptions, start_session

NODE = """
import sys, barnabas
with barnabas.Cluster(config={"group.share.max.partition.max.record.locks": "10000"}) as cluster:
    print(cluster.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


def main() -> None:
    """Measure each number of readers once, in one session."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--locks", type=int, default=10_000)
    arguments = parser.parse_args()
    with (
        subprocess.Popen(
            [sys.executable, "-c", NODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as node,
        tempfile.TemporaryDirectory() as directory,
    ):
        assert node.stdout is not None
        assert node.stdin is not None
        with Kafka(node.stdout.readline().strip(), "bench") as kafka:
            topic = kafka.topic()
            kafka.produce(topic, (b"x" * 100 for _ in range(arguments.records)))
            session = start_session(
                SessionOptions(
                    packages=(),
                    shuffle_partitions=1,
                    small_batches=True,
                    telemetry_path=os.path.join(directory, "spark.log"),
                )
            )
            register_share_source(session)
            _measure(session, kafka, topic, 2, min(arguments.records, 20_000), arguments.locks)
            for readers in (1, 4, 8):
                rate, batches = _measure(
                    session, kafka, topic, readers, arguments.records, arguments.locks
                )
                print(f"{readers} readers: {rate:,.0f} rows/s in {batches} batches", flush=True)
            session.stop()
        node.stdin.close()


def _measure(
    session: SparkSession, kafka: Kafka, topic: str, readers: int, records: int, locks: int
) -> tuple[float, int]:
    group = kafka.name("share")
    values = {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": str(locks)}
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    kafka.admin.incremental_alter_configs([resource])[resource].result(10)
    counted: list[int] = []
    times: list[float] = []

    def work(batch: DataFrame, batch_id: int) -> None:
        started = time.perf_counter()
        rows = batch.count()
        if rows:
            times.extend((started, time.perf_counter()))
            counted.append(rows)

    source = session.readStream.format("barnabas-share").options(
        **{
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "kafka.group.id": group,
            "subscribe": topic,
            "readers": str(readers),
        }
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            source.load()
            .writeStream.foreachBatch(work)
            .option("checkpointLocation", checkpoint)
            .start()
        )
        while sum(counted) < records and query.isActive:
            time.sleep(0.05)
        query.stop()
    return sum(counted) / (times[-1] - times[0]), len(counted)


if __name__ == "__main__":
    main()
