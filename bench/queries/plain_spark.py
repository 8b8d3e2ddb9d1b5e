"""The engine that runs the jobs in a plain session of PySpark (`spark_job.py`)."""

from __future__ import annotations

import os
import sys
from functools import cache

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

from barnabas.spark.session import (
    SessionOptions,
    SparkStartError,
    jvm_without_session,
    kafka_package,
)
from bench.queries.engines import LineEngine
from bench.queries.jobs import Job
from bench.queries.spark_job import SPARK_KINDS


@cache
def kafka_jars() -> str:
    """The jars of Spark's Kafka connector, as `spark.jars` has them.

    They are in the directory that our sessions use. Raises RuntimeError where they are not there
    and cannot be fetched.
    """
    names = SessionOptions(packages=(kafka_package(),)).all_packages
    bare = SessionOptions(
        "bench-packages", packages=(), driver_memory="256m", telemetry_path=os.devnull
    )
    try:
        with jvm_without_session(bare) as jvm:
            paths = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(
                True, None, ",".join(names), None, bare.ivy_directory, jvm.scala.Option.empty()
            )
            return ",".join(str(paths.apply(number)) for number in range(paths.length()))
    except (Py4JError, SparkStartError) as error:
        raise RuntimeError(f"Spark's Kafka connector cannot be fetched: {error}") from error


class PlainSpark(LineEngine):
    """A session of PySpark; its sink cannot write exactly once."""

    name = "spark"
    kinds = SPARK_KINDS
    has_exactly_once = False

    @classmethod
    def fetch(cls) -> None:
        kafka_jars()

    def command(self) -> list[str]:
        given = [self._access.bootstrap, str(self.directory), str(self.cores or 2), kafka_jars()]
        return [sys.executable, "-m", "bench.queries.spark_job", *given]

    def lines(self, job: Job) -> list[str]:
        return [f"{job.kind} {job.sink}"]
