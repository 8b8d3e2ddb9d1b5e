"""Web addresses that tokens and keys come from, asked with urllib within a time and a size.

A server's redirect is not followed, so that what the configuration names is what is asked.
"""

import contextlib
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection
from ssl import SSLContext
from typing import IO, Any, Final, Self

from barnabas.base.errors import ConfigError
from barnabas.base.oauth.fetch import SIZE_BYTES_MAX, FetchError, FetchSettings

ERROR_TEXT_SIZE_MAX: Final = 300


class _Deadline:
    """Cuts a connection when it is over: a socket's time-out restarts with each byte."""

    def __init__(self, duration_s: float) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_over = False
        self._timer = threading.Timer(duration_s, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def watch(self, connected: socket.socket) -> None:
        """Cut this one, even if TLS wraps it later."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = connected.dup()
        if self.is_over:
            self._end()

    def _end(self) -> None:
        self.is_over = True
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):  # the peer was faster
                    self._socket.shutdown(socket.SHUT_RDWR)


class _Plain(HTTPConnection):
    deadline: _Deadline

    def connect(self) -> None:
        super().connect()
        self.deadline.watch(self.sock)


class _Secure(HTTPSConnection, _Plain):
    """Connects as `_Plain` does, and begins TLS then."""


def _until(deadline: _Deadline, kind: type[_Plain], host: str, **options: Any) -> _Plain:
    connection = kind(host, **options)
    connection.deadline = deadline
    return connection


class _Http(urllib.request.HTTPHandler):
    def __init__(self, deadline: _Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_until, self._deadline, _Plain), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: _Deadline, context: SSLContext) -> None:
        super().__init__()
        self._deadline = deadline
        self._tls = context

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_until, self._deadline, _Secure, context=self._tls), req)


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
    """Ask a server; POST where there is a body. Blocks: call it in a thread. Raises FetchError."""
    request = urllib.request.Request(  # `check_url` has seen it
        url, data=body, headers={"Accept": "application/json", **(headers or {})}
    )
    timeout_s = settings.timeout_ms / 1000
    with _Deadline(2 * timeout_s) as deadline:
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects(), _Http(deadline)]
        if url.lower().startswith("https:"):
            try:
                handlers.append(_Https(deadline, settings.tls()))
            except (ConfigError, OSError) as error:  # its files have gone, or are half written
                raise FetchError(f"{url} cannot be asked: {error}") from error
        try:
            data = _answer(url, urllib.request.build_opener(*handlers), request, timeout_s)
        except FetchError:
            if not deadline.is_over:
                raise
        if deadline.is_over:
            raise FetchError(f"{url} takes more than {2 * timeout_s:g} s to answer")
    if len(data) > SIZE_BYTES_MAX:
        raise FetchError(f"{url} answers more than {SIZE_BYTES_MAX} bytes", is_final=True)
    return data


def _answer(
    url: str,
    opener: urllib.request.OpenerDirector,
    request: urllib.request.Request,
    timeout_s: float,
) -> bytes:
    """The body of an answer, or its beginning. Raises FetchError."""
    try:
        with opener.open(request, timeout=timeout_s) as response:
            data: bytes = response.read(SIZE_BYTES_MAX + 1)
            return data
    except urllib.error.HTTPError as error:
        shown = b""
        with error, contextlib.suppress(OSError, HTTPException):  # the code says enough
            shown = error.read(ERROR_TEXT_SIZE_MAX)
        # Errors of RFC 6749 hold no secret, and say what is wrong.
        reason = " ".join(shown.decode("utf-8", "replace").split())
        is_final = error.code < 500 and error.code not in _WORTH_ANOTHER_TRY
        raise FetchError(f"{url} answers {error.code}: {reason}", is_final=is_final) from None
    except (OSError, HTTPException, ValueError) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise FetchError(f"{url} cannot be asked: {reason}") from error


_WORTH_ANOTHER_TRY: Final = frozenset({408, 421, 425, 429})
