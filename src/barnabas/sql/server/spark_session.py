"""The server's Spark session, which statements and pipelines in Python share.

Spark is imported when it is needed: a server with the runner `local` does without.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from barnabas.sql.server.config import (
    STARTS_COLD,
    WORKERS_READ,
    ServerConfig,
    ServerConfigError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark.hosting import PipelineHost

_log = logging.getLogger(__name__)


class ServerSession:
    """The session of a server: a call starts it, or waits for the start that has begun.

    `line` is the last one about its start.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.line = ""
        self._config = config
        self._begun: Future[SparkSession] | None = None
        self._is_under_way = threading.Event()

    def begin(self) -> None:
        """Start it in the background, if a server of these settings does. Raises
        ServerConfigError.

        Spark's JVM takes as long to start as this process takes to read the server's modules. So
        this returns when the JVM starts: threads of Python that import take turns. It does not
        wait for a download.
        """
        if self._config.runs_on_spark and not self._config.is_set(STARTS_COLD):
            self._begun = Future()
            threading.Thread(
                target=self._run, args=(self._begun,), name="start-spark", daemon=True
            ).start()
            self._is_under_way.wait()

    def _run(self, begun: Future[SparkSession]) -> None:
        try:
            begun.set_result(self._start())
        except BaseException as error:  # noqa: BLE001  whoever calls gets it
            begun.set_exception(error)
        finally:
            self._is_under_way.set()

    def __call__(self) -> SparkSession:
        """Return it. What a start that has begun fails of is raised once; then another is tried."""
        begun, self._begun = self._begun, None
        return self._start() if begun is None else begun.result()

    def _start(self) -> SparkSession:
        return spark_session(self._config, self._take, self._is_under_way.set)

    def _take(self, line: str) -> None:
        self.line = line
        self._is_under_way.set()


def spark_session(
    config: ServerConfig,
    told: Callable[[str], None] = lambda line: None,
    before_launch: Callable[[], None] = lambda: None,
) -> SparkSession:
    """The session of this process: the first call starts it, and `told` gets its progress.

    `before_launch`: see `start_session`.
    """
    from barnabas.spark.forking import fork_driver_processes
    from barnabas.spark.session import SessionOptions, start_session

    options = SessionOptions(
        app_name=f"barnabas sql {config.service_id}",
        master=config.spark_master,
        purpose="sql",
        # Rows of Spark's are parcels of many records, but for those that its Kafka source reads.
        small_batches=True,
        optimises_hot_code=bool(config.pipelines) or not config.is_set(WORKERS_READ),
    )

    def say(line: str) -> None:
        _log.info("%s", line)
        told(line)

    session = start_session(options, say, before_launch)
    fork_driver_processes(session)
    return session


def python_pipelines(config: ServerConfig) -> PipelineHost | None:
    """Return the host of Python pipelines in the same session. Raises ServerConfigError."""
    if not config.pipelines:
        return None
    from barnabas.spark.hosting import (
        PipelineContext,
        PipelineError,
        PipelineHost,
        load_pipeline,
        queries_of,
    )
    from barnabas.spark.session import SparkStartError

    try:
        pipelines = {name: load_pipeline(name) for name in config.pipelines}
        session = spark_session(config)
        queries = [
            query
            for name, pipeline in pipelines.items()
            for query in queries_of(
                name,
                pipeline,
                PipelineContext(
                    session.newSession(),
                    config.bootstrap_servers,
                    ",".join(config.registry_urls),
                    os.path.join(config.state_directory, "pipelines"),
                    config.is_exactly_once,
                    config.values,
                    config.kafka,
                    config.java_kafka,
                ),
            )
        ]
        return PipelineHost(config.bootstrap_servers, queries, config.kafka)
    except (PipelineError, SparkStartError) as error:
        raise ServerConfigError(str(error)) from error
