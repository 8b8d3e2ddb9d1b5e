"""An identity provider on loopback: it serves its keys at /jwks and issues tokens at /token."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl

from support.tokens import Issuer


class Asked(NamedTuple):
    """One request that came."""

    path: str
    headers: dict[str, str]
    form: dict[str, str]


class IdentityProvider:
    """What it was asked, and what it answers."""

    def __init__(self) -> None:
        self.issuer = Issuer()
        self.asked: list[Asked] = []
        self.subject = "broker"
        self.lifetime_seconds = 3600
        self.failures: list[int] = []
        """Status codes of the next answers."""
        self.answer: Callable[[Asked], bytes] | None = None
        self.url = ""

    def times(self, path: str) -> int:
        """Return how often a path was asked for."""
        return sum(entry.path == path for entry in self.asked)

    def _answer(self, asked: Asked) -> tuple[int, bytes]:
        self.asked.append(asked)
        if self.failures:
            return self.failures.pop(0), b'{"error": "invalid_client", "error_description": "no"}'
        if self.answer is not None:
            return 200, self.answer(asked)
        if asked.path == "/jwks":
            return 200, self.issuer.key_set().encode()
        if asked.path == "/token":
            token = self.issuer.token(self.subject, self.lifetime_seconds)
            return 200, f'{{"access_token": "{token}", "token_type": "Bearer"}}'.encode()
        return 404, b"{}"

    @contextmanager
    def serving(self, tls: ssl.SSLContext | None = None) -> Iterator[IdentityProvider]:
        """Answer on a port of loopback."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
                form = dict(parse_qsl(self.rfile.read(size).decode()))
                code, body = provider._answer(Asked(self.path, dict(self.headers.items()), form))
                self.send_response(code)
                if code in {301, 302, 307}:
                    self.send_header("Location", f"{provider.url}/elsewhere")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
