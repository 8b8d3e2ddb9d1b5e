"""Asks a registry over connections that stay open, each for one thing after the other.

`python -m bench.registry.load PORT KIND CONNECTIONS SECONDS SALT` prints answers per second and
percentiles as JSON. Kinds: `id` and `latest` read, `register` registers schemas that are new,
`again` some that are there. What happens in the first fifth of the time does not count.
"""

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Iterator
from typing import cast

import uvloop

from bench.measure import percentile
from bench.registry.schemas import avro, subject

WARM_UP_SHARE = 0.2
HOT = 100
"""So many schemas are read or registered again and again."""
ACCEPT = "application/vnd.schemaregistry.v1+json"


def requests(kind: str, salt: str) -> Iterator[bytes]:
    """Requests without end."""
    if kind == "id":
        return itertools.cycle([_get(f"/schemas/ids/{n}") for n in range(1, HOT + 1)])
    if kind == "latest":
        return itertools.cycle(
            [_get(f"/subjects/{subject(n)}/versions/latest") for n in range(1, HOT + 1)]
        )
    if kind == "again":
        return itertools.cycle(
            [_register(subject(n), avro(f"Event{n}")) for n in range(1, HOT + 1)]
        )
    return (_register(f"new-{salt}-{n}", avro(f"New{salt}{n}")) for n in itertools.count())


def _get(path: str) -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {ACCEPT}\r\n"
        "User-Agent: bench\r\n\r\n"
    ).encode()  # fmt: skip


def _register(name: str, text: str) -> bytes:
    body = json.dumps({"schema": text})
    return (
        f"POST /subjects/{name}/versions HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {ACCEPT}\r\n"
        f"Content-Type: {ACCEPT}\r\nContent-Length: {len(body)}\r\n"
        f"User-Agent: bench\r\n\r\n{body}"
    ).encode()


class _Connection(asyncio.Protocol):
    """One request at a time; keeps (answered at, seconds it took)."""

    def __init__(self, source: Iterator[bytes], ended: "asyncio.Future[None]") -> None:
        self.took: list[tuple[float, float]] = []
        self.is_over = False
        self._source = source
        self._ended = ended
        self._data = b""
        self._asked_s = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def _ask(self) -> None:
        request = next(self._source)
        self._asked_s = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        data = self._data = self._data + data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = data[:end].lower()
        at = head.find(b"content-length:")
        if at < 0 or not head.startswith(b"http/1.1 200"):
            self._fail(f"unexpected answer: {data[:400]!r}")
            return
        if len(data) < end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0]):
            return
        now = time.perf_counter()
        self.took.append((now, now - self._asked_s))
        self._data = b""
        if not self.is_over:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.is_over:
            self._fail(f"the connection was closed: {error}")

    def _fail(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_exception(RuntimeError(reason))


async def load(port: int, kind: str, connections: int, seconds: float, salt: str) -> str:
    """What is printed. Raises RuntimeError for an answer that is not 200."""
    loop = asyncio.get_running_loop()
    source = requests(kind, salt)
    ended: asyncio.Future[None] = loop.create_future()
    opened = [
        (await loop.create_connection(lambda: _Connection(source, ended), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    begin_s = time.perf_counter() + seconds * WARM_UP_SHARE
    done, _ = await asyncio.wait((ended,), timeout=seconds)
    end_s = time.perf_counter()
    for connection in opened:
        connection.is_over = True
    if done:
        ended.result()
    took = sorted(
        seconds
        for connection in opened
        for answered_s, seconds in connection.took
        if begin_s <= answered_s <= end_s
    )
    if not took:
        raise RuntimeError("nothing was answered")
    return json.dumps(
        {
            "per_s": len(took) / (end_s - begin_s),
            "p50_ms": percentile(took, 0.5) * 1000,
            "p99_ms": percentile(took, 0.99) * 1000,
            "all": sum(len(connection.took) for connection in opened),
        }
    )


if __name__ == "__main__":
    port, kind, connections, seconds, salt = sys.argv[1:]
    print(uvloop.run(load(int(port), kind, int(connections), float(seconds), salt)))
