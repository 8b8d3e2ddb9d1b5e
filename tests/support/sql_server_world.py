"""A SQL server in memory: its engine over topics in memory, and requests to its application."""

from __future__ import annotations

import json
from typing import Any

import httpx

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql.engine.command_log import LogEntry
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.local_runner import LocalQueryRunner
from barnabas.sql.functions.built_in import functions
from barnabas.sql.processing_log import NoteEntry, log_entry
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.server.app import KsqlApi
from barnabas.sql.server.protection import protected
from support.memory_cluster import MemoryCluster
from support.memory_command_log import MemoryCommandLog

SETTINGS = {"auto.offset.reset": "earliest"}


class SqlWorld:
    """`restart` makes a new server over the same topics and command log."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.schemas = MemoryRegistry()
        self.entries: list[LogEntry] = []
        self.settings: dict[str, Any] = dict(SETTINGS)
        self.note: NoteEntry = log_entry
        self.engine = self._engine()
        self.client = self._client()

    def _engine(self) -> KsqlEngine:
        catalog = functions()
        runner = LocalQueryRunner(self.cluster, catalog, self.schemas, self.note)
        log = MemoryCommandLog(self.entries)
        engine = KsqlEngine(
            self.cluster, log, runner, catalog, self.schemas, self.settings, self.note
        )
        engine.start()
        return engine

    def _client(self) -> httpx.AsyncClient:
        return self.client_of(KsqlApi(self.engine))

    def client_of(self, api: KsqlApi) -> httpx.AsyncClient:
        """A client of that interface."""
        transport = httpx.ASGITransport(protected(api.app(), {}, watch=api.watch()))
        return httpx.AsyncClient(transport=transport, base_url="http://sql")

    async def restart(self) -> None:
        await self.close()
        self.engine = self._engine()
        self.client = self._client()

    async def close(self) -> None:
        await self.client.aclose()
        self.engine.close()

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self.client.post(path, json=body)

    async def ksql(self, text: str, **members: Any) -> Any:
        """The answers to statements that must be taken."""
        answer = await self.post("/ksql", {"ksql": text, **members})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def error(self, text: str, path: str = "/ksql", **members: Any) -> Any:
        """The error that a request is answered with."""
        answer = await self.post(path, {"ksql": text, **members})
        assert answer.status_code != 200, answer.text
        return answer.json()

    async def rows(self, text: str, **properties: Any) -> list[list[Any]]:
        """The rows of a query that ends."""
        answer = await self.post("/query-stream", {"sql": text, "properties": properties})
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()[1:]]

    def write(self, topic: str, key: str, value: Any, timestamp_ms: int = 0) -> None:
        data = None if value is None else json.dumps(value).encode()
        self.cluster.write(topic, TopicRecord(key.encode(), data, timestamp_ms))
