"""Runs a server: an engine over a cluster, behind HTTP/1.1 and HTTP/2 (h2c without TLS)."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Callable

from hypercorn.asyncio import serve
from hypercorn.config import Config

from barnabas.pipeline.sql.engine.command_log import CommandLogError
from barnabas.pipeline.sql.engine.engine import KsqlEngine
from barnabas.pipeline.sql.engine.local_runner import LocalRunner
from barnabas.pipeline.sql.engine.queries import QueryRunner
from barnabas.pipeline.sql.server.app import KsqlApi
from barnabas.pipeline.sql.server.config import Listener, ServerConfig
from barnabas.pipeline.sql.server.kafka_cluster import KafkaCluster
from barnabas.pipeline.sql.server.kafka_command_log import KafkaCommandLog
from barnabas.pipeline.sql.server.membership import Membership
from barnabas.pipeline.sql.server.peers import Peers
from barnabas.pipeline.udf import load_extensions

_log = logging.getLogger(__name__)
_LOG_POLL_S = 1.0
_STOP_S = 3.0
_IDLE_S = 300.0
_REQUESTS_MAX = 2**30
"""A client of HTTP/2 keeps one connection for all it ever asks."""

Ready = Callable[["Server"], None]


class _Http(Config):
    """hypercorn's configuration with a TLS of our own; each listener speaks it or does not."""

    tls: ssl.SSLContext | None = None

    @property
    def ssl_enabled(self) -> bool:
        return self.tls is not None

    def create_ssl_context(self) -> ssl.SSLContext | None:
        return self.tls


class CannotListenError(Exception):
    """An address is taken or is none of this machine's."""


class Server:
    """`listeners`: where it listens, with the ports that were chosen."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self._tls = config.listener_tls
        self._sockets = [_bound(listener) for listener in config.listeners]
        self.listeners = [
            Listener(listener.host, int(own.getsockname()[1]), listener.is_tls)
            for listener, own in zip(config.listeners, self._sockets, strict=True)
        ]
        self.cluster = KafkaCluster(config.kafka)
        self.engine = self._engine()
        # No query runs before its slot is known to be this server's.
        self.engine.own(())
        url = config.advertised(self.listeners)
        self.membership = Membership(
            self.cluster,
            config.kafka,
            config.service_id,
            url,
            self.engine.own,
            replicas=config.internal_replicas,
            session_timeout_ms=config.session_timeout_ms,
        )
        heartbeats, client = config.heartbeats, config.peer_client
        self.peers = Peers(self.engine, url, self.membership, heartbeats, client)
        self.engine.before_delete = self.peers.have_read
        self.api = KsqlApi(self.engine, self.peers)
        self.app = config.with_login(self.api.app())

    def _engine(self) -> KsqlEngine:
        config = self.config
        schemas = config.schemas()
        catalog = load_extensions(config.extension_directory)
        log = KafkaCommandLog(
            self.cluster,
            config.kafka,
            config.service_id,
            config.internal_replicas,
        )
        runner: QueryRunner
        if config.runs_on_spark:
            runner = _spark_runner(config)
        else:
            runner = LocalRunner(self.cluster, catalog, schemas, self._may_write)
        return KsqlEngine(self.cluster, log, runner, catalog, schemas, config.settings)

    def _may_write(self) -> bool:
        return self.membership.may_write()

    async def run(self, ready: Ready) -> None:
        """Serve until SIGTERM or SIGINT."""
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        await asyncio.to_thread(self.engine.start)
        self.membership.start()
        following = asyncio.gather(self._follow_log(), self.peers.run())
        serving = asyncio.create_task(
            serve(self.app, self._http(), shutdown_trigger=stopping.wait)  # type: ignore[arg-type]  # hypercorn has types of its own for ASGI
        )
        ready(self)
        try:
            await serving
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await asyncio.to_thread(self._close)

    def _http(self) -> Config:
        config = _Http()
        config.tls = self._tls
        plain: list[str] = []
        secure: list[str] = []
        for listener, own in zip(self.listeners, self._sockets, strict=True):
            (secure if listener.is_tls else plain).append(f"fd://{own.detach()}")
        # Without TLS hypercorn takes no `insecure_bind`.
        config.bind, config.insecure_bind = (secure, plain) if self._tls else (plain, [])
        config.include_server_header = False
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
        self.membership.close()
        self.engine.close()
        self.cluster.close()


def _spark_runner(config: ServerConfig) -> QueryRunner:
    """Queries on Spark; the session starts with the first of them."""
    from barnabas.pipeline.session import SessionOptions, start_session
    from barnabas.pipeline.sql.engine.spark_runner import SparkRunner
    from barnabas.pipeline.sql.spark.options import SparkQueryOptions

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
    )
    session = SessionOptions(
        app_name=f"barnabas sql {config.service_id}",
        master=config.spark_master,
        # Rows of Spark's are parcels of many records: there is little for it to optimise.
        small_batches=True,
    )
    return SparkRunner(options, lambda: start_session(session))


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
