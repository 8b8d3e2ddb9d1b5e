"""A standalone worker's REST interface, asked without a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from barnabas.connect.rest.app import RestApp, protected
from barnabas.connect.rest.connectors import Resources
from support.connect.herder_world import SOURCE, HerderWorld


class RestWorld:
    """`ask` sends a request to a new worker's application."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        forwarding: httpx.AsyncClient | None = None,
        **protection: Any,
    ) -> None:
        self.herder = HerderWorld(folder, settings)
        self.herder.herder.is_ready = True
        values = dict(settings or {})
        self.resources = resources = Resources(self.herder.herder, values)
        hide = self.herder.herder.worker.hide
        self.rest = RestApp((*resources.regular(), *resources.admin()), forwarding, hide)
        self.app: ASGIApp = protected(self.rest, values, watch=resources.watch(), **protection)

    async def ask(self, method: str, path: str, json: Any = None, **more: Any) -> tuple[int, Any]:
        """Return status and JSON; None where there is no body."""
        answer = await self.send(method, path, json, **more)
        return answer.status_code, answer.json() if answer.content else None

    async def send(self, method: str, path: str, json: Any = None, **more: Any) -> httpx.Response:
        """Return the answer."""
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8083") as ask:
            return await ask.request(method, path, json=json, **more)

    async def create(self, name: str = "c", **settings: str) -> tuple[int, Any]:
        """Make a source."""
        config = {"connector.class": SOURCE, "topic": "t", **settings}
        return await self.ask("POST", "/connectors", {"name": name, "config": config})

    def close(self) -> None:
        """Stop all."""
        self.rest.close()
        self.herder.herder.close()
