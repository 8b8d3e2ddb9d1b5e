"""A Spark driver whose query writes the offsets that it reads, a file per batch, until killed."""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import DataFrame

from barnabas.spark.datasource.share import register_share_source
from barnabas.spark.session import SessionOptions, start_session

servers, group, topic, directory = sys.argv[1:]
session = start_session(
    SessionOptions(
        app_name="share-driver",
        packages=(),
        shuffle_partitions=1,
        small_batches=True,
        telemetry_path=os.path.join(directory, "spark.log"),
        settings={"spark.local.dir": directory},
    )
)
register_share_source(session)


def write(batch: DataFrame, batch_id: int) -> None:
    """Write a batch; the same file if it runs again."""
    path = os.path.join(directory, "sink", f"{batch_id}.batch")
    with open(f"{path}.partial", "w") as file:
        json.dump([row["offset"] for row in batch.select("offset").collect()], file)
    os.replace(f"{path}.partial", path)


records = session.readStream.format("barnabas-share").options(
    **{
        "kafka.bootstrap.servers": servers,
        "kafka.group.id": group,
        "subscribe": topic,
        "readers": "8",
        "maxRecordsPerBatch": "100",
    }
)
query = (
    records.load()
    .writeStream.foreachBatch(write)
    .option("checkpointLocation", os.path.join(directory, "checkpoint"))
    .start()
)
query.awaitTermination()
