"""A process that runs one query on Spark until it is killed: plan and options as arguments."""

import sys
from pathlib import Path

from barnabas.spark.session import SessionOptions, start_session
from barnabas.sql.plan.encoding import decode_plan
from barnabas.sql.spark.options import Guarantee, SparkQueryOptions
from barnabas.sql.spark.query import SparkQuery


def main() -> None:
    plan_path, servers, checkpoints, guarantee, master, reader = sys.argv[1:]
    plan = decode_plan(Path(plan_path).read_text(encoding="utf-8"))
    settings = {
        "spark.local.dir": checkpoints,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
    }
    spark = start_session(SessionOptions(master=master, small_batches=True, settings=settings))
    options = SparkQueryOptions(
        servers,
        checkpoints,
        auto_offset_reset="earliest",
        guarantee=Guarantee(guarantee),
        emits_every_change=True,
        records_per_batch_max=50,
        reads_in_workers=reader == "workers",
    )
    query = SparkQuery(plan, options, spark)
    query.start()
    while not query.await_end(1.0):
        sys.stdout.write(f"batches {query.status().figures.batches}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
