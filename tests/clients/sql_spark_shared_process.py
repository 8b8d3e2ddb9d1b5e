"""A process that runs queries in one stream of Spark's until it is killed.

It answers each line of its input with what it has read so far, and what has failed.
Arguments: the brokers, the state's directory, the guarantee, and the files of the queries' plans.
"""

import json
import sys
from pathlib import Path

from barnabas.spark.session import SessionOptions, start_session
from barnabas.sql.engine.queries import PersistentQuery
from barnabas.sql.engine.shared_runner import SharedHosted
from barnabas.sql.engine.spark_runner import SparkQueryRunner
from barnabas.sql.plan.encoding import decode_plan
from barnabas.sql.spark.options import SparkQueryOptions


def main() -> None:
    servers, directory, guarantee, *paths = sys.argv[1:]
    spark = start_session(SessionOptions(small_batches=True))
    options = SparkQueryOptions(servers, directory, is_shared=True, emits_every_change=True)
    runner = SparkQueryRunner(options, lambda: spark)
    settings = {
        "ksql.streams.auto.offset.reset": "earliest",
        "ksql.streams.processing.guarantee": guarantee,
    }
    hosts = []
    for path in paths:
        plan = decode_plan(Path(path).read_text(encoding="utf-8"))
        made = runner.start(PersistentQuery(plan, "", "group", settings))
        assert isinstance(made, SharedHosted), "it shares the stream"
        hosts.append(made)
    for _ in sys.stdin:
        for hosted in hosts:
            hosted.restart()  # if it has failed, as the engine does
        told = {
            "read": sum(int(one.figures["rows_in"]) for one in hosts),
            "failures": [failure.message for one in hosts for failure in one.failures],
        }
        sys.stdout.write(f"{json.dumps(told)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
