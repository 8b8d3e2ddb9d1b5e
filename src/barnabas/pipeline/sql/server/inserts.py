"""POST /inserts-stream: rows, a line each, and an acknowledgement for every one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from barnabas.pipeline.sql.analysis.metastore import DataSource
from barnabas.pipeline.sql.engine.cluster import ClusterError
from barnabas.pipeline.sql.engine.engine import KsqlEngine
from barnabas.pipeline.sql.engine.inserting import InsertError, row_of_json
from barnabas.pipeline.sql.server.errors import (
    BAD_REQUEST,
    BAD_STATEMENT,
    DELIMITED,
    JSON,
    SERVER_ERROR,
    ApiError,
)

_LINE_BYTES_MAX = 4 * 1024 * 1024


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
    return StreamingResponse(answers, media_type=media_type)


def target(engine: KsqlEngine, line: bytes) -> DataSource:
    """The source that rows go to; raises ApiError."""
    try:
        arguments = json.loads(line)
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
    sequence, batch, is_first = 0, list[bytes](), True
    async for line in lines:
        if line:
            batch.append(line)
            continue
        if not batch:
            continue
        done, error = await run_in_threadpool(_write, engine, source, batch)
        answers: list[dict[str, Any]] = [
            {"status": "ok", "seq": sequence + number} for number in range(done)
        ]
        sequence += done
        batch = []
        if error is not None:
            answers.append({**error, "status": "error", "seq": sequence})
        for answer in answers:
            text = json.dumps(answer)
            yield f"{text}\n" if is_delimited else text if is_first else f",{text}"
            is_first = False
        if error is not None:
            break
    if not is_delimited:
        yield "]"


def _write(
    engine: KsqlEngine, source: DataSource, batch: list[bytes]
) -> tuple[int, dict[str, Any] | None]:
    """How many rows are written, and why the next one is not."""
    done, failure = 0, None
    for line in batch:
        try:
            row = json.loads(line)
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
