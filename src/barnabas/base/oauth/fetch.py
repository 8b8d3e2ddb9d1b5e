"""Files that tokens and keys come from, and how web addresses are asked for them (`web.fetch`).

Files are small. These functions block: call them in a thread.
"""

import ssl
from collections.abc import Callable
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
