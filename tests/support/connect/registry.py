"""The project's own schema registry over HTTP, in this process, with its schemas in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from barnabas.connect.plugins import load
from support.registry_whole import WholeRegistry


@contextmanager
def registry_over_http() -> Iterator[str]:
    """Run a registry; gives its URL."""
    registry = WholeRegistry()
    asking = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            with asking:
                reply = registry.ask(self.command, self.path, body)
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def registry_converter(class_name: str, url: str, **more: str) -> Any:
    """A converter of values; `a_b="x"` is its setting a.b."""
    made = load(class_name)()
    dotted = {name.replace("_", "."): value for name, value in more.items()}
    made.configure({"schema.registry.url": url, **dotted}, is_key=False)
    return made
