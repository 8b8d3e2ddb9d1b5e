"""What exactly once costs on Spark: our sink beside Spark's own Kafka sink, on the same topic.

    python bench/spark_sink.py [rows] [micro-batches]

First a job of so many rows of 100 bytes, with keys, in two tasks: rows per second, and the time of
the processors (JVM, Python workers and broker) per row, the best of three. Then micro-batches of
1,000 rows as fast as they come: how long one takes. Broker and Spark share the machine.
"""

from __future__ import annotations

import sys
import tempfile
import time

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas import Cluster
from barnabas.app.testing import Kafka
from barnabas.spark.datasource import register
from barnabas.spark.session import SessionOptions, start_session

SINKS = ("kafka", "barnabas")
ROUNDS = 3
TASKS = 2
MICRO_BATCH_ROWS = 1_000


def cpu_seconds() -> float:
    """The processor time of this process and all that it has started."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system
    return total


def rows_of(numbers: DataFrame, name: str) -> DataFrame:
    """Records with the keys of a thousand, and values of 100 bytes."""
    number = f.col(name)
    return numbers.select(
        f.concat(f.lit("key-"), (number % 1000).cast("string")).alias("key"),
        f.lpad(number.cast("string"), 100, "x").alias("value"),
    )


def job(spark: SparkSession, kafka: Kafka, sink: str, rows: int) -> tuple[float, float]:
    """Seconds, and seconds of processors, to write rows."""
    records = rows_of(spark.range(0, rows, 1, TASKS), "id")
    topic = kafka.topic(sink, TASKS)
    cpu, began = cpu_seconds(), time.perf_counter()
    writer = records.write.format(sink).option("topic", topic)
    writer.option("kafka.bootstrap.servers", kafka.bootstrap_servers).mode("append").save()
    return time.perf_counter() - began, cpu_seconds() - cpu


def micro_batches(spark: SparkSession, kafka: Kafka, sink: str, count: int) -> tuple[float, float]:
    """The median time of a micro-batch and of its write, in milliseconds, once it is warm."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", MICRO_BATCH_ROWS)
    numbers = source.option("numPartitions", TASKS).load()
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            rows_of(numbers, "value")
            .writeStream.format(sink)
            .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
            .option("topic", kafka.topic(sink, TASKS))
            .option("checkpointLocation", checkpoint)
            .start()
        )
        while query.isActive and (query.lastProgress or {"batchId": 0})["batchId"] < count:
            time.sleep(0.1)
        took = [progress["durationMs"] for progress in query.recentProgress][-count // 2 :]
        query.stop()
    middle = len(took) // 2
    whole = sorted(one["triggerExecution"] for one in took)[middle]
    return whole, sorted(one["addBatch"] for one in took)[middle]


def main() -> None:
    rows, count = (*map(int, sys.argv[1:]), *(500_000, 40)[len(sys.argv) - 1 :])
    with Cluster() as cluster:
        kafka = Kafka(cluster.bootstrap_servers)
        with tempfile.TemporaryDirectory() as directory:
            spark = start_session(SessionOptions(telemetry_path=f"{directory}/spark.log"))
            register(spark)
            for sink in SINKS:
                job(spark, kafka, sink, rows // 10)  # the JVM compiles, Python imports
            for sink in SINKS:
                seconds, cpu = min(job(spark, kafka, sink, rows) for _ in range(ROUNDS))
                per_row_us = cpu / rows * 1e6
                sys.stdout.write(
                    f"{sink:8} {rows / seconds:,.0f} rows/s, {per_row_us:.1f} us of CPU a row\n"
                )
            for sink in SINKS:
                whole, write = micro_batches(spark, kafka, sink, count)
                sys.stdout.write(
                    f"{sink:8} {whole:.0f} ms a micro-batch of {MICRO_BATCH_ROWS} rows, "
                    f"{write:.0f} ms of it writing\n"
                )
            spark.stop()


if __name__ == "__main__":
    main()
