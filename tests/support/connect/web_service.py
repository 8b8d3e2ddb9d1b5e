"""A web service on this machine that answers as a test says, and keeps what it was asked."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.served import served


@dataclass(slots=True)
class Asked:
    """One request."""

    method: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Answer:
    """What is answered; a body that is no bytes is JSON. Status 0 hangs up."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)


class WebService:
    """Answers each request by a function; by TLS with a file of a key and its certificate."""

    def __init__(self, answer: Callable[[Asked], Answer], certificate: str | None = None) -> None:
        self.asked: list[Asked] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                url = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                asked = Asked(
                    self.command,
                    url.path,
                    dict(parse_qsl(url.query)),
                    {name.lower(): value for name, value in self.headers.items()},
                    self.rfile.read(length),
                )
                service.asked.append(asked)
                told = answer(asked)
                if told.status == 0:
                    self.close_connection = True
                    return
                is_raw = isinstance(told.body, bytes)
                body = told.body if is_raw else json.dumps(told.body).encode()
                self.send_response(told.status)
                for name, value in told.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = handle_any  # noqa: N815  # the names that are called

        self._handler, self._certificate = Handler, certificate
        self._serving = ExitStack()

    def __enter__(self) -> WebService:
        context = None
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
        self.url = self._serving.enter_context(served(self._handler, context))
        return self

    def __exit__(self, *_: object) -> None:
        self._serving.close()
