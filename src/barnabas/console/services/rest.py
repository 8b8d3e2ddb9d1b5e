"""How the console asks the services beside the cluster: registry, Connect worker, SQL server.

It asks at the configured addresses only: names become one part of a path each, and a redirection is
an error.
"""

from __future__ import annotations

import codecs
import copy
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from barnabas.base.rest import ask, basic_login, split_user
from barnabas.console.services.asking import AbsentError, AwayError, RefusedError
from barnabas.schemas.errors import RegistryError

TIMEOUT_S: Final = 30.0
REASON_CHARS_MAX: Final = 4_000
TOGETHER_MAX: Final = 8
_WATCH_S: Final = 0.2
_MULTIPLE_CHOICES, _BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 300, 400, 401, 403, 404
_NOT_SENT: Final = (ConnectionRefusedError, socket.gaierror)
_AWAY: Final = (502, 503, 504)

K = TypeVar("K")
T = TypeVar("T")


def path(*parts: str, **query: Any) -> str:
    """A path of names, each percent-encoded, and a query without what is None.

    Raises RefusedError for `.` and `..`, which servers take for directories.
    """
    for part in parts:
        if part in (".", "..", ""):
            raise RefusedError(f"{part!r} is not a name that can be asked for")
    given = urlencode({name: value for name, value in query.items() if value is not None})
    text = "".join(f"/{quote(part, safe='')}" for part in parts)
    return f"{text}?{given}" if given else text


class Rest:
    """A service at one of several addresses. Methods block, and raise AwayError and RefusedError.

    `name` is what people call it. An address may have `name:password@`; `user_info` is that of
    addresses without. `authorization` gives the header of each request in their place.
    """

    def __init__(
        self,
        name: str,
        urls: str | Sequence[str],
        *,
        user_info: str | None = None,
        authorization: Callable[[], str] | None = None,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.name = name
        parts = urls.split(",") if isinstance(urls, str) else urls
        self._bases = [split_user(url.strip().rstrip("/")) for url in parts if url.strip()]
        self._user_info, self._authorization = user_info, authorization
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._tls, self._timeout_s = tls, timeout_s
        self._pool = ThreadPoolExecutor(TOGETHER_MAX, "console-rest")

    @property
    def url(self) -> str:
        """The first address, without a login."""
        return self.urls[0]

    @property
    def urls(self) -> list[str]:
        """The addresses, without logins."""
        return [base for base, _ in self._bases]

    def only(self, places: Sequence[int]) -> Rest:
        """The same service at some of its addresses."""
        found = copy.copy(self)
        found._bases = [self._bases[place] for place in places]
        return found

    def ask(self, method: str, where: str, body: Any = None) -> Any:
        """The JSON of an answer; None for one without. `where` is what `path` returns."""
        for number, (base, user) in enumerate(self._bases):
            headers = {**self._headers, **self._login(user)}
            if body is not None:
                headers["Content-Type"] = "application/json"
            try:
                status, data = ask(
                    base + where,
                    headers=headers,
                    timeout_s=self._timeout_s,
                    method=method,
                    body=body,
                    tls=self._tls,
                    follows=False,
                )
            except (OSError, http.client.HTTPException) as error:
                is_last = number + 1 == len(self._bases)
                if is_last or not (method == "GET" or _was_not_sent(error)):
                    raise self._away(base, error) from error
            except ValueError as error:  # its text has the header, which may be a secret
                raise RefusedError(f"{base} or its login is not one of HTTP") from error
            else:
                return self._checked(base, status, data)
        raise AssertionError

    def each(self, ask_one: Callable[[K], T], about: Sequence[K]) -> list[T | str]:
        """What `ask_one` returns for each, several at the same time; the reason if it fails."""

        def safely(one: K) -> T | str:
            try:
                return ask_one(one)
            except (AwayError, RefusedError) as error:
                return str(error)

        return list(self._pool.map(safely, about))

    def pieces(
        self, where: str, body: Any, stopping: threading.Event, *, accept: str
    ) -> Iterator[str]:
        """The pieces of an answer that goes on, until it ends or the event is set."""
        base, user = self._bases[0]
        parts = urlsplit(base)
        connection = self._connection(parts.scheme, parts.hostname or "", parts.port)
        headers = {**self._headers, **self._login(user)}
        headers.update({"Content-Type": "application/json", "Accept": accept})
        ended = threading.Event()
        try:
            connection.connect()
            sock = connection.sock
            watch = threading.Thread(target=_cut, args=(sock, stopping, ended), daemon=True)
            watch.start()
            connection.request("POST", parts.path + where, json.dumps(body), headers)
            sock.settimeout(None)
            answer = connection.getresponse()
            if answer.status >= _MULTIPLE_CHOICES:
                self._checked(base, answer.status, answer.read(1 << 20))
            text = codecs.getincrementaldecoder("utf-8")("replace")
            while data := answer.read1(1 << 16):
                yield text.decode(data)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not stopping.is_set():
                raise self._away(base, error) from error
        finally:
            ended.set()
            connection.close()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        if scheme == "https":
            return http.client.HTTPSConnection(
                host, port, timeout=self._timeout_s, context=self._tls
            )
        return http.client.HTTPConnection(host, port, timeout=self._timeout_s)

    def _login(self, user: str | None) -> dict[str, str]:
        if self._authorization is not None:
            try:
                return {"Authorization": self._authorization()}
            except RegistryError as error:
                raise AwayError(str(error), self.name) from error
        user = user or self._user_info
        return {"Authorization": basic_login(user)} if user else {}

    def _away(self, base: str, error: Exception) -> AwayError:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            why = "no answer in time"
        else:
            why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        return AwayError(f"{self.name} at {base} does not answer: {why}", self.name)

    def _checked(self, base: str, status: int, data: bytes) -> Any:
        if status < _MULTIPLE_CHOICES:
            try:
                return json.loads(data) if data else None
            except (ValueError, RecursionError) as error:
                raise RefusedError(f"{self.name} at {base} did not answer with JSON") from error
        if status < _BAD_REQUEST:
            raise RefusedError(f"{self.name} at {base} points to another address; not followed")
        reason = _reason(data)
        if status in _AWAY:
            why = f"{self.name} at {base} answers {status}: {reason}".removesuffix(": ")
            raise AwayError(why, self.name)
        if status in (_UNAUTHORIZED, _FORBIDDEN):
            raise RefusedError(
                f"{self.name} refuses the console's login: {status} {reason}".strip()
            )
        kind = AbsentError if status == _NOT_FOUND else RefusedError
        raise kind(reason or f"{self.name} answers {status}")


def _cut(sock: socket.socket, stopping: threading.Event, ended: threading.Event) -> None:
    """Shut a connection down when the event is set; what reads from it then ends."""
    while not ended.wait(0):
        if stopping.wait(_WATCH_S):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            return


def _was_not_sent(error: Exception) -> bool:
    return isinstance(getattr(error, "reason", error), _NOT_SENT)


def _reason(data: bytes) -> str:
    """The words of an error: the member `message`, as these services have it; none of a page."""
    text = data.decode("utf-8", "replace")
    if text.lstrip()[:1] == "<":
        return ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()[:REASON_CHARS_MAX]
    if isinstance(found, dict) and "message" in found:
        return str(found["message"])[:REASON_CHARS_MAX]
    return text.strip()[:REASON_CHARS_MAX]


class Shapes:
    """Checks the JSON types in a service's answer. Methods raise RefusedError for other types."""

    def __init__(self, service: str) -> None:
        """`service`: its name in words."""
        self._service = service

    def members(self, found: Any) -> Mapping[str, Any]:
        """An object."""
        if not isinstance(found, dict):
            raise self._refused("an object")
        return found

    def listed(self, found: Any) -> Sequence[Any]:
        """A list; an empty one for what is missing or null."""
        if found and not isinstance(found, list):
            raise self._refused("a list")
        return found or ()

    def whole(self, found: Any) -> int:
        """A whole number."""
        if type(found) is not int:
            raise self._refused("a whole number")
        return found

    def _refused(self, expected: str) -> RefusedError:
        return RefusedError(
            f"the answer of {self._service} has something else instead of {expected}"
        )
