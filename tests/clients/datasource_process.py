"""A process that copies one topic into another on Spark, until it is killed."""

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException

from barnabas.spark.session import SessionOptions, start_session
from support.faulty_sink import FaultySink


def main() -> None:
    servers, source, sink, directory = sys.argv[1:]
    spark = start_session(
        SessionOptions(
            master="local[2,4]",
            small_batches=True,
            telemetry_path=f"{directory}/spark.log",
            settings={"spark.local.dir": directory},
        )
    )
    spark.dataSource.register(FaultySink)
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 100)
        .load()
        .select("key", "value")
    )
    while True:
        query = (
            records.writeStream.format("faulty")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", sink)
            .option("checkpointLocation", f"{directory}/checkpoint")
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as error:  # as an operator, or a supervisor, does
            with Path(directory, "failures").open("a", encoding="utf-8") as file:
                file.write(f"{error}\n{'=' * 80}\n")


if __name__ == "__main__":
    main()
