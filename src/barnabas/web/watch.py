"""Metrics and health of every service: /metrics, /health/live and /health/ready.

`/health/live` says that the process answers; `/health/ready` asks the product whether requests can
be served now, and is 503 with the reason if not. Neither needs a login or counts towards a bound.
The figures are the product's, and those of every HTTP server: its answers, its connections, and
memory, processor time and descriptors of its process.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from barnabas.web.crowd import Crowd
from barnabas.web.metrics import CONTENT_TYPE, Families, metrics_text, process_text

if TYPE_CHECKING:
    from starlette.types import Scope, Send

METRICS: Final = "/metrics"
LIVE: Final = "/health/live"
READY: Final = "/health/ready"
ANSWER_S: Final = 10.0
"""A product that does not answer within this time is not ready."""
_JSON: Final = b"application/json"
_log = logging.getLogger(__name__)


class Watch:
    """`metrics` gives Prometheus' text; `ready` why requests cannot be served, None if they can."""

    paths: Final = frozenset({METRICS, LIVE, READY})
    open_paths: Final = frozenset({LIVE, READY})

    def __init__(
        self,
        metrics: Callable[[], Awaitable[bytes]],
        ready: Callable[[], Awaitable[str | None]],
        crowd: Crowd | None = None,
        answer_s: float = ANSWER_S,
    ) -> None:
        """`crowd`: the server's connections."""
        self._metrics, self._ready = metrics, ready
        self._crowd = crowd
        self._answer_s = answer_s
        self.answers: dict[int, int] = {}
        """The number of answered requests, by status."""

    async def answer(self, scope: Scope, send: Send) -> bool:
        """Answer GET or HEAD of one of the paths; False if there are no metrics now."""
        path = scope["path"]
        status, content_type = 200, _JSON
        if path == LIVE:
            body = b'{"status":"live"}'
        elif path == READY:
            reason = await self._reason()
            status = 200 if reason is None else 503
            body = _state("ready" if reason is None else "not ready", reason)
        else:
            try:
                async with asyncio.timeout(self._answer_s):
                    body = await self._metrics() + self._own_text()
            except Exception:  # noqa: BLE001  told to the client
                _log.exception("no metrics can be shown")
                return False
            content_type = CONTENT_TYPE.encode()
        headers = [
            (b"content-type", content_type),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
        ]
        body = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return True

    def _own_text(self) -> bytes:
        families = Families()
        for status, count in sorted(self.answers.items()):
            what = "Answers of the HTTP server, by status."
            families.counter("http_server_requests", what, count, code=str(status))
        if self._crowd is not None:
            what = "Connections of the HTTP server."
            families.gauge("http_server_connections", what, self._crowd.count)
        return metrics_text(families.all()) + process_text()

    async def _reason(self) -> str | None:
        try:
            async with asyncio.timeout(self._answer_s):
                return await self._ready()
        except TimeoutError:
            return f"no answer within {self._answer_s:g} s"
        except Exception as error:  # noqa: BLE001  told to the client
            _log.exception("cannot determine whether requests can be served")
            return type(error).__name__  # no login is needed here, and its text may be secret


def _state(status: str, reason: str | None) -> bytes:
    facts = {"status": status} if reason is None else {"status": status, "reason": reason}
    return json.dumps(facts, separators=(",", ":")).encode()
