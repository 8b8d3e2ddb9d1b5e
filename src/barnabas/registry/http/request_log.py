"""The log of requests: a line each, in the format of Apache's servers, as Confluent writes it."""

import logging
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_log = logging.getLogger(__name__)


def is_on() -> bool:
    """Return whether lines are wanted at all."""
    return _log.isEnabledFor(logging.INFO)


def log_request(scope: Mapping[str, Any], status: int, body_bytes: int, duration_s: float) -> None:
    """Write the line of a request that has been answered."""
    target: bytes = scope["raw_path"]
    if scope["query_string"]:
        target += b"?" + scope["query_string"]
    referer = user_agent = "-"
    for name, value in scope["headers"]:
        if name == b"user-agent":
            user_agent = printable(value)
        elif name == b"referer":
            referer = printable(value)
    client = scope.get("client")
    _log.info(
        '%s - - [%s] "%s %s HTTP/%s" %d %d "%s" "%s" %d',
        client[0] if client else "-",
        _stamp(int(time.time())),
        scope["method"],
        printable(target),
        scope["http_version"],
        status,
        body_bytes,
        referer,
        user_agent,
        round(duration_s * 1000),
    )


@lru_cache(maxsize=2)
def _stamp(now_s: int) -> str:
    return time.strftime("%d/%b/%Y:%H:%M:%S %z", time.localtime(now_s))


def printable(data: bytes) -> str:
    """Bytes in one line; quotes and what is not ASCII as escapes."""
    text = data.decode("ascii", "backslashreplace").replace('"', '\\"')
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)
