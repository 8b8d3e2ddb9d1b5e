"""Cost of a read of the registry's REST interface, without the server in front of it.

Our application beside Starlette's router and responses over the same look-ups and the same kept
answers.

`python -m bench.registry_reads`
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Scope

from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.lookup import get_by_id, get_version
from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.schema_json import EncodedSchemas
from barnabas.registry.service import Done, Forward
from barnabas.registry.store.records import SchemaKey, SchemaValue
from barnabas.registry.store.state import RegistryState
from barnabas.schemas.schema import ParsedSchema, ResolvedReference

SUBJECTS = 1_000
REQUESTS = 10_000
ROUNDS = 5
TARGETS = (b"/schemas/ids/500", b"/subjects/topic-500-value/versions/latest")


class _NoFormats:
    def types(self) -> Sequence[str]:
        return ("AVRO",)

    def parse(
        self,
        schema_type: str,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        is_new: bool = False,
    ) -> ParsedSchema:
        raise AssertionError("reads parse and write nothing")

    def apart(self) -> "_NoFormats":
        return self


class _Reads:
    """A service that is only read."""

    is_ready = True
    is_leader = True
    leader_url = None
    cluster_id = ""

    def __init__(self) -> None:
        state = RegistryState()
        for number in range(1, SUBJECTS + 1):
            fields = [{"name": f"field_{number}_{n}", "type": "string"} for n in range(20)]
            text = json.dumps({"type": "record", "name": f"R{number}", "fields": fields})
            value = SchemaValue(f"topic-{number}-value", 1, number, text)
            state.replay(SchemaKey(value.subject, 1), value, number)
        self.view = View(state, _NoFormats())

    async def write(
        self, decide: Callable[[View], Decision[Any]], *, is_large: bool = False
    ) -> Done[Any] | Forward:
        raise AssertionError("reads parse and write nothing")

    async def caught_up(self, offset: int | None = None) -> None:
        raise AssertionError("reads parse and write nothing")


def starlette_app(reads: _Reads) -> ASGIApp:
    """The same two reads, and the routes that stand before them, in Starlette's way."""
    encoded = EncodedSchemas()
    media_type = "application/vnd.schemaregistry.v1+json"

    async def by_id(request: Request) -> Response:
        value = get_by_id(reads.view, request.path_params["id"], "")
        return Response(encoded.by_id(value), media_type=media_type)

    async def by_version(request: Request) -> Response:
        parameters = request.path_params
        value = get_version(reads.view, parameters["subject"], parameters["version"])
        return Response(encoded.version(value), media_type=media_type)

    return Starlette(
        routes=[
            Route("/", by_id),
            Route("/config", by_id),
            Route("/mode", by_id),
            Route("/subjects", by_id),
            Route("/subjects/{subject}/versions", by_id),
            Route("/subjects/{subject}/versions/{version}", by_version),
            Route("/schemas/types", by_id),
            Route("/schemas/ids/{id:int}", by_id),
        ]
    )


async def nothing(scope: Scope, receive: object, send: Callable[[Message], Any]) -> None:
    """An application that answers always the same."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def us_per_request(app: ASGIApp, target: bytes) -> float:
    """CPU microseconds per request, the best of some rounds."""

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        pass

    headers = [(b"host", b"h"), (b"accept", b"*/*"), (b"user-agent", b"bench")]
    best = float("inf")
    for _ in range(ROUNDS):
        start_s = time.process_time()
        for _ in range(REQUESTS):
            scope: Scope = {
                "type": "http",
                "http_version": "1.1",
                "method": "GET",
                "path": target.decode(),
                "raw_path": target,
                "query_string": b"",
                "root_path": "",
                "headers": headers,
            }
            try:
                app(scope, receive, send).__await__().__next__()
            except StopIteration:
                continue
            raise AssertionError("the application waits")
        best = min(best, time.process_time() - start_s)
    return best / REQUESTS * 1e6


def main() -> None:
    """Print a line for each application and target."""
    reads = _Reads()
    apps: dict[str, ASGIApp] = {
        "nothing": nothing,
        "ours": RegistryApp(reads, HttpConfig(logs_requests=False)),
        "starlette": starlette_app(reads),
    }
    for target in TARGETS:
        for name, app in apps.items():
            print(f"{name:9} {us_per_request(app, target):6.1f} µs  {target.decode()}")


if __name__ == "__main__":
    main()
