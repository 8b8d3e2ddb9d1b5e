"""The benchmark's jobs in PySpark alone, with Spark's Kafka source, Kafka sink and JSON functions.

    python -m bench.queries.spark_job BOOTSTRAP CHECKPOINTS CORES JARS

A line of standard input has the kind of a job and the topic of its results, and starts it; the line
"end" stops it, and "ended" is printed. The process ends if a query fails.

Session windows are missing, because Spark writes their counts when they end and not each change.
The table of the join is read once, where our queries follow its changes.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from barnabas.spark.local_files import CHECKPOINT_MANAGER, use_plain_files
from bench.queries.jobs import END, ENDED, SOURCE, TABLE, WINDOW_SECONDS

TRIGGER_MS: Final = 100
"""As of our queries."""
SPARK_KINDS: Final = ("filter", "count", "join")


def settings(cores: int, jars: str) -> dict[str, str]:
    """Of Spark; those of the JVM are its own."""
    state = "spark.sql.streaming.stateStore"
    return {
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        f"{state}.providerClass": "org.apache.spark.sql.execution.streaming.state."
        "RocksDBStateStoreProvider",
        f"{state}.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_MANAGER,
    }


def results(spark: SparkSession, kind: str, bootstrap: str) -> DataFrame:
    """The results of a job as records: key and value."""
    options = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest"}
    stream = spark.readStream.format("kafka").options(**options, subscribe=SOURCE).load()
    records = stream.select(
        "key", "timestamp", f.from_json(f.col("value").cast("string"), "V INT").alias("v")
    )
    if kind == "filter":
        return records.where("v.V % 2 = 0").select("key", f.to_json("v").alias("value"))
    if kind == "count":
        # As long as the grace period of the other engines.
        counts = (
            records.withWatermark("timestamp", "24 hours")
            .groupBy(f.window("timestamp", f"{WINDOW_SECONDS} seconds"), "key")
            .agg(f.count("*").alias("N"))
        )
        # The window's start in eight bytes, as of Kafka's serialisers.
        start = f.unhex(f.lpad(f.hex(f.unix_millis("window.start")), 16, "0"))
        return counts.select(
            f.concat("key", start).alias("key"), f.to_json(f.struct("N")).alias("value")
        )
    if kind == "join":
        rows = spark.read.format("kafka").options(**options, subscribe=TABLE).load()
        names = rows.select(
            "key", f.from_json(f.col("value").cast("string"), "NAME STRING").alias("n")
        ).cache()
        return records.join(f.broadcast(names), "key").select(
            "key", f.to_json(f.struct("v.V", "n.NAME")).alias("value")
        )
    raise ValueError(f"there is no job {kind}")


def start(
    spark: SparkSession, kind: str, bootstrap: str, sink: str, checkpoints: str
) -> StreamingQuery:
    """Start a job that writes its results to the topic `sink`."""
    return (
        results(spark, kind, bootstrap)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", sink)
        .option("checkpointLocation", os.path.join(checkpoints, sink))
        .outputMode("update" if kind == "count" else "append")
        .trigger(processingTime=f"{TRIGGER_MS} milliseconds")
        .start()
    )


def _end_if_it_fails(query: StreamingQuery) -> None:
    try:
        query.awaitTermination()
    except StreamingQueryException:
        traceback.print_exc()
        os._exit(1)


def main() -> None:
    bootstrap, checkpoints, cores, jars = sys.argv[1:]
    builder = SparkSession.builder
    for name, value in settings(int(cores), jars).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    # Without this, Spark starts a process for each file that it makes or renames.
    use_plain_files(spark)
    query: StreamingQuery | None = None
    for line in sys.stdin:
        if line.strip() == END:
            if query is not None:
                query.stop()
            query = None
            spark.catalog.clearCache()
            print(ENDED, flush=True)
        else:
            kind, sink = line.split()
            query = start(spark, kind, bootstrap, sink, checkpoints)
            threading.Thread(target=_end_if_it_fails, args=(query,), daemon=True).start()


if __name__ == "__main__":
    main()
