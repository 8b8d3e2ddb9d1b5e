"""A SQL server that answers as it was told, behind real HTTP."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MEDIA_TYPE = "application/vnd.ksql.v1+json"
INFO = {
    "KsqlServerInfo": {
        "version": "7.9.0",
        "kafkaClusterId": "cluster-1",
        "ksqlServiceId": "default_",
        "serverStatus": "RUNNING",
    }
}


@dataclass
class FakeSqlServer:
    """`answers`: by statement (or path), the status and the body; a list of texts is streamed.

    `asked` holds the bodies of POST requests, in order.
    """

    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    """Set when a client goes away while it is still being answered."""

    def __enter__(self) -> FakeSqlServer:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                fake.authorizations.append(self.headers["Authorization"])
                default = (200, INFO) if self.path == "/info" else (200, True)
                self._answer(*fake.answers.get(self.path, default))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fake.asked.append({"path": self.path, **body})
                self._answer(*fake.answers.get(body["ksql"], (200, [])))

            def _answer(self, status: int, body: Any) -> None:
                if isinstance(body, list) and body and all(isinstance(p, str) for p in body):
                    self._stream(body)
                    return
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", MEDIA_TYPE)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, parts: list[str]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", MEDIA_TYPE)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for part in parts:
                    if part == FOR_EVER:
                        self.rfile.read(1)  # nothing comes: it returns when the client goes
                        fake.closed.set()
                        return
                    data = part.encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    self.wfile.flush()
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name there
                """Nothing is printed."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Clients may go whenever they like."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


FOR_EVER = "<for ever>"
"""A part of a streamed answer: nothing more comes, and the answer does not end."""
