"""The web socket /ws/query, which ksqlDB's console uses: one query, rows as messages."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocket, WebSocketDisconnect

from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.pull import PullQuery
from barnabas.sql.engine.push import End, PushQuery, PushRow
from barnabas.sql.errors import SqlError
from barnabas.sql.schema import Schema
from barnabas.sql.server.answers import Mailbox, error_body, print_answer, run_push
from barnabas.sql.server.bodies import one_query, parse_object, session_of, text_member
from barnabas.sql.server.entities import fields
from barnabas.sql.server.errors import SERVER_ERROR, ApiError, of_sql
from barnabas.sql.server.metrics import ServerMetrics
from barnabas.sql.server.printing import printer_of
from barnabas.sql.server.rows import row_text
from barnabas.sql.syntax import tree

_log = logging.getLogger(__name__)
_UNACCEPTABLE = 1003
_FAILED = 1011


async def query_socket(engine: KsqlEngine, metrics: ServerMetrics, socket: WebSocket) -> None:
    """Answer the query in the parameter `request`, as JSON."""
    await socket.accept()
    try:
        await _answer(engine, metrics, socket)
        await socket.close()
    except ApiError as error:
        await _close(socket, _UNACCEPTABLE, error.message)
    except SqlError as error:
        shown = of_sql(error)
        code = _FAILED if shown.code == SERVER_ERROR else _UNACCEPTABLE
        await _close(socket, code, shown.message)
    except ClusterError as error:
        await _close(socket, _FAILED, str(error))
    except WebSocketDisconnect:
        return
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  told to the client
        _log.exception("/ws/query")
        await _close(socket, _FAILED, f"{type(error).__name__}: {error}")


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    # A close frame holds 123 bytes of reason; the rest goes before it.
    await socket.send_text(json.dumps({"error": reason}))
    await socket.close(code, reason.encode()[:120].decode("utf-8", "ignore"))


async def _answer(engine: KsqlEngine, metrics: ServerMetrics, socket: WebSocket) -> None:
    body = parse_object(socket.query_params.get("request", ""))
    session = session_of(engine, body, "streamsProperties")
    parsed, own = await run_in_threadpool(one_query, engine, text_member(body, "ksql"), session)
    if isinstance(parsed.statement, tree.PrintTopic):
        await _print(engine, socket, parsed.statement)
        return
    assert isinstance(parsed.statement, tree.Query)
    is_pull = parsed.statement.emit is None
    with metrics.pull() if is_pull else metrics.push():
        query = await run_in_threadpool(engine.asking.query, parsed, own)
        rows: list[str] = []
        if isinstance(query, PullQuery):
            text = row_text(query.schema.columns)
            rows = await run_in_threadpool(
                lambda: list(map(text, query.rows(engine.view(query.source))))
            )
    if isinstance(query, PullQuery):
        await socket.send_text(_header(query.schema))
        for row in rows:
            await socket.send_text(f'{{"row":{{"columns":{row}}}}}')
        return
    await _push(engine, query, socket, is_pull=is_pull)


async def _print(engine: KsqlEngine, socket: WebSocket, statement: tree.PrintTopic) -> None:
    printer = await run_in_threadpool(printer_of, engine, statement)
    leaving = asyncio.create_task(_until_left(socket, printer.stop))
    try:
        async with aclosing(print_answer(engine, printer)) as lines:
            async for line in lines:
                await socket.send_text(line)
    finally:
        leaving.cancel()


def _header(schema: Schema) -> str:
    return json.dumps(fields(schema.columns))


async def _push(engine: KsqlEngine, query: PushQuery, socket: WebSocket, *, is_pull: bool) -> None:
    mailbox: Mailbox[PushRow | End] = Mailbox()
    await socket.send_text(_header(query.schema))
    text = row_text(query.schema.columns)
    running = asyncio.create_task(run_push(engine, query, mailbox, is_pull=is_pull))
    leaving = asyncio.create_task(_until_left(socket, query.stop))
    try:
        while True:
            for item in await mailbox.take():
                if isinstance(item, End):
                    await _end(socket, item)
                    return
                tombstone = ',"tombstone":true' if item.is_tombstone else ""
                await socket.send_text(f'{{"row":{{"columns":{text(item.values)}{tombstone}}}}}')
    finally:
        leaving.cancel()
        mailbox.close()
        await asyncio.shield(asyncio.to_thread(query.stop))
        await asyncio.shield(running)


async def _end(socket: WebSocket, end: End) -> None:
    message: dict[str, Any] = {"finalMessage": end.message}
    if end.error is not None:
        message = {"errorMessage": error_body(end.error)}
    await socket.send_text(json.dumps(message))


async def _until_left(socket: WebSocket, stop: Callable[[], None]) -> None:
    """Stop what is shown once the client is gone."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            await asyncio.to_thread(stop)
            return
