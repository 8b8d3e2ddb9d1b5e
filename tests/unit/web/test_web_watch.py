"""Health answers name the reason for not being ready, but not the text of unexpected errors."""

from __future__ import annotations

import json
from typing import Any

from barnabas.web.watch import READY, Watch


async def answer(watch: Watch) -> tuple[int, dict[str, str]]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    assert await watch.answer({"path": READY, "method": "GET"}, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


async def no_metrics() -> bytes:
    return b""


async def test_health_shows_no_text_of_an_unexpected_error() -> None:
    async def ready() -> str | None:
        raise RuntimeError("user:secret@database")

    status, facts = await answer(Watch(no_metrics, ready))
    assert (status, facts) == (503, {"status": "not ready", "reason": "RuntimeError"})


async def test_health_shows_why_the_product_is_not_ready() -> None:
    async def ready() -> str | None:
        return "no instance leads"

    status, facts = await answer(Watch(no_metrics, ready))
    assert (status, facts) == (503, {"status": "not ready", "reason": "no instance leads"})
