"""A client of a schema registry's REST interface, and the options that say which registry."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Seconds
from barnabas.cli.errors import CliError, ExitCode
from barnabas.cli.option_sets import Function, with_options

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

DEFAULT_URL = "http://localhost:8081"
URL_VARIABLES = ("BARNABAS_REGISTRY_URL", "SCHEMA_REGISTRY_URL")
USER_VARIABLE = "BARNABAS_REGISTRY_USER"
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
STATUS_MAX = 599
SHOWN_MAX = 200
"""How many characters of an answer that is not the registry's are shown."""


class RefusedError(CliError):
    """An error that the registry answered with; `number` is Confluent's code."""

    def __init__(self, number: int, message: str) -> None:
        is_missing = number == HTTPStatus.NOT_FOUND or number // 100 == HTTPStatus.NOT_FOUND
        super().__init__(
            f"{message} [{number}]", ExitCode.NOT_FOUND if is_missing else ExitCode.REFUSED
        )
        self.number = number


@dataclass(frozen=True, slots=True)
class Registry:
    """Which registry (its addresses, tried in turn), and how it is spoken to."""

    urls: tuple[str, ...]
    user: str | None = None
    """Name and password with a colon between, for HTTP's basic authentication."""
    ca_file: str | None = None
    timeout_s: float = 15.0

    def get(self, *path: str | int, **query: Any) -> Any:
        """The answer to GET. Raises CliError; RefusedError if the registry refuses."""
        return self.ask("GET", path, query)

    def ask(
        self,
        method: str,
        path: Sequence[str | int],
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """The decoded answer to a request. Of the query, None and False are left out."""
        from urllib.parse import quote, urlencode

        parts = [quote(str(part), safe="") for part in path]
        if "" in parts:
            raise CliError("the name is empty", ExitCode.USAGE)
        given = {
            name: "true" if value is True else value
            for name, value in (query or {}).items()
            if value not in (None, False)
        }
        target = "/" + "/".join(parts) + ("?" + urlencode(given) if given else "")
        reasons = []
        for url in self.urls:
            try:
                return self._ask_one(url, method, target, body)
            except OSError as error:
                reasons.append(f"{_without_password(url)} ({_why(error)})")
        raise CliError(
            f"no schema registry answers at {', '.join(reasons)}",
            ExitCode.UNREACHABLE,
            "give its address with --url",
        )

    def _ask_one(self, url: str, method: str, target: str, body: Mapping[str, Any] | None) -> Any:
        from urllib.error import HTTPError
        from urllib.request import Request

        base, user = _split_user(url)
        headers = {"Accept": f"{CONTENT_TYPE}, application/json", "User-Agent": "barnabas"}
        user = self.user or user
        if user is not None:
            import base64

            headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        data = None
        if body is not None:
            headers["Content-Type"] = CONTENT_TYPE
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
        from urllib.parse import urlsplit
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
    """The JSON of an answer. Raises RefusedError, and CliError for what no registry says."""
    try:
        value = json.loads(data) if data.strip() else None
    except ValueError:
        value = data.decode(errors="replace")
        is_json = False
    else:
        is_json = True
    if status < HTTPStatus.BAD_REQUEST and is_json:
        return value
    if isinstance(value, dict) and isinstance(value.get("error_code"), int):
        number, message = value["error_code"], str(value.get("message") or "refused")
        # A number of three digits is HTTP's: the address may be wrong.
        raise RefusedError(number, message if number > STATUS_MAX else f"{url}: {message}")
    shown = " ".join(str(value or "").split())[:SHOWN_MAX]
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise CliError(
            f"{url} refuses the user: HTTP status {status} {shown}".rstrip(), hint="give --user"
        )
    raise CliError(
        f"{url} does not answer as a schema registry does: HTTP status {status} {shown}".rstrip()
    )


def _why(error: OSError) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer"
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return str(text).lower()


def _split_user(url: str) -> tuple[str, str | None]:
    """A URL without its user and password, and these."""
    from urllib.parse import unquote, urlsplit, urlunsplit

    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, None
    return urlunsplit(parts._replace(netloc=host)), unquote(user)


def _without_password(url: str) -> str:
    return _split_user(url)[0]


def registry_options(function: Function) -> Function:
    """Options that every command against a registry has, as the argument `registry`."""

    def wrapped(
        urls: str | None, user: str | None, ca_file: str | None, timeout: float, **rest: Any
    ) -> Any:
        registry = Registry(read_urls(urls, "--url"), user, ca_file, timeout)
        return function(registry=registry, **rest)

    return with_options(function, wrapped, _OPTIONS)


_OPTIONS: Sequence[Callable[[Any], Any]] = (
    click.option(
        "--url",
        "urls",
        metavar="URL,...",
        help=f"The registry; by default {', then '.join(URL_VARIABLES)}, then {DEFAULT_URL}. "
        "With /contexts/NAME at its end, names are those of that context.",
    ),
    click.option(
        "--user",
        envvar=USER_VARIABLE,
        metavar="NAME:PASSWORD",
        help=f"For a registry that asks for a password; by default {USER_VARIABLE}.",
    ),
    click.option(
        "--ca-file",
        type=click.Path(exists=True, dir_okay=False),
        help="PEM file with the authorities to trust for https.",
    ),
    click.option(
        "--timeout",
        type=Seconds(least=0, is_open=True),
        default=15.0,
        show_default=True,
        metavar="SECONDS",
        help="Longest wait for an answer.",
    ),
)


def read_urls(text: str | None, option: str) -> tuple[str, ...]:
    """The addresses that an option gives, or the environment. Raises CliError."""
    from urllib.parse import urlsplit

    if text is None:
        found = (os.environ.get(variable) for variable in URL_VARIABLES)
        text = next((url for url in found if url), DEFAULT_URL)
    urls = tuple(url.strip() for url in text.split(",") if url.strip())
    for url in urls:
        try:
            parts = urlsplit(url)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname)
            _ = parts.port
        except ValueError:
            is_url = False
        if not is_url:
            raise CliError(f"{option}: {url} is not http://host:port", ExitCode.USAGE)
    if not urls:
        raise CliError(f"{option}: no address is given", ExitCode.USAGE)
    return urls
