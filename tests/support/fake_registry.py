"""A schema registry that keeps what it is given, behind real HTTP."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from uuid import UUID, uuid5

from support.served import served

NAMESPACE = UUID(int=0)


@dataclass
class FakeRegistry:
    """Serves what the broker asks; `asked` holds the paths, in order."""

    schemas: dict[int, tuple[str, str]] = field(default_factory=dict)
    subjects: dict[int, set[str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    answer: tuple[int, bytes] | None = None
    """Given in place of any true answer."""
    may_answer: threading.Event = field(default_factory=threading.Event)
    """Answers wait for it."""

    tls: ssl.SSLContext | None = None
    """For https."""

    def __post_init__(self) -> None:
        self.may_answer.set()

    def register(
        self, schema_id: int, *subjects: str, schema: str = '"string"', kind: str = "AVRO"
    ) -> int:
        """Have the schema under `subjects` too."""
        self.schemas[schema_id] = (kind, schema)
        self.subjects.setdefault(schema_id, set()).update(subjects)
        return schema_id

    def guid(self, schema_id: int) -> UUID:
        return uuid5(NAMESPACE, str(schema_id))

    def __enter__(self) -> FakeRegistry:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry.asked.append(self.path)
                registry.authorizations.append(self.headers["Authorization"])
                registry.may_answer.wait()
                status, body = registry.answer or registry.find(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._serving = ExitStack()
        self.url = self._serving.enter_context(served(Handler, self.tls))
        return self

    def __exit__(self, *_: object) -> None:
        self.may_answer.set()
        self._serving.close()

    def find(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        match path.strip("/").split("/"):
            case ["schemas", "ids", number, "subjects"] if int(number) in self.subjects:
                return _ok(sorted(self.subjects[int(number)]))
            case ["schemas", "ids", number] if int(number) in self.schemas:
                kind, schema = self.schemas[int(number)]
                named = {} if kind == "AVRO" else {"schemaType": kind}
                return _ok({"schema": schema, **named})
            case ["schemas", "guids", guid, "ids"]:
                found = [each for each in self.schemas if self.guid(each) == UUID(guid)]
                if found:
                    return _ok([{"context": ".", "id": each} for each in found])
        return 404, json.dumps({"error_code": 40403, "message": "Schema not found"}).encode()


def _ok(answer: object) -> tuple[int, bytes]:
    return 200, json.dumps(answer).encode()
