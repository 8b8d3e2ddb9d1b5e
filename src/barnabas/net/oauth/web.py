"""Web addresses, asked with urllib; `fetch.fetch` says what is asked and what may go wrong."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Final

from barnabas.base.config.errors import ConfigError
from barnabas.net.oauth.fetch import SIZE_BYTES_MAX, FetchError, FetchSettings

ERROR_TEXT_SIZE_MAX: Final = 300


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


def ask(
    url: str,
    settings: FetchSettings,
    body: bytes | None,
    headers: Mapping[str, str],
) -> bytes:
    """Ask a server; POST where there is a body. Raises FetchError."""
    request = urllib.request.Request(  # `check_url` has seen it
        url, data=body, headers={"Accept": "application/json", **headers}
    )
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if url.lower().startswith("https:"):
        try:
            handlers.append(urllib.request.HTTPSHandler(context=settings.tls()))
        except (ConfigError, OSError) as error:  # its files have gone, or are half written
            raise FetchError(f"{url} cannot be asked: {error}") from error
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
