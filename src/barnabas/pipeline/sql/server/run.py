"""Runs a server: an engine over a cluster, behind HTTP/1.1 and HTTP/2 without TLS (h2c)."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from hypercorn.asyncio import serve
from hypercorn.config import Config

from barnabas.pipeline.sql.engine.command_log import CommandLogError
from barnabas.pipeline.sql.engine.engine import KsqlEngine
from barnabas.pipeline.sql.engine.local_runner import LocalRunner
from barnabas.pipeline.sql.engine.noting import NoteEntry
from barnabas.pipeline.sql.engine.queries import QueryRunner
from barnabas.pipeline.sql.server.app import KsqlApi
from barnabas.pipeline.sql.server.config import (
    MARK_RESULTS,
    Listener,
    ServerConfig,
    ServerConfigError,
)
from barnabas.pipeline.sql.server.kafka_cluster import KafkaCluster
from barnabas.pipeline.sql.server.kafka_command_log import KafkaCommandLog
from barnabas.pipeline.sql.server.metrics import ServerMetrics
from barnabas.pipeline.sql.server.processing_topic import (
    ProcessingLogSettings,
    ProcessingTopic,
)
from barnabas.pipeline.sql.server.spark_session import python_pipelines, spark_session
from barnabas.pipeline.udf import load_extensions

if TYPE_CHECKING:
    from barnabas.pipeline.hosting import PipelineHost

_log = logging.getLogger(__name__)
_LOG_POLL_S = 1.0
_STOP_S = 3.0
_IDLE_S = 300.0
_REQUESTS_MAX = 2**30
"""A client of HTTP/2 keeps one connection for all it ever asks."""

Ready = Callable[["Server"], None]


class CannotListenError(Exception):
    """An address is taken or is none of this machine's."""


class Server:
    """`listeners`: where it listens, with the ports that were chosen."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self._sockets = [_bound(listener) for listener in config.listeners]
        self.listeners = [
            Listener(listener.host, int(own.getsockname()[1]), listener.is_tls)
            for listener, own in zip(config.listeners, self._sockets, strict=True)
        ]
        self.cluster = KafkaCluster(config.kafka)
        self.processing_log = ProcessingTopic(ProcessingLogSettings(config.values), config.kafka)
        self.engine = self._engine()
        self._pipelines: PipelineHost | None = None
        first = self.listeners[0]
        host = "localhost" if first.host in ("0.0.0.0", "::") else first.host
        log = self.processing_log
        metrics = ServerMetrics(self.engine, lambda: (log.written, log.dropped))
        self.api = KsqlApi(self.engine, f"{host}:{first.port}", metrics=metrics)

    def _engine(self) -> KsqlEngine:
        config = self.config
        schemas = config.schemas()
        catalog = load_extensions(config.extension_directory)
        replicas = config.values.get("ksql.internal.topic.replicas")
        log = KafkaCommandLog(
            self.cluster,
            config.kafka,
            config.service_id,
            None if replicas is None else int(replicas),
        )
        note = self.processing_log.note
        runner: QueryRunner
        if config.runs_on_spark:
            runner = _spark_runner(config, note)
        else:
            runner = LocalRunner(self.cluster, catalog, schemas, note=note)
        return KsqlEngine(self.cluster, log, runner, catalog, schemas, config.settings, note=note)

    async def run(self, ready: Ready) -> None:
        """Serve until SIGTERM or SIGINT. Raises ServerConfigError."""
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        await asyncio.to_thread(self._start)
        try:
            self._pipelines = await asyncio.to_thread(python_pipelines, self.config)
        except ServerConfigError:
            await asyncio.to_thread(self._close)
            raise
        if self._pipelines is not None:
            self._pipelines.start()
        following = asyncio.create_task(self._follow_log())
        serving = asyncio.create_task(
            serve(self.api.app(), self._http(), shutdown_trigger=stopping.wait)  # type: ignore[arg-type]  # hypercorn has types of its own for ASGI
        )
        ready(self)
        try:
            await serving
        finally:
            following.cancel()
            await asyncio.to_thread(self._close)

    def _start(self) -> None:
        self.processing_log.make_topic(self.cluster)
        self.engine.start()
        self.processing_log.make_stream(self.engine)

    def _http(self) -> Config:
        config = Config()
        config.bind = [f"fd://{own.detach()}" for own in self._sockets]
        config.graceful_timeout = _STOP_S
        config.h11_max_incomplete_size = 64 * 1024
        config.keep_alive_timeout = _IDLE_S
        config.keep_alive_max_requests = _REQUESTS_MAX
        config.accesslog = None
        config.errorlog = logging.getLogger("hypercorn.error")
        return config

    async def _follow_log(self) -> None:
        """Take over what other servers of the service write."""
        while True:
            await asyncio.sleep(_LOG_POLL_S)
            try:
                await asyncio.to_thread(self.engine.read_log)
            except CommandLogError as error:
                _log.warning("%s", error)

    def _close(self) -> None:
        if self._pipelines is not None:
            self._pipelines.close()
        self.engine.close()
        self.processing_log.close()
        self.cluster.close()


def _spark_runner(config: ServerConfig, note: NoteEntry) -> QueryRunner:
    """Queries on Spark; the session starts with the first of them."""
    from barnabas.pipeline.sql.engine.spark_runner import SparkRunner
    from barnabas.pipeline.sql.spark.options import SparkQueryOptions

    options = SparkQueryOptions(
        config.bootstrap_servers,
        config.state_directory,
        registry_urls=config.registry_urls,
        registry_user_info=config.registry_user,
        service_id=config.service_id,
        extension_directory=config.extension_directory,
        tasks_max=config.spark_tasks,
        marks_results=config.is_set(MARK_RESULTS),
        trigger_ms=config.spark_trigger_ms,
    )
    return SparkRunner(options, lambda: spark_session(config), note=note)


def run_server(config: ServerConfig, ready: Ready) -> int:
    """Run a server until a signal ends it. Raises CannotListenError."""
    server = Server(config)
    asyncio.run(server.run(ready))
    return 0


def _bound(listener: Listener) -> socket.socket:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    own = socket.socket(family, socket.SOCK_STREAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        own.bind((listener.host, listener.port))
        own.listen(1024)
    except OSError as error:
        own.close()
        raise CannotListenError(f"cannot listen on {listener}: {error.strerror}") from error
    own.setblocking(False)
    return own
