"""A client of ksqlDB's REST interface, and what it raises.

It speaks HTTP/1.1; to a server that does not, it speaks HTTP/2 without TLS from the first byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx

MEDIA_TYPE = "application/vnd.ksql.v1+json"
_CONNECT_TIMEOUT_S = 10.0
Answer = TypeVar("Answer")


class ShellError(Exception):
    """The shell cannot do what was asked; the message says why."""


class UnreachableError(ShellError):
    """No server answers, or it stopped answering."""


class MissingFileError(ShellError):
    """A script does not exist."""


class ServerError(ShellError):
    """A server's refusal, with its code and the statement that it is about.

    `entities` are the answers to the statements of the same request that were done before.
    """

    def __init__(
        self,
        message: str,
        code: int = 0,
        statement: str = "",
        entities: tuple[dict[str, Any], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.statement = statement
        self.entities = entities


def of_answer(body: Any, status: int) -> ServerError:
    """The error that the body of an answer tells."""
    if isinstance(body, dict) and "message" in body:
        return ServerError(
            str(body["message"]),
            int(body.get("error_code") or status),
            str(body.get("statementText") or ""),
            tuple(body.get("entities") or ()),
        )
    shown = " ".join(str(body or "").split())[:200]
    return ServerError(f"The server answered with HTTP status {status} {shown}".rstrip(), status)


@dataclass(frozen=True, slots=True)
class Context:
    """The context of each statement: the session's properties and variables."""

    properties: Mapping[str, Any]
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A server's description of itself."""

    version: str
    cluster_id: str
    service_id: str
    status: str


class KsqlClient:
    """One server. `user` is `name:password`; `timeout_s` bounds statements, not queries."""

    def __init__(
        self,
        server: str,
        *,
        user: str | None = None,
        ca_file: str | None = None,
        timeout_s: float = 120.0,
    ) -> None:
        if "://" not in server:
            server = f"http://{server}"
        self.server = server.rstrip("/")
        self._user = None if user is None else tuple(user.partition(":")[::2])
        self._ca_file = ca_file
        self._timeout_s = timeout_s
        self._sequence = -1
        self._http = self._open(is_http2=False)
        self._is_http2 = False

    def _open(self, *, is_http2: bool) -> httpx.Client:
        parts = urlsplit(self.server)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host:
            raise ShellError(f"{self.server} is not the address of a server")
        is_local = host in ("localhost", "::1") or host.startswith("127.")
        verify: Any = parts.scheme == "https"  # the authorities take time to load
        if self._ca_file is not None:
            from barnabas.base.tls.contexts import client_context

            verify = client_context(authorities_path=self._ca_file)
        return httpx.Client(
            base_url=self.server,
            auth=None if self._user is None else (self._user[0], self._user[1]),
            http1=not is_http2,
            http2=is_http2,
            verify=verify,
            trust_env=not is_local,  # proxies of the environment are not for this machine
            timeout=httpx.Timeout(self._timeout_s, connect=_CONNECT_TIMEOUT_S),
            headers={"Accept": MEDIA_TYPE, "User-Agent": "barnabas"},
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def info(self) -> ServerInfo:
        """Return who answers there. Raises UnreachableError, ServerError."""
        try:
            body = self._get("/info")
        except UnreachableError as error:
            if not isinstance(error.__cause__, httpx.RemoteProtocolError) or self._is_http2:
                raise
            self._change_to_http2()
            body = self._get("/info")
        info = body.get("KsqlServerInfo") if isinstance(body, dict) else None
        if not isinstance(info, dict):
            raise ServerError(f"{self.server} does not answer as a SQL server does")
        return ServerInfo(
            str(info.get("version", "")),
            str(info.get("kafkaClusterId", "")),
            str(info.get("ksqlServiceId", "")),
            str(info.get("serverStatus", "")),
        )

    def _change_to_http2(self) -> None:
        self._http.close()
        try:
            self._http = self._open(is_http2=True)
        except ImportError as error:
            raise ShellError(f"{self.server} wants HTTP/2: install the package h2") from error
        self._is_http2 = True

    def health(self) -> dict[str, Any]:
        """Return the health of the server's parts; a server in trouble answers too."""
        response = self._request("GET", "/healthcheck")
        body = _decoded(response)
        if not isinstance(body, dict) or "isHealthy" not in body:
            raise of_answer(body, response.status_code)
        return body

    def may_set(self, name: str) -> None:
        """Raises ServerError if a session cannot set the property."""
        self._get(f"/is_valid_property/{quote(name, safe='')}")

    def statement(self, text: str, context: Context) -> list[dict[str, Any]]:
        """The answers to a statement that is not a query. Raises ServerError."""
        body: dict[str, Any] = self._body(text, context)
        if self._sequence >= 0:
            # Another server of the same service must have done what we did before.
            body["commandSequenceNumber"] = self._sequence
        response = self._request("POST", "/ksql", body)
        answers = _checked(response)
        if isinstance(answers, dict):
            answers = [answers]
        if not isinstance(answers, list):
            raise of_answer(answers, response.status_code)
        for answer in answers:
            self._sequence = max(self._sequence, int(answer.get("commandSequenceNumber") or -1))
        return answers

    def query(self, text: str, context: Context) -> Iterator[dict[str, Any]]:
        """The parts of a query's answer as they arrive: a header, rows, perhaps a last message.

        Closing the iterator ends the query. Raises ServerError.
        """
        reader = DocumentReader()
        for piece in self._stream(text, context):
            for part in reader.feed(piece):
                failure = part.get("errorMessage")
                if failure is not None:
                    raise of_answer(
                        failure if isinstance(failure, dict) else {"message": failure}, 500
                    )
                if "error_code" in part:
                    raise of_answer(part, 500)
                yield part
        if reader.rest.strip():
            raise UnreachableError(f"{self.server} stopped in the middle of its answer")

    def lines(self, text: str, context: Context) -> Iterator[str]:
        """The lines of PRINT as they arrive. Closing the iterator ends it. Raises ServerError."""
        rest = ""
        for piece in self._stream(text, context):
            *whole, rest = (rest + piece).split("\n")
            yield from (line for line in whole if line.strip())
        if rest.strip():
            yield rest

    def _stream(self, text: str, context: Context) -> Iterator[str]:
        request = self._http.build_request(
            "POST",
            "/query",
            content=json.dumps(self._body(text, context)),
            headers={"Content-Type": MEDIA_TYPE},
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
        )
        try:
            response = self._http.send(request, stream=True)
            try:
                if response.status_code >= httpx.codes.BAD_REQUEST:
                    response.read()
                    raise of_answer(_decoded(response), response.status_code)
                yield from response.iter_text()
            finally:
                response.close()
        except httpx.HTTPError as error:
            raise UnreachableError(self._why(error)) from error

    def _body(self, text: str, context: Context) -> dict[str, Any]:
        return {
            "ksql": text,
            "streamsProperties": dict(context.properties),
            "sessionVariables": dict(context.variables),
        }

    def _get(self, path: str) -> Any:
        return _checked(self._request("GET", path))

    def _request(self, method: str, path: str, body: Any = None) -> httpx.Response:
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": MEDIA_TYPE}
        try:
            return self._http.request(method, path, content=content, headers=headers)
        except httpx.HTTPError as error:
            raise UnreachableError(self._why(error)) from error

    def _why(self, error: httpx.HTTPError) -> str:
        if isinstance(error, httpx.TimeoutException):
            return f"{self.server} does not answer in time"
        if isinstance(error, httpx.ConnectError):
            why = re.sub(r"^\[errno -?\d+\] ", "", str(error).lower())
            return f"no SQL server answers at {self.server} ({why})"
        return f"{self.server} broke off: {error or type(error).__name__}"


def _checked(response: httpx.Response) -> Any:
    body = _decoded(response)
    if response.status_code >= httpx.codes.BAD_REQUEST:
        raise of_answer(body, response.status_code)
    return body


def _decoded(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


_BETWEEN = " \t\r\n[],"
_DECODER = json.JSONDecoder()


class DocumentReader:
    """Takes text in pieces of any size and gives back each object as soon as it is whole."""

    def __init__(self) -> None:
        self._text = ""

    def feed(self, text: str) -> list[dict[str, Any]]:
        """The objects that the piece ends."""
        self._text += text
        documents, position = [], 0
        while True:
            while position < len(self._text) and self._text[position] in _BETWEEN:
                position += 1
            if position == len(self._text):
                break
            try:
                value, position = _DECODER.raw_decode(self._text, position)
            except ValueError:
                break  # the rest has not arrived yet
            documents.append(value)
        self._text = self._text[position:]
        return documents

    @property
    def rest(self) -> str:
        """The bytes that have arrived and are not a whole object yet."""
        return self._text
