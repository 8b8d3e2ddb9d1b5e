"""Answers: a status and the bytes of a body, nearly always JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from barnabas.registry.errors import RegistryError


@dataclass(slots=True)
class Answer:
    """An answer to a client. With `content_type` None it has the type that the client accepts."""

    body: bytes
    status: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()
    content_type: bytes | None = None


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:  # half a surrogate pair: JSON can say it, UTF-8 cannot
        return json.dumps(value, separators=(",", ":")).encode()


def json_answer(value: Any) -> Answer:
    """A value as an answer."""
    return Answer(json_bytes(value))


def refusal(fault: RegistryError) -> Answer:
    """An error as Confluent writes it."""
    return Answer(json_bytes({"error_code": fault.code, "message": fault.message}), fault.status)


def plain_fault(status: HTTPStatus, detail: str = "") -> RegistryError:
    """An error of HTTP itself, whose code is the status."""
    message = f"HTTP {status.value} {status.phrase}"
    return RegistryError(status.value, f"{message}: {detail}" if detail else message)
