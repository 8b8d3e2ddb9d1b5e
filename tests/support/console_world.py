"""A console in a thread, for tests that ask it over HTTP or look at it in a browser."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from barnabas.console.config import ConsoleConfig
from barnabas.console.server import ConsoleServer
from barnabas.web.server import ServerThread


class Console:
    """A client of a console, as the page is one."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=60)

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of an answer that succeeds."""
        answer = self.http.get(f"/api/{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """The answer to a change."""
        given = {"x-console": "1", "content-type": "application/json", **headers}
        data = json.dumps({} if body is None else body)
        return self.http.request(method, f"/api/{path}", content=data, headers=given)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a change that succeeds."""
        answer = self.send(method, path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def log_in(self, name: str, password: str) -> httpx.Response:
        """Log in; the cookie is kept."""
        return self.send("POST", "login", {"name": name, "password": password})

    def lines(self, path: str, **query: Any) -> Iterator[Any]:
        """The lines of an answer that goes on."""
        with self.http.stream("GET", f"/api/{path}", params=query) as answer:
            assert answer.status_code == 200, answer.read()
            for line in answer.iter_lines():
                yield json.loads(line)


@contextlib.contextmanager
def console(values: Mapping[str, str]) -> Iterator[Console]:
    """A console on a free port of loopback."""
    server = ConsoleServer(ConsoleConfig({"listeners": "http://127.0.0.1:0", **values}))
    thread = ServerThread(server, "console")
    thread.start()
    client = Console(str(server.listeners[0]))
    try:
        yield client
    finally:
        client.http.close()
        thread.close()
