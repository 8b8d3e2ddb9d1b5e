"""A client of a Connect worker's REST interface, and the options that say which worker."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import click

from barnabas.cli.connection import Seconds
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function, with_options

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

DEFAULT_URL = "http://localhost:8083"
URL_VARIABLE = "BARNABAS_CONNECT_URL"
USER_VARIABLE = "BARNABAS_CONNECT_USER"
SHOWN_MAX = 200
REBALANCE_TRIES = 20
"""How often a request is repeated that a rebalance refuses."""
REBALANCE_S = 0.5


class RefusedError(CliError):
    """An error that the worker answered with."""

    def __init__(self, status: int, message: str) -> None:
        code = ExitCode.NOT_FOUND if status == HTTPStatus.NOT_FOUND else ExitCode.REFUSED
        super().__init__(f"{message} [{status}]", code)
        self.status = status
        self.text = message


@dataclass(frozen=True, slots=True)
class Connect:
    """Which workers (addresses, tried in turn), and how they are spoken to."""

    urls: tuple[str, ...]
    user: str | None = None
    """Name and password with a colon between, for HTTP's basic authentication."""
    ca_file: str | None = None
    timeout_s: float = 100.0

    def get(self, *path: str, **query: Any) -> Any:
        """Return the answer to GET. Raises CliError; RefusedError if the worker refuses."""
        return self.ask("GET", path, query=query)

    def ask(
        self,
        method: str,
        path: Sequence[str],
        body: Any = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the decoded answer. While workers rebalance, the request is repeated."""
        import time

        for _ in range(REBALANCE_TRIES):
            try:
                return self._ask(method, path, body, query)
            except RefusedError as error:
                if error.status != HTTPStatus.CONFLICT or "momentarily" not in error.text:
                    raise
            time.sleep(REBALANCE_S)
        return self._ask(method, path, body, query)

    def _ask(
        self, method: str, path: Sequence[str], body: Any, query: Mapping[str, Any] | None
    ) -> Any:
        parts = [quote(part, safe="") for part in path]
        if "" in parts:
            raise CliError("the name is empty", ExitCode.USAGE)
        given = {key: value for key, value in (query or {}).items() if value not in (None, False)}
        if given:
            given = {key: "true" if one is True else one for key, one in given.items()}
        target = "/" + "/".join(parts) + (f"?{urlencode(given, doseq=True)}" if given else "")
        reasons = []
        for url in self.urls:
            try:
                return self._ask_one(url, method, target, body)
            except OSError as error:
                reason = getattr(error, "reason", error)
                text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
                reasons.append(f"{_split_user(url)[0]} ({str(text).lower()})")
        raise CliError(
            f"no Connect worker answers at {', '.join(reasons)}",
            ExitCode.UNREACHABLE,
            "give its address with --url",
        )

    def _ask_one(self, url: str, method: str, target: str, body: Any) -> Any:
        from urllib.error import HTTPError
        from urllib.request import Request

        base, user = _split_user(url)
        headers = {"Accept": "application/json", "User-Agent": "barnabas"}
        user = self.user or user
        if user is not None:
            import base64

            headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        request = Request(base.rstrip("/") + target, data, headers, method=method)
        try:
            with self._opener(base).open(request, timeout=self.timeout_s) as answer:
                return _decoded(base, answer.status, answer.read())
        except HTTPError as error:
            with error:
                return _decoded(base, error.code, error.read())

    def _opener(self, url: str) -> "OpenerDirector":
        """Proxies of the environment serve, but not for an address of this machine."""
        from urllib.request import HTTPSHandler, ProxyHandler, build_opener

        handlers: list[Any] = []
        host = urlsplit(url).hostname or ""
        if host in ("localhost", "::1") or host.startswith("127."):
            handlers.append(ProxyHandler({}))
        if self.ca_file is not None:
            import ssl

            handlers.append(HTTPSHandler(context=ssl.create_default_context(cafile=self.ca_file)))
        return build_opener(*handlers)


def _decoded(url: str, status: int, data: bytes) -> Any:
    """The JSON of an answer. Raises RefusedError, and CliError for what no worker says."""
    try:
        value = json.loads(data) if data.strip() else None
        is_json = True
    except ValueError:
        value, is_json = data.decode(errors="replace"), False
    if status < HTTPStatus.BAD_REQUEST and is_json:
        return value
    if isinstance(value, dict) and isinstance(value.get("error_code"), int):
        raise RefusedError(status, str(value.get("message") or "refused"))
    shown = " ".join(str(value or "").split())[:SHOWN_MAX]
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise CliError(
            f"{url} refuses the user: HTTP status {status} {shown}".rstrip(), hint="give --user"
        )
    raise CliError(
        f"{url} does not answer as a Connect worker does: HTTP status {status} {shown}".rstrip()
    )


def _split_user(url: str) -> tuple[str, str | None]:
    """A URL without its user and password, and these."""
    from urllib.parse import unquote, urlunsplit

    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    return urlunsplit(parts._replace(netloc=host)), unquote(user)


def connect_options(function: Function) -> Function:
    """Options that every command against a worker has, as the argument `connect`."""

    def wrapped(
        urls: str | None, user: str | None, ca_file: str | None, timeout: float, **rest: Any
    ) -> Any:
        return function(connect=Connect(_read_urls(urls), user, ca_file, timeout), **rest)

    return with_options(function, wrapped, _OPTIONS)


_OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.option(
        "--url",
        "urls",
        metavar="URL,...",
        help=f"The worker, or several; by default {URL_VARIABLE}, then {DEFAULT_URL}.",
    ),
    click.option(
        "--user",
        envvar=USER_VARIABLE,
        metavar="NAME:PASSWORD",
        help=f"For a worker that asks for a password; by default {USER_VARIABLE}.",
    ),
    click.option(
        "--ca-file",
        type=click.Path(exists=True, dir_okay=False),
        help="PEM file with the authorities to trust for https.",
    ),
    click.option(
        "--timeout",
        type=Seconds(least=0, is_open=True),
        default=100.0,
        show_default=True,
        metavar="SECONDS",
        help="Longest wait for an answer; workers give up after 90.",
    ),
)


def _read_urls(text: str | None) -> tuple[str, ...]:
    text = text or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    urls = tuple(url.strip() for url in text.split(",") if url.strip())
    for url in urls:
        try:
            parts = urlsplit(url)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
            _ = parts.port
        except ValueError:
            is_url = False
        if not is_url:
            raise CliError(f"--url: {url} is not http://host:port", ExitCode.USAGE)
    if not urls:
        raise CliError("--url: no address is given", ExitCode.USAGE)
    return urls
