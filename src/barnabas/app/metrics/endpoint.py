"""The HTTP server of a node's metrics. It has threads of its own and asks the node's loop."""

import asyncio
import contextlib
import io
import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, SHUT_RDWR, socket
from typing import Any, Final

from barnabas.app.metrics.access import LISTENER_NAME, Access
from barnabas.app.metrics.figure_text import CONTENT_TYPE, figure_text
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import TlsSide
from barnabas.node.security.quotas.client_quotas import Figure
from barnabas.web.crowd import HEAD_BYTES_MAX, Crowd, Place
from barnabas.web.guard import is_meant_for_loopback, may_ask, only_loopback

PATH: Final = "/metrics"
CONNECTIONS_MAX: Final = 16
"""At a time: scrapers are few. For one more the oldest is closed."""
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
        self.is_on_loopback = only_loopback([access.host])
        self._crowd = Crowd(CONNECTIONS_MAX)
        self._places: dict[socket, Place] = {}
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
        place = self._crowd.enter(lambda: _end(request))
        if place is not None:
            self._places[request] = place
        return place is not None

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.pop(request).leave()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """One line for what a peer did; the stack for what is our own fault."""
        import sys  # the base class looks there too

        error = sys.exc_info()[1]
        if isinstance(error, (OSError, ssl.SSLError)):
            telemetry.debug("metrics for %s: %s", client_address[0], error)
        else:
            telemetry.exception("metrics for %s", client_address[0])


def _end(connection: socket) -> None:
    """End a connection whose thread waits for it."""
    with contextlib.suppress(OSError):  # it has ended by itself
        socket.shutdown(connection, SHUT_RDWR)  # that of TLS would first forget its state


class _Head(io.RawIOBase):
    """What a client sends, up to the length of a head, in the time of one."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self._left_bytes = HEAD_BYTES_MAX
        self._ends_s = time.monotonic() + SILENCE_MAX_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._ends_s - time.monotonic()
        if left_s <= 0 or self._left_bytes <= 0:
            raise TimeoutError("the head of the request is too long, or came too slowly")
        self._connection.settimeout(left_s)
        count = self._connection.recv_into(memoryview(buffer)[: self._left_bytes])
        self._left_bytes -= count
        self._connection.settimeout(SILENCE_MAX_S)
        return count


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "barnabas"
    sys_version = ""
    timeout = SILENCE_MAX_S

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Head(self.connection))

    def _may_ask(self) -> bool:
        host = (self.headers.get("Host") or "").encode("latin-1", "replace")
        if self.server.is_on_loopback and not is_meant_for_loopback(host):
            return False
        origin, site = (
            None if value is None else value.encode("latin-1", "replace")
            for value in (self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site"))
        )
        return may_ask(origin, site, host)

    def do_GET(self) -> None:
        if not self._may_ask():
            self._answer(HTTPStatus.FORBIDDEN, b"Not for this page or host\n", "text/plain")
        elif not self.server.access.admits(self.headers.get("Authorization")):
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
