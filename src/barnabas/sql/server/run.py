"""Runs a server: an engine over a cluster, behind HTTP/1.1 and HTTP/2 (h2c without TLS)."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.base.descriptors import raise_limit
from barnabas.sql.engine.command_log import CommandLogError, topic_name
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.local_runner import LocalQueryRunner
from barnabas.sql.engine.ownership import slot_of_name
from barnabas.sql.engine.queries import QueryRunner
from barnabas.sql.processing_log import NoteEntry
from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.config import (
    MARK_RESULTS,
    SHARED,
    STARTS_COLD,
    WORKERS_READ,
    ServerConfig,
    ServerConfigError,
)
from barnabas.sql.server.kafka_cluster import QUIET, KafkaCluster
from barnabas.sql.server.kafka_command_log import KafkaCommandLog
from barnabas.sql.server.membership import Membership
from barnabas.sql.server.metrics import ServerMetrics
from barnabas.sql.server.peers import Peers
from barnabas.sql.server.processing_topic import ProcessingLogSettings, ProcessingTopic
from barnabas.sql.server.spark_session import ServerSession, python_pipelines
from barnabas.sql.udf import load_extensions
from barnabas.web.crowd import Crowd
from barnabas.web.listening import bind_all
from barnabas.web.server import WebServer

if TYPE_CHECKING:
    from barnabas.spark.hosting import PipelineHost
    from barnabas.sql.engine.spark_runner import SparkQueryRunner

_log = logging.getLogger(__name__)
_LOG_POLL_S = 1.0

Ready = Callable[["Server"], None]


class Server:
    """`listeners`: where it listens, with the ports that were chosen."""

    def __init__(self, config: ServerConfig, session: ServerSession | None = None) -> None:
        """`session`: whose start may have begun."""
        self.config = config
        self._session = session or ServerSession(config)
        tls = config.listener_tls
        client = config.peer_client()
        crowd = Crowd(config.connections_max)
        bound = bind_all(config.listeners)
        self.listeners = [one.listener for one in bound]
        self._clients = {**QUIET, **config.kafka}
        self.cluster = KafkaCluster(self._clients)
        self.processing_log = ProcessingTopic(ProcessingLogSettings(config.values), self._clients)
        self.engine = self._engine()
        # No query runs before its slot is known to be this server's.
        self.engine.own(())
        url = config.advertised(self.listeners)
        self.membership = Membership(
            self.cluster,
            self._clients,
            config.service_id,
            url,
            self._own,
            replicas=config.internal_replicas,
            session_timeout_ms=config.session_timeout_ms,
        )
        self.peers = Peers(self.engine, url, self.membership, config.heartbeats, lambda: client)
        self._pipelines: PipelineHost | None = None
        log = self.processing_log
        metrics = ServerMetrics(self.engine, lambda: (log.written, log.dropped))
        self.api = KsqlApi(self.engine, self.peers, metrics=metrics)
        app = config.protected(self.api.app(), self.api.watch(crowd))
        self._web = WebServer(app, bound, crowd, tls=tls, speaks_http2=True)

    def _engine(self) -> KsqlEngine:
        config = self.config
        schemas = config.schemas()
        catalog = load_extensions(config.extension_directory)
        log = KafkaCommandLog(self._clients, config.service_id, config.internal_replicas)
        note = self.processing_log.note
        runner: QueryRunner
        self._spark: SparkQueryRunner | None = None
        if config.runs_on_spark:
            runner = self._spark = _spark_runner(config, note, self._session)
        else:
            runner = LocalQueryRunner(self.cluster, catalog, schemas, note, self._may_write)
        return KsqlEngine(
            self.cluster,
            log,
            runner,
            catalog,
            schemas,
            config.settings,
            note=note,
            before_delete=self._others_have_read,
        )

    def _others_have_read(self, sequence: int) -> None:
        self.peers.have_read(sequence)

    def _may_write(self) -> bool:
        return self.membership.may_write()

    def _own(self, slots: frozenset[int]) -> None:
        """Run what has these slots, and nothing else."""
        if self._pipelines is not None:
            names = self._pipelines.names
            self._pipelines.run_only(name for name in names if slot_of_name(name) in slots)
        self.engine.own(slots)

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
            self._pipelines.run_only(())
            self._pipelines.start()
        self.membership.start()
        following = asyncio.gather(self._follow_log(), self.peers.run())
        try:
            await self._web.start()
            ready(self)
            await stopping.wait()
        finally:
            await self._web.stop()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await asyncio.to_thread(self._close)

    def _start(self) -> None:
        self.processing_log.make_topic(self.cluster)
        self.engine.start()
        self.processing_log.make_stream(self.engine)
        if self._spark is not None and not self.config.is_set(STARTS_COLD):
            self._spark.warm(topic_name(self.config.service_id))

    async def _follow_log(self) -> None:
        """Take over what other servers of the service write."""
        while True:
            await asyncio.sleep(_LOG_POLL_S)
            try:
                await asyncio.to_thread(self.engine.read_log)
            except CommandLogError as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001  the next time may do better
                _log.exception("the command log could not be read")

    def _close(self) -> None:
        self.membership.close()
        if self._pipelines is not None:
            self._pipelines.close()
        self.engine.close()
        self.processing_log.close()
        self.cluster.close()


def _spark_runner(
    config: ServerConfig, note: NoteEntry, session: ServerSession
) -> SparkQueryRunner:
    """Queries on Spark; the session starts with the first of them, unless it is warmed before."""
    from barnabas.sql.engine.spark_runner import SparkQueryRunner
    from barnabas.sql.spark.options import SparkQueryOptions

    options = SparkQueryOptions(
        config.bootstrap_servers,
        config.state_directory,
        registry_urls=config.registry_urls,
        registry_user_info=config.registry_user,
        registry_tls=config.registry_tls,
        kafka=config.java_kafka,
        clients=config.kafka,
        service_id=config.service_id,
        extension_directory=config.extension_directory,
        tasks_max=config.spark_tasks,
        marks_results=config.is_set(MARK_RESULTS),
        trigger_ms=config.spark_trigger_ms,
        commit_interval_ms=config.commit_interval_ms,
        reads_in_workers=config.is_set(WORKERS_READ),
        is_shared=config.is_set(SHARED),
    )
    return SparkQueryRunner(options, session, note=note, progress=lambda: session.line)


def run_server(config: ServerConfig, ready: Ready, session: ServerSession | None = None) -> int:
    """Run a server until a signal ends it. Raises CannotListenError."""
    raise_limit()
    server = Server(config, session)
    asyncio.run(server.run(ready))
    return 0
