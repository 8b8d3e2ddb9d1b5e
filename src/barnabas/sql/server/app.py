"""ksqlDB's REST interface, as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute

from barnabas.sql.engine import config
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.command_log import CommandLogError
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.pull import PullQuery
from barnabas.sql.engine.session import Session
from barnabas.sql.errors import SqlError
from barnabas.sql.server.answers import print_answer, pull_answer, push_answer
from barnabas.sql.server.bodies import one_query, read_body, session_of, text_member
from barnabas.sql.server.connectors.client import ConnectClients
from barnabas.sql.server.describing import Describer
from barnabas.sql.server.entities import command_status, status
from barnabas.sql.server.errors import (
    BAD_REQUEST,
    DELIMITED,
    MEDIA_TYPE,
    NOT_FOUND,
    SERVER_ERROR,
    TIMED_OUT,
    ApiError,
    of_sql,
)
from barnabas.sql.server.inserts import inserts_stream
from barnabas.sql.server.metrics import ServerMetrics
from barnabas.sql.server.peers import INTERNAL, Peers
from barnabas.sql.server.printing import printer_of
from barnabas.sql.server.rows import form_for
from barnabas.sql.server.statements import Statements
from barnabas.sql.server.web_socket import query_socket
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.tree import ParsedStatement
from barnabas.web.crowd import Crowd
from barnabas.web.watch import Watch

VERSION = "7.9.0"
"""The version of ksqlDB whose interface this is: clients look at it."""
_log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


class KsqlApi:
    """The endpoints over an engine. `peers`: the servers of its service; None: it is alone."""

    def __init__(
        self,
        engine: KsqlEngine,
        peers: Peers | None = None,
        metrics: ServerMetrics | None = None,
        connect: ConnectClients | None = None,
    ) -> None:
        self.engine = engine
        self.metrics = ServerMetrics(engine) if metrics is None else metrics
        self.peers = peers or Peers(engine, "http://localhost:8088")
        self._statements = Statements(
            engine, Describer(engine, self.peers.own), self.peers, connect
        )

    def watch(self, crowd: Crowd | None = None) -> Watch:
        """The routes that show the server's metrics and health."""
        return Watch(lambda: run_in_threadpool(self.metrics.text), self._not_ready, crowd)

    async def _not_ready(self) -> str | None:
        return "the command log cannot be followed" if self.engine.degraded else None

    def app(self) -> Starlette:
        """The application."""
        routes = [
            self._route("/", self.root, "GET"),
            self._route("/ksql", self.ksql, "POST"),
            self._route("/ksql/terminate", self.terminate, "POST"),
            self._route("/query", self.query, "POST"),
            self._route("/query-stream", self.query_stream, "POST"),
            self._route("/inserts-stream", self.inserts_stream, "POST"),
            self._route("/close-query", self.close_query, "POST"),
            self._route("/info", self.info, "GET"),
            self._route("/v1/metadata", self.metadata, "GET"),
            self._route("/v1/metadata/id", self.metadata_id, "GET"),
            self._route("/healthcheck", self.healthcheck, "GET"),
            self._route("/status", self.statuses, "GET"),
            self._route("/status/{command_id:path}", self.command_status, "GET"),
            self._route("/clusterStatus", self.cluster_status, "GET"),
            self._route("/heartbeat", self.heartbeat, "POST"),
            self._route("/lag", self.lag, "POST"),
            self._route("/is_valid_property/{name}", self.is_valid_property, "GET"),
            WebSocketRoute("/ws/query", self.web_socket),
        ]
        return Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})

    def _route(self, path: str, handler: Handler, method: str) -> Route:
        async def guarded(request: Request) -> Response:
            try:
                return await handler(request)
            except ApiError as error:
                return error.response()
            except SqlError as error:
                return of_sql(error).response()
            except (ClusterError, CommandLogError) as error:
                return ApiError(SERVER_ERROR, str(error)).response()
            except ClientDisconnect:
                return ApiError(TIMED_OUT, "The request did not arrive in time").response()
            # SystemExit, as functions of users may raise it, would end the server.
            except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001  told to the client
                _log.exception("%s %s", request.method, request.url.path)
                shown = f"{type(error).__name__}: {error}"
                return ApiError(SERVER_ERROR, shown).response()

        return Route(path, guarded, methods=[method])

    # --- statements --------------------------------------------------------------------------

    async def ksql(self, request: Request) -> Response:
        body = await read_body(request)
        text = text_member(body, "ksql")
        await self._wait_for_command(body.get("commandSequenceNumber"))
        session = session_of(self.engine, body, "streamsProperties")
        given = body.get("requestProperties")
        is_internal = isinstance(given, dict) and given.get(INTERNAL) is True
        run = partial(self._statements.run, is_internal=is_internal)
        entities = await run_in_threadpool(run, text, session, headers=request.headers.items())
        return _json(entities)

    async def _wait_for_command(self, sequence: Any) -> None:
        """Until the command with that number is done: ours are done when they are answered."""
        if sequence is None:
            return
        if not isinstance(sequence, int):
            raise ApiError(BAD_REQUEST, '"commandSequenceNumber" must be a number')
        if sequence >= 0:
            await run_in_threadpool(self.engine.read_log)

    async def terminate(self, request: Request) -> Response:
        body = await read_body(request)
        patterns = body.get("deleteTopicList") or []
        if not isinstance(patterns, list) or not all(map(_is_pattern, patterns)):
            raise ApiError(BAD_REQUEST, '"deleteTopicList" must be a list of regular expressions')
        executed = await run_in_threadpool(self.engine.terminate_cluster, patterns)
        return _json([command_status("TERMINATE CLUSTER;", executed)])

    # --- queries -----------------------------------------------------------------------------

    async def query(self, request: Request) -> Response:
        body = await read_body(request)
        session = session_of(self.engine, body, "streamsProperties")
        return await self._answer(request, text_member(body, "ksql"), session, is_old=True)

    async def query_stream(self, request: Request) -> Response:
        body = await read_body(request)
        session = session_of(self.engine, body, "properties")
        return await self._answer(request, text_member(body, "sql"), session, is_old=False)

    async def _answer(
        self, request: Request, text: str, session: Session, *, is_old: bool
    ) -> Response:
        parsed, own = await run_in_threadpool(one_query, self.engine, text, session)
        accept = request.headers.get("accept", "")
        if isinstance(parsed.statement, tree.PrintTopic):
            printer = printer_of(self.engine, parsed.statement)
            media_type = MEDIA_TYPE if is_old else DELIMITED
            return _stream(print_answer(self.engine, printer), media_type)
        assert isinstance(parsed.statement, tree.Query)
        is_pull = parsed.statement.emit is None
        with self.metrics.pull() if is_pull else self.metrics.push():
            answer = await run_in_threadpool(self._query, parsed, own)
            chunks: list[str] = []
            if isinstance(answer, PullQuery):
                form = form_for(accept, is_push=False, is_old_endpoint=is_old)
                chunks = await pull_answer(self.engine, answer, form)
        if isinstance(answer, PullQuery):
            if len(chunks) == 1:
                return Response(chunks[0], media_type=form.media_type)
            return _stream(_all(chunks), form.media_type)
        form = form_for(accept, is_push=True, is_old_endpoint=is_old)
        return _stream(push_answer(self.engine, answer, form, is_pull=is_pull), form.media_type)

    def _query(self, parsed: ParsedStatement, session: Session) -> Any:
        try:
            return self.engine.asking.query(parsed, session)
        except SqlError as error:
            raise of_sql(error, parsed.text) from error

    async def close_query(self, request: Request) -> Response:
        body = await read_body(request)
        query = self.engine.asking.push_query(str(body.get("queryId")))
        if query is None:
            raise ApiError(BAD_REQUEST, f"No query with id {body.get('queryId')}")
        await run_in_threadpool(query.stop)
        return Response(status_code=200)

    async def inserts_stream(self, request: Request) -> Response:
        return await inserts_stream(self.engine, request)

    async def web_socket(self, socket: Any) -> None:
        await query_socket(self.engine, self.metrics, socket)

    # --- the server --------------------------------------------------------------------------

    async def root(self, request: Request) -> Response:
        return RedirectResponse("/info", 307)

    async def info(self, request: Request) -> Response:
        info = {
            "version": VERSION,
            "kafkaClusterId": self.engine.cluster.cluster_id,
            "ksqlServiceId": self.engine.settings[config.SERVICE_ID],
            "serverStatus": "ERROR" if self.engine.degraded else "RUNNING",
        }
        return _json({"KsqlServerInfo": info})

    async def metadata(self, request: Request) -> Response:
        return _json({"version": VERSION, "clusterId": self._cluster_scope()})

    async def metadata_id(self, request: Request) -> Response:
        return _json(self._cluster_scope())

    def _cluster_scope(self) -> dict[str, Any]:
        clusters = {
            "kafka-cluster": self.engine.cluster.cluster_id,
            "ksql-cluster": self.engine.settings[config.SERVICE_ID],
        }
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    async def healthcheck(self, request: Request) -> Response:
        try:
            await run_in_threadpool(self.engine.cluster.topics)
            is_kafka_healthy = True
        except ClusterError:
            is_kafka_healthy = False
        is_log_healthy = not self.engine.degraded
        is_healthy = is_kafka_healthy and is_log_healthy
        body = {
            "isHealthy": is_healthy,
            "details": {
                "metastore": {"isHealthy": True},
                "kafka": {"isHealthy": is_kafka_healthy},
                "commandRunner": {"isHealthy": is_log_healthy},
            },
            "serverState": "READY",
        }
        return _json(body, 200 if is_healthy else 503)

    async def statuses(self, request: Request) -> Response:
        return _json({"commandStatuses": dict.fromkeys(self.engine.statuses, "SUCCESS")})

    async def command_status(self, request: Request) -> Response:
        executed = self.engine.statuses.get(request.path_params["command_id"])
        if executed is None:
            raise ApiError(NOT_FOUND, "Command not found")
        return _json(status(executed))

    async def cluster_status(self, request: Request) -> Response:
        status = await run_in_threadpool(self.peers.status)
        return _json({"clusterStatus": status})

    async def heartbeat(self, request: Request) -> Response:
        return await self._told(request, self.peers.heartbeat)

    async def lag(self, request: Request) -> Response:
        return await self._told(request, self.peers.lag)

    async def _told(self, request: Request, take: Callable[[dict[str, Any]], None]) -> Response:
        try:
            take(await read_body(request))
        except (ValueError, TypeError) as error:
            raise ApiError(BAD_REQUEST, f"Malformed message of a server: {error}") from error
        return _json({"isOk": True})

    async def is_valid_property(self, request: Request) -> Response:
        try:
            config.check_may_set(request.path_params["name"], self.engine.settings)
        except config.PropertyError as error:
            raise ApiError(BAD_REQUEST, str(error)) from error
        return _json(True)


def _is_pattern(text: Any) -> bool:
    try:
        re.compile(text)
    except (re.error, TypeError):
        return False
    return True


def _json(body: Any, status_code: int = 200) -> Response:
    return Response(json.dumps(body), status_code, media_type=MEDIA_TYPE)


def _stream(parts: AsyncIterator[str], media_type: str) -> StreamingResponse:
    return StreamingResponse(parts, media_type=media_type)


async def _all(chunks: list[str]) -> AsyncIterator[str]:
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(0)


async def _not_found(request: Request, error: Exception) -> Response:
    return ApiError(NOT_FOUND, f"Path not found: {request.url.path}").response()


async def _not_allowed(request: Request, error: Exception) -> Response:
    return ApiError(40500, f"Method {request.method} is not allowed here").response()
