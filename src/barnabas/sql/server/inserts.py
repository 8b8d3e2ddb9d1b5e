"""POST /inserts-stream: rows, a line each, and an acknowledgement for every one."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.inserting import InsertError, row_of_json
from barnabas.sql.server.errors import (
    BAD_REQUEST,
    BAD_STATEMENT,
    DELIMITED,
    JSON,
    SERVER_ERROR,
    ApiError,
)
from barnabas.web.bodies import parse_json

_LINE_BYTES_MAX = 4 * 1024 * 1024
_ANSWERS_MAX = 1_000
_log = logging.getLogger(__name__)


async def inserts_stream(engine: KsqlEngine, request: Request) -> Response:
    """Answer a stream of inserts: the first line names the stream, each later one is a row."""
    lines = _lines(request)
    first = await anext(lines, None)
    source = target(engine, first or b"")
    is_delimited = JSON not in request.headers.get(
        "accept", ""
    ) or DELIMITED in request.headers.get("accept", "")
    media_type = DELIMITED if is_delimited else JSON
    answers = _answers(engine, source, lines, is_delimited=is_delimited)
    return DuplexResponse(answers, media_type=media_type)


class DuplexResponse(StreamingResponse):
    """A response that goes out while the request still comes in.

    Starlette's own would watch for the client's leaving, and so take parts of the request. Here the
    reader of the request sees that the client left.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.stream_response(send)


def target(engine: KsqlEngine, line: bytes) -> DataSource:
    """The source that rows go to; raises ApiError."""
    try:
        arguments = parse_json(line)
        name = str(arguments["target"])
    except (ValueError, KeyError, TypeError) as error:
        raise ApiError(BAD_REQUEST, f"Malformed arguments of an inserts stream: {error}") from error
    is_quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '`"'
    name = name[1:-1] if is_quoted else name.upper()
    source = engine.metastore.source(name)
    if source is None:
        raise ApiError(
            BAD_STATEMENT,
            f"Cannot insert values into an unknown stream/table: `{name}`",
            statement=name,
        )
    if source.is_windowed:
        raise ApiError(BAD_REQUEST, "Cannot insert values into windowed stream/table!")
    if source.is_source:
        kind = source.kind.value.lower()
        raise ApiError(BAD_REQUEST, f"Cannot insert values into read-only {kind}: {name}")
    if source.schema.headers:
        raise ApiError(BAD_REQUEST, f"Cannot insert into {name} because it has header columns")
    return source


async def _answers(
    engine: KsqlEngine,
    source: DataSource,
    lines: AsyncIterator[bytes | None],
    *,
    is_delimited: bool,
) -> AsyncIterator[str]:
    """Acknowledgements, written whenever all that was received so far is in the topic."""
    yield "" if is_delimited else "["
    # Rows are read also while answers cannot be sent: a client may send all before it reads.
    progress = _Progress()
    writing = asyncio.create_task(_write_all(engine, source, lines, progress))
    is_first = True
    try:
        async for answers in progress.answers():
            texts = list(map(json.dumps, answers))
            if is_delimited:
                yield "".join(f"{text}\n" for text in texts)
            else:
                yield ("" if is_first else ",") + ",".join(texts)
            is_first = False
        if not is_delimited:
            yield "]"
    finally:
        writing.cancel()


class _Progress:
    """The number of rows written, and why no more are. Acknowledgements that wait for a client to
    read them take no room: they are made of this."""

    def __init__(self) -> None:
        self._done = 0
        self._failure: dict[str, Any] | None = None
        self._is_over = False
        self._has_news = asyncio.Event()

    def wrote(self, count: int) -> None:
        """So many more rows are written."""
        self._done += count
        self._has_news.set()

    def fail(self, body: dict[str, Any], *, is_of_row: bool) -> None:
        """No more rows are written; `is_of_row`: because of the next one."""
        place = {"seq": self._done} if is_of_row else {}
        self._failure = {**body, "status": "error", **place}

    def end(self) -> None:
        self._is_over = True
        self._has_news.set()

    async def answers(self) -> AsyncIterator[list[dict[str, Any]]]:
        """All acknowledgements, some at a time."""
        told = 0
        while not (self._is_over and told == self._done):
            await self._has_news.wait()
            self._has_news.clear()
            while told < self._done:
                first, told = told, min(self._done, told + _ANSWERS_MAX)
                yield [{"status": "ok", "seq": number} for number in range(first, told)]
        if self._failure is not None:
            yield [self._failure]


async def _write_all(
    engine: KsqlEngine,
    source: DataSource,
    lines: AsyncIterator[bytes | None],
    progress: _Progress,
) -> None:
    """Write the rows, and note what is to be answered."""
    try:
        await _write_batches(engine, source, lines, progress)
    except ClientDisconnect:
        pass
    except ApiError as error:
        progress.fail(error.body(), is_of_row=False)
    except Exception as error:  # noqa: BLE001  the answer has begun: it must tell of it
        _log.exception("an inserts stream ends")
        message = str(error) or type(error).__name__
        progress.fail(ApiError(SERVER_ERROR, message).body(), is_of_row=False)
    finally:
        progress.end()


async def _write_batches(
    engine: KsqlEngine,
    source: DataSource,
    lines: AsyncIterator[bytes | None],
    progress: _Progress,
) -> None:
    batch: list[bytes] = []
    async for line in lines:
        if line:
            batch.append(line)
            continue
        if not batch:
            continue
        done, error = await run_in_threadpool(_write, engine, source, batch)
        batch = []
        progress.wrote(done)
        if error is not None:
            progress.fail(error, is_of_row=True)
            return


def _write(
    engine: KsqlEngine, source: DataSource, batch: list[bytes]
) -> tuple[int, dict[str, Any] | None]:
    """Return the number of rows written, and the reason why the next one is not."""
    done, failure = 0, None
    for line in batch:
        try:
            row = parse_json(line)
            if not isinstance(row, dict):
                raise TypeError("no object")
        except (ValueError, TypeError):
            failure = ApiError(BAD_REQUEST, "Invalid JSON in inserts stream")
            break
        try:
            engine.inserting.write(source, row_of_json(source, row))
        except InsertError as error:
            failure = ApiError(BAD_REQUEST, str(error))
            break
        except ClusterError as error:
            failure = ApiError(SERVER_ERROR, str(error))
            break
        done += 1
    try:
        engine.cluster.flush()
    except ClusterError as error:
        return 0, ApiError(SERVER_ERROR, str(error)).body()
    return done, None if failure is None else failure.body()


async def _lines(request: Request) -> AsyncIterator[bytes | None]:
    """The lines of a body; None after each part of it that came in one piece."""
    rest = b""
    async for chunk in request.stream():
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LINE_BYTES_MAX:
            raise ApiError(BAD_REQUEST, "A line of the inserts stream is too long")
        for line in whole:
            if line.strip():
                yield line
        yield None
    if rest.strip():
        yield rest
        yield None
