"""A SQL server that answers as it was told, behind real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, StreamEnded
from h2.exceptions import ProtocolError

from support.served import served

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

        self._serving = ExitStack()
        self.url = self._serving.enter_context(served(Handler))
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.close()


FOR_EVER = "<for ever>"
"""A part of a streamed answer: nothing more comes, and the answer does not end."""


class Http2SqlServer:
    """One connection after the other, HTTP/2 from the first byte: GET returns the server's info,
    POST its streams: none."""

    def __enter__(self) -> Http2SqlServer:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client:
                self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        http = H2Connection(H2Configuration(client_side=False))
        http.initiate_connection()
        methods: dict[int, bytes] = {}
        while data := client.recv(65_536):
            try:
                events = http.receive_data(data)
            except ProtocolError:  # it speaks HTTP/1.1
                return
            for event in events:
                if isinstance(event, RequestReceived) and event.stream_id is not None:
                    methods[event.stream_id] = dict(event.headers or ())[b":method"]
                elif isinstance(event, StreamEnded) and event.stream_id is not None:
                    is_get = methods[event.stream_id] == b"GET"
                    body = INFO if is_get else [{"@type": "streams", "streams": []}]
                    http.send_headers(event.stream_id, [(":status", "200")])
                    http.send_data(event.stream_id, json.dumps(body).encode(), end_stream=True)
            client.sendall(http.data_to_send())
