"""The log of requests: a line each, in the format of Apache's servers, as Confluent writes it."""

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

_log = logging.getLogger(__name__)


def is_on() -> bool:
    """Whether lines are wanted at all."""
    return _log.isEnabledFor(logging.INFO)


def log_request(scope: Mapping[str, Any], status: int, body_bytes: int, duration_s: float) -> None:
    """Write the line of a request that has been answered."""
    client = scope.get("client")
    target = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    headers = scope["headers"]
    _log.info(
        '%s - - [%s] "%s %s HTTP/%s" %d %d "%s" "%s" %d',
        client[0] if client else "-",
        time.strftime("%d/%b/%Y:%H:%M:%S %z"),
        scope["method"],
        printable(target),
        scope["http_version"],
        status,
        body_bytes,
        _header(headers, b"referer"),
        _header(headers, b"user-agent"),
        round(duration_s * 1000),
    )


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str:
    for found, value in headers:
        if found == name:
            return printable(value)
    return "-"


def printable(data: bytes) -> str:
    """Bytes in one line; quotes and what is not ASCII as escapes."""
    text = data.decode("ascii", "backslashreplace").replace('"', '\\"')
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
