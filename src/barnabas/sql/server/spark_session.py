"""The server's Spark session, which statements and pipelines in Python share.

Spark is imported when it is needed: a server with the runner `local` does without.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from barnabas.sql.server.config import ServerConfig, ServerConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.spark.hosting import PipelineHost

_log = logging.getLogger(__name__)


class Told:
    """The last line about the start of a session."""

    line = ""

    def take(self, line: str) -> None:
        """Keep it."""
        self.line = line


def spark_session(config: ServerConfig, told: Told | None = None) -> SparkSession:
    """The session of this process: the first call starts it, and `told` gets its progress."""
    from barnabas.spark.session import SessionOptions, start_session

    options = SessionOptions(
        app_name=f"barnabas sql {config.service_id}",
        master=config.spark_master,
        # Rows of Spark's are parcels of many records: there is little for it to optimise.
        small_batches=True,
    )

    def say(line: str) -> None:
        _log.info("%s", line)
        if told is not None:
            told.take(line)

    return start_session(options, say)


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
