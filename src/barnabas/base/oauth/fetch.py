"""Files and web addresses that tokens and keys come from: small texts, within a time and a size.

These functions block: call them in a thread. A server's redirect is not followed, so that
what the configuration names is what is asked.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from barnabas.base.tls.contexts import client_context

SIZE_BYTES_MAX: Final = 1 << 20
"""The most that is read of a file or an answer."""
TIMEOUT_MS_DEFAULT: Final = 10_000


class FetchError(Exception):
    """The request failed. The text names the URL and no secret."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final
        """True if a retry cannot help."""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """Settings of requests."""

    timeout_ms: int = TIMEOUT_MS_DEFAULT
    """The time limit for a connection, and for each part of an answer; a request takes at most
    twice as long.
    """
    tls: Callable[[], ssl.SSLContext] = client_context


def is_file(url: str) -> bool:
    """Return whether a URL is of a file."""
    return urlsplit(url).scheme.lower() == "file"


def file_of(url: str) -> Path:
    """The file that a URL names."""
    return Path(unquote(urlsplit(url).path))


def read_file(path: Path) -> bytes:
    """A small file. Raises FetchError."""
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_BYTES_MAX + 1)
    except OSError as error:
        raise FetchError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > SIZE_BYTES_MAX:
        raise FetchError(f"{path} is larger than {SIZE_BYTES_MAX} bytes", is_final=True)
    return data


def fetch(
    url: str,
    settings: FetchSettings,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Ask a server; POST where there is a body. Raises FetchError."""
    from barnabas.base.oauth.web import ask  # large; most nodes never need it

    return ask(url, settings, body, headers or {})
