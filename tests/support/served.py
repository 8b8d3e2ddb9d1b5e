"""Handlers of the standard library's HTTP server, served on loopback for a test."""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Print errors, unless a client has closed its connection or failed to log in."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*_)  # type: ignore[arg-type]  # as they came


@contextmanager
def served(
    handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Serve requests in a thread, without a log; gives the URL."""
    quiet = type("Quiet", (handler,), {"log_message": lambda *_: None})
    server = _Server(("127.0.0.1", 0), quiet)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
