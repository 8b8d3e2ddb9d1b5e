"""The registry as its clients see it, with the real formats, over a topic that is a list."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from barnabas.registry.http.app import RegistryApp
from barnabas.registry.http.config import HttpConfig
from barnabas.schemas.formats import all_formats
from support.registry_http import Reply, ask, run
from support.registry_service import MemoryService


class WholeRegistry:
    """Requests to one instance; each method gives the answer of one."""

    def __init__(self) -> None:
        self.service = MemoryService(formats=all_formats())
        self.app = RegistryApp(self.service, HttpConfig(logs_requests=False))

    def ask(self, method: str, target: str, body: Any = None) -> Reply:
        asked = ask(self.app, method, target, body)
        if (
            body is not None
            and len(body.get("schema", "") if isinstance(body, dict) else body) > 9999
        ):
            return asyncio.run(asked)  # a thread may do it
        return run(asked)

    def get(self, target: str) -> Any:
        """The decoded answer of a request that must succeed."""
        reply = self.ask("GET", target)
        assert reply.status == 200, (target, reply.body)
        return reply.json

    def set(self, place: str, **settings: Any) -> None:
        """Change what `/config` or `/mode` say of a subject, or of all (`place` without one)."""
        reply = self.ask("PUT", place, settings)
        assert reply.status == 200, reply.body

    def register(self, subject: str, schema: Any, query: str = "", **more: Any) -> Reply:
        return self.ask(
            "POST", f"/subjects/{quote(subject, safe='')}/versions{query}", request(schema, **more)
        )

    def put(self, subject: str, schema: Any, query: str = "", **more: Any) -> int:
        """Register what must be taken; gives the id."""
        reply = self.register(subject, schema, query, **more)
        assert reply.status == 200, (subject, schema, reply.body)
        return int(reply.json["id"])

    def check(self, subject: str, schema: Any, version: str = "", **more: Any) -> tuple[bool, str]:
        """What the verbose check says: whether it is compatible, and the messages in one text."""
        reply = self.ask(
            "POST",
            f"/compatibility/subjects/{subject}/versions{version}?verbose=true",
            request(schema, **more),
        )
        assert reply.status == 200, reply.body
        return reply.json["is_compatible"], "\n".join(reply.json.get("messages", ()))


def request(
    schema: Any, kind: str = "AVRO", references: Sequence[Mapping[str, Any]] = (), **more: Any
) -> dict[str, Any]:
    """The body of a request; a schema that is not text is sent as JSON's."""
    body: dict[str, Any] = {"schema": schema if isinstance(schema, str) else json.dumps(schema)}
    if kind != "AVRO":
        body["schemaType"] = kind
    if references:
        body["references"] = list(references)
    return body | more


def reference(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    """Return what a request says of another schema."""
    return {"name": name, "subject": subject, "version": version}


def avro_record(name: str, *fields: tuple[str, Any] | tuple[str, Any, Any]) -> dict[str, Any]:
    """A record of fields: name, type, and a default where there is one."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field[0], "type": field[1]} | ({"default": field[2]} if len(field) > 2 else {})
            for field in fields
        ],
    }
