"""Requests to an ASGI application, given and taken byte by byte, without a server."""

import json
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.types import ASGIApp, Message

JSON = b"application/vnd.schemaregistry.v1+json"


@dataclass
class Reply:
    """The answer."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> int:
        """The numeric code of an error, the status of anything else."""
        if self.status < 400:
            return self.status
        assert set(self.json) == {"error_code", "message"}
        assert self.json["message"]
        assert isinstance(self.json["error_code"], int)
        return int(self.json["error_code"])


async def ask(
    app: ASGIApp,
    method: str,
    target: str | bytes,
    body: Any = None,
    *,
    headers: dict[bytes, bytes] | None = None,
    parts: int = 1,
) -> Reply:
    """Send one request; `body` is bytes, or what is sent as JSON. `parts` cuts it in pieces."""
    raw = target.encode() if isinstance(target, str) else target
    raw_path, _, query = raw.partition(b"?")
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    sent = {b"content-type": JSON} if data else {}
    sent |= headers or {}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": raw_path.decode("latin-1"),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": list(sent.items()),
        "client": ("127.0.0.1", 4711),
        "server": ("127.0.0.1", 8081),
    }
    size = max(1, -(-len(data) // parts))
    pieces = [data[start : start + size] for start in range(0, len(data), size)] or [b""]
    messages: list[Message] = []

    async def receive() -> Message:
        if not pieces:
            return {"type": "http.disconnect"}
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    start, *rest = messages
    names = [name for name, _ in start["headers"]]
    assert len(names) == len(set(names))
    return Reply(start["status"], dict(start["headers"]), b"".join(part["body"] for part in rest))


def run(task: Coroutine[Any, Any, Reply]) -> Reply:
    """The result of a task that waits for nothing."""
    with pytest.raises(StopIteration) as ended:
        task.send(None)
    reply = ended.value.value
    assert isinstance(reply, Reply)
    return reply
