"""Answers that go on for as long as a query runs."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Generic, TypeVar

from barnabas.base.clock import now_ms
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.pull import PullQuery
from barnabas.sql.engine.push import COMPLETED, End, PushQuery, PushRow
from barnabas.sql.server.errors import SERVER_ERROR, ApiError
from barnabas.sql.server.printing import TopicPrinter
from barnabas.sql.server.rows import RowForm

_CHUNK_BYTES = 64 * 1024


def pull_id() -> str:
    """An id for the answer to a pull query."""
    return f"query_{now_ms()}"


async def pull_answer(engine: KsqlEngine, query: PullQuery, form: RowForm) -> list[str]:
    """The whole answer to a pull query of a table, in parts of a moderate size."""

    def run() -> list[str]:
        parts, size, chunks = [form.begin(pull_id(), query.schema)], 0, []
        for row in query.rows(engine.view(query.source)):
            parts.append(form.row(row))
            size += len(parts[-1])
            if size > _CHUNK_BYTES:
                chunks.append("".join(parts))
                parts, size = [], 0
        parts.append(form.end())
        return [*chunks, "".join(parts)]

    return await asyncio.to_thread(run)


async def push_answer(
    engine: KsqlEngine, query: PushQuery, form: RowForm, *, is_pull: bool
) -> AsyncIterator[str]:
    """The answer to a push query, part by part, until it ends or nobody reads it any more."""
    mailbox: Mailbox[PushRow | End] = Mailbox()
    yield form.begin(query.query_id, query.schema)
    running = asyncio.create_task(run_push(engine, query, mailbox, is_pull=is_pull))
    try:
        while True:
            parts = []
            for item in await mailbox.take():
                if isinstance(item, PushRow):
                    parts.append(form.row(item.values, is_tombstone=item.is_tombstone))
                    continue
                if item.error is not None:
                    parts.append(form.fail(error_body(item.error)))
                else:
                    parts.append(form.end(item.message or COMPLETED))
                yield "".join(parts)
                return
            yield "".join(parts)
    finally:
        mailbox.close()
        await asyncio.shield(asyncio.to_thread(query.stop))
        await asyncio.shield(running)


async def run_push(
    engine: KsqlEngine, query: PushQuery, mailbox: Mailbox[PushRow | End], *, is_pull: bool
) -> None:
    """Start a push query whose results go into the mailbox, and so does why it cannot start."""

    def run() -> None:
        try:
            engine.asking.run_push(query, mailbox.put, is_pull=is_pull)
        except Exception as error:  # noqa: BLE001  the answer has begun: it must tell of it
            mailbox.put(End("", error))

    await asyncio.to_thread(run)


async def print_answer(engine: KsqlEngine, printer: TopicPrinter) -> AsyncGenerator[str]:
    """The lines of a PRINT."""
    mailbox: Mailbox[str | End] = Mailbox()

    def start() -> None:
        try:
            printer.start(engine.cluster, mailbox.put)
        except Exception as error:  # noqa: BLE001  the answer has begun: it must tell of it
            mailbox.put(End("", error))

    starting = asyncio.create_task(asyncio.to_thread(start))
    try:
        while True:
            lines = []
            for item in await mailbox.take():
                if isinstance(item, End):
                    if item.error is not None:
                        lines.append(f"{item.error}\n")
                    yield "".join(lines)
                    return
                lines.append(item + "\n")
            yield "".join(lines)
    finally:
        mailbox.close()
        await asyncio.shield(starting)
        await asyncio.shield(asyncio.to_thread(printer.stop))


def error_body(error: Exception) -> dict[str, Any]:
    """An error within an answer that has begun."""
    return ApiError(SERVER_ERROR, str(error) or type(error).__name__).body()


# --- results on their way from the threads that make them to the event loop that sends them ----


T = TypeVar("T")
WAITING_MAX = 10_000
"""So many results wait for a client that reads slowly; then who makes them waits."""


class Mailbox(Generic[T]):
    """`put` in any thread, `take` in the loop that made it."""

    def __init__(self, waiting_max: int = WAITING_MAX) -> None:
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._items: deque[T] = deque()
        self._has_room = threading.Condition()
        self._waiting_max = waiting_max
        self._is_closed = False

    def put(self, item: T) -> None:
        """Add an item; waits for room, and does nothing once the box is closed."""
        with self._has_room:
            self._has_room.wait_for(lambda: self._is_closed or len(self._items) < self._waiting_max)
            if self._is_closed:
                return
            self._items.append(item)
        self._loop.call_soon_threadsafe(self._filled.set)

    async def take(self) -> list[T]:
        """All that is there, at least one item."""
        await self._filled.wait()
        with self._has_room:
            items = list(self._items)
            self._items.clear()
            self._filled.clear()
            self._has_room.notify_all()
        return items

    def close(self) -> None:
        """Nobody takes any more: nobody needs to wait to put."""
        with self._has_room:
            self._is_closed = True
            self._has_room.notify_all()
