"""Bodies of requests, objects of JSON, and what they ask for: a session and a query.

A parameter of the web socket stands for a body.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.session import Session
from barnabas.sql.errors import SqlError
from barnabas.sql.server.errors import BAD_REQUEST, BAD_STATEMENT, ApiError
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.tree import ParsedStatement
from barnabas.web.bodies import parse_json

_BODY_BYTES_MAX = 16 * 1024 * 1024


async def read_body(request: Request) -> dict[str, Any]:
    """The JSON object of a request; raises ApiError."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > _BODY_BYTES_MAX:
            raise ApiError(BAD_REQUEST, "The request is too large")
    return parse_object(data)


def parse_object(data: bytes | bytearray | str) -> dict[str, Any]:
    """The JSON object of a text; raises ApiError."""
    try:
        body = parse_json(data)
    except ValueError as error:
        raise ApiError(BAD_REQUEST, f"Malformed JSON in request: {error}") from error
    if not isinstance(body, dict):
        raise ApiError(BAD_REQUEST, "Malformed JSON in request: not an object")
    return body


def text_member(body: dict[str, Any], name: str) -> str:
    """The statements of a request; raises ApiError."""
    text = body.get(name)
    if not isinstance(text, str) or not text.strip():
        raise ApiError(BAD_REQUEST, f'"{name}" field must be populated')
    return text


def session_of(engine: KsqlEngine, body: dict[str, Any], properties: str) -> Session:
    """The session of a request; raises ApiError and SqlError."""
    for name in (properties, "sessionVariables"):
        if not isinstance(body.get(name) or {}, dict):
            raise ApiError(BAD_REQUEST, f'"{name}" must be an object')
    given, variables = body.get(properties), body.get("sessionVariables")
    return Session.of_request(engine.settings, given, variables)


def one_query(engine: KsqlEngine, text: str, session: Session) -> tuple[ParsedStatement, Session]:
    """The one query of a text; raises ApiError."""
    try:
        statements = list(engine.parse(text, session))
    except SqlError as error:
        shown = ApiError(BAD_STATEMENT, str(error), statement=text)
        raise shown from error
    if len(statements) != 1:
        raise ApiError(
            BAD_STATEMENT,
            f"Expected exactly one KSQL statement; found {len(statements)} instead",
            statement=text,
        )
    parsed, _ = statements[0]
    if not isinstance(parsed.statement, (tree.Query, tree.PrintTopic)):
        kind = type(parsed.statement).__name__
        raise ApiError(
            BAD_REQUEST,
            f"Statement type `{kind}' not supported for this resource",
        )
    return statements[0]
