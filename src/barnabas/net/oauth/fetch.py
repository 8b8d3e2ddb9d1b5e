"""Files and web addresses that OAUTHBEARER reads: small texts, within a time and a size.

These functions block: call them in a thread. A server's redirect is not followed, so that
what the configuration names is what is asked.
"""

import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote, urlsplit

SIZE_BYTES_MAX: Final = 1 << 20
"""The most that is read of a file or an answer."""
TIMEOUT_MS_DEFAULT: Final = 10_000
ERROR_TEXT_SIZE_MAX: Final = 300


class FetchError(Exception):
    """What was asked for cannot be had. The text names the URL and no secret."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final
        """Whether asking again is no use."""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How to ask."""

    timeout_ms: int = TIMEOUT_MS_DEFAULT
    """How long to wait for a connection, and for each part of an answer."""
    tls: Callable[[], ssl.SSLContext] = ssl.create_default_context


def is_file(url: str) -> bool:
    """Whether a URL is of a file."""
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


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        """None: the redirect is the error it would be to a client that knows none."""


def fetch(
    url: str,
    settings: FetchSettings,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Ask a server; POST where there is a body. Raises FetchError."""
    request = urllib.request.Request(  # `check_url` has seen it
        url, data=body, headers={"Accept": "application/json", **(headers or {})}
    )
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if url.lower().startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=settings.tls()))
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(request, timeout=settings.timeout_ms / 1000) as response:
            data: bytes = response.read(SIZE_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        with error:
            shown = error.read(ERROR_TEXT_SIZE_MAX).decode("utf-8", "replace")
        # Errors of RFC 6749 hold no secret, and say what is wrong.
        reason = " ".join(shown.split())
        is_final = error.code < 500 and error.code not in _WORTH_ANOTHER_TRY
        raise FetchError(f"{url} answers {error.code}: {reason}", is_final=is_final) from None
    except (OSError, HTTPException, ValueError) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise FetchError(f"{url} cannot be asked: {reason}") from error
    if len(data) > SIZE_BYTES_MAX:
        raise FetchError(f"{url} answers more than {SIZE_BYTES_MAX} bytes", is_final=True)
    return data


_WORTH_ANOTHER_TRY: Final = frozenset({408, 421, 425, 429})
