"""The project's own schema registry over HTTP, in this process, with its schemas in memory."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from barnabas.connect.plugins import load
from barnabas.registry.config import RegistryConfig
from barnabas.registry.http.protection import protected
from support.registry_http import ask
from support.registry_whole import WholeRegistry
from support.served import served


@contextmanager
def registry_over_http(tls: ssl.SSLContext | None = None, **settings: str) -> Iterator[str]:
    """Run a registry; gives its URL. `a_b="x"` is its setting a.b, as far as logins go."""
    registry = WholeRegistry()
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    config = RegistryConfig({"kafkastore.bootstrap.servers": "localhost:9092", **dotted})
    app = protected(registry.app, config)
    asking = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self._answer()

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size) if size else None
            headers = {name.lower().encode(): text.encode() for name, text in self.headers.items()}
            with asking:  # another thread may read a large schema
                asked = ask(app, self.command, self.path, body, headers=headers)
                reply = asyncio.run(asked)
            self.send_response(reply.status)
            for name, text in reply.headers.items():
                self.send_header(name.decode(), text.decode())
            self.end_headers()
            self.wfile.write(reply.body)

    with served(Handler, tls) as url:
        yield url


def registry_converter(class_name: str, url: str, **more: str) -> Any:
    """A converter of values; `a_b="x"` is its setting a.b."""
    made = load(class_name)()
    dotted = {name.replace("_", "."): value for name, value in more.items()}
    made.configure({"schema.registry.url": url, "max.retries": "0", **dotted}, is_key=False)
    return made
