"""Bodies of requests, and the parameter of the web socket that stands for one: objects of JSON."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from barnabas.sql.server.errors import BAD_REQUEST, ApiError
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
