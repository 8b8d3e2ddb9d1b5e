"""The HTTP server of a node's metrics. It has threads of its own and asks the node's loop."""

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, socket
from typing import Any, Final

from barnabas.app.metrics.access import LISTENER_NAME, Access
from barnabas.app.metrics.figure_text import CONTENT_TYPE, figure_text
from barnabas.base.config.node import NodeConfig
from barnabas.base.tls_contexts import TlsSide
from barnabas.security.quotas.client_quotas import Figure

PATH: Final = "/metrics"
CONNECTIONS_MAX: Final = 16
"""At a time: scrapers are few."""
SILENCE_MAX_S: Final = 10
COLLECT_MAX_S: Final = 10

telemetry = logging.getLogger(__name__)


class MetricsEndpoint:
    """Shows figures from `open` to `close`."""

    def __init__(self, server: "_Server") -> None:
        """Use `open`."""
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, name="barnabas-metrics", daemon=True
        )
        self._thread.start()
        self.port: int = server.server_address[1]

    @classmethod
    def open(
        cls, config: NodeConfig, access: Access, figures: Callable[[], Iterator[Figure]]
    ) -> "MetricsEndpoint":
        """Serve what `figures` gives on the running loop.

        Raises ConfigError for TLS that cannot be had, and OSError for an address that cannot.
        """
        tls = TlsSide(config, LISTENER_NAME, "SSL", is_server=True) if access.is_encrypted else None
        loop = asyncio.get_running_loop()

        async def collect() -> bytes:
            return figure_text(figures())

        def collect_on_loop() -> bytes:
            return asyncio.run_coroutine_threadsafe(collect(), loop).result(COLLECT_MAX_S)

        return cls(_Server(access, tls, collect_on_loop))

    def close(self) -> None:
        """Serve no more. What is being answered is not waited for."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, access: Access, tls: TlsSide | None, collect: Callable[[], bytes]) -> None:
        self.access = access
        self.collect = collect
        self._tls = tls
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)
        if ":" in access.host:
            self.address_family = AF_INET6
        super().__init__((access.host, access.port), _Handler)

    def get_request(self) -> tuple[socket, Any]:
        connection, address = super().get_request()
        connection.settimeout(SILENCE_MAX_S)
        if self._tls is not None:
            try:
                # The handshake is the first read, in the connection's own thread.
                connection = self._tls.context().wrap_socket(
                    connection, server_side=True, do_handshake_on_connect=False
                )
            except OSError:
                connection.close()
                raise
        return connection, address

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._places.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """One line for what a peer did; the stack for what is our own fault."""
        import sys  # the base class looks there too

        error = sys.exc_info()[1]
        if isinstance(error, (OSError, ssl.SSLError)):
            telemetry.debug("metrics for %s: %s", client_address[0], error)
        else:
            telemetry.exception("metrics for %s", client_address[0])


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "barnabas"
    sys_version = ""
    timeout = SILENCE_MAX_S

    def do_GET(self) -> None:
        if not self.server.access.admits(self.headers.get("Authorization")):
            self._answer(HTTPStatus.UNAUTHORIZED, b"Unauthorized\n", "text/plain")
        elif self.path.partition("?")[0] != PATH:
            self._answer(HTTPStatus.NOT_FOUND, b"Look at /metrics\n", "text/plain")
        else:
            try:
                text = self.server.collect()
            except (FutureTimeoutError, RuntimeError):  # the node is busy, or ends
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"Try again\n", "text/plain")
            else:
                self._answer(HTTPStatus.OK, text, CONTENT_TYPE)

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="metrics"')
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        telemetry.debug("%s: " + format, self.client_address[0], *args)
