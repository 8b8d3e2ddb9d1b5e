"""Asks the Connect worker at `ksql.connect.url`.

Source: ksqlDB's DefaultConnectClient and DefaultConnectClientFactory.
"""

from __future__ import annotations

import base64
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol
from urllib.parse import quote

import httpx

from barnabas.base.backoff import doubled
from barnabas.base.config.properties import parse_properties
from barnabas.base.errors import ConfigError
from barnabas.base.tls.contexts import PropertyKeys, configured_client

URL: Final = "ksql.connect.url"
PREFIX: Final = "ksql.connect."
DEFAULT_URL: Final = "http://localhost:8083"
_TIMEOUT_MS: Final = 5_000
_ATTEMPTS_MAX: Final = 3
_PAUSE_S: Final = 0.002
_BODY_SHOWN_MAX: Final = 10_000
_REBALANCE: Final = 409
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout)
"""Of POST others are not tried again: the connector may be there by then."""
_PREFIXES: Final = (PREFIX, "")
_VERIFY: Final = "ssl.endpoint.identification.algorithm"
Headers = Sequence[tuple[str, str]]


class ConnectUnavailableError(Exception):
    """The worker cannot be asked, or answers what is no answer."""


class RequestHeaders(Protocol):
    """A class of `ksql.connect.request.headers.plugin`, named `package.module:Class`."""

    def uses_own_auth(self) -> bool:
        """Return whether `auth` replaces the login of the settings or of the client."""

    def auth(self, headers: Headers) -> str | None:
        """The header Authorization for a request that came with these headers."""

    def headers(self) -> Mapping[str, str]:
        """Further headers for each request."""


@dataclass(frozen=True)
class Answer:
    """The worker's answer: JSON, or the text of an error."""

    status: int
    data: Any = None
    error: str | None = None


class ConnectClients:
    """Makes clients for requests, by the server's properties."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._plugin: RequestHeaders | None = None

    def client(self, headers: Headers = ()) -> ConnectClient:
        """A client for a request that came with these headers.

        Raises ConnectUnavailableError where a property cannot be used.
        """
        url = str(self._settings.get(URL) or DEFAULT_URL).split(",")[0].strip().rstrip("/")
        own: dict[str, str] = {}
        try:
            auth = self._auth(headers)
            if auth:
                own["Authorization"] = auth
            plugin = self._headers_plugin()
            own |= {} if plugin is None else plugin.headers()
            asking = httpx.Client(
                headers=own,
                timeout=self._timeout_s(),
                verify=self._tls() if url.startswith("https:") else True,
                transport=self._transport,
                trust_env=False,
            )
        except ConfigError as error:
            raise ConnectUnavailableError(str(error)) from error
        return ConnectClient(url, asking)

    def _timeout_s(self) -> float:
        given = str(self._settings.get(PREFIX + "request.timeout.ms") or _TIMEOUT_MS)
        if not given.isdecimal() or int(given) == 0:
            raise ConfigError(PREFIX + "request.timeout.ms", f"must be above 0, not {given}")
        return int(given) / 1000

    def _auth(self, headers: Headers) -> str | None:
        plugin = self._headers_plugin()
        if plugin is not None and plugin.uses_own_auth():
            return plugin.auth(headers)
        source = str(self._settings.get(PREFIX + "basic.auth.credentials.source") or "NONE")
        if source.upper() == "FILE":
            return self._auth_of_file()
        return next((value for name, value in headers if name.lower() == "authorization"), None)

    def _auth_of_file(self) -> str:
        key = PREFIX + "basic.auth.credentials.file"
        path = str(self._settings.get(key) or "")
        if not path:
            raise ConfigError(
                key, f"cannot be empty if {PREFIX}basic.auth.credentials.source is FILE"
            )
        try:
            # Read for each request: new passwords count at once.
            with open(path, encoding="utf-8") as file:
                properties = parse_properties(file.read())
            pair = f"{properties['username']}:{properties['password']}"
        except OSError as error:
            raise ConfigError(key, f"cannot be read: {error.strerror}") from error
        except (KeyError, ValueError) as error:
            raise ConfigError(key, "does not have username and password") from error
        return "Basic " + base64.b64encode(pair.encode()).decode()

    def _headers_plugin(self) -> RequestHeaders | None:
        key = PREFIX + "request.headers.plugin"
        name = str(self._settings.get(key) or "")
        if name and self._plugin is None:
            module, _, class_name = name.partition(":")
            try:
                self._plugin = getattr(import_module(module), class_name)()
            except (ImportError, AttributeError, TypeError, ValueError) as error:
                raise ConfigError(key, f"cannot be loaded: {error}") from error
        return self._plugin

    def _tls(self) -> ssl.SSLContext:
        keys = PropertyKeys(self._settings, _PREFIXES)
        context = configured_client(keys)
        if (keys.find(_VERIFY) or "https").lower() != "https" or keys.find(_VERIFY) == "":
            context.check_hostname = False
        return context


class ConnectClient:
    """Requests to one worker. Close it."""

    def __init__(self, url: str, client: httpx.Client) -> None:
        self._url = url
        self._client = client

    def __enter__(self) -> ConnectClient:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def connectors(self) -> Answer:
        """The names of all connectors."""
        return self._ask("GET", "/connectors")

    def plugins(self) -> Answer:
        """The classes there are."""
        return self._ask("GET", "/connector-plugins")

    def create(self, name: str, config: Mapping[str, str | None]) -> Answer:
        """Make a connector."""
        return self._ask("POST", "/connectors", {"name": name, "config": dict(config)}, (201,))

    def validate(self, class_name: str, config: Mapping[str, str | None]) -> Answer:
        """Check settings."""
        path = f"/connector-plugins/{_part(class_name)}/config/validate"
        return self._ask("PUT", path, dict(config))

    def describe(self, name: str) -> Answer:
        """Class, settings and tasks of a connector."""
        return self._ask("GET", f"/connectors/{_part(name)}")

    def status(self, name: str) -> Answer:
        """Return the states of a connector and its tasks."""
        return self._ask("GET", f"/connectors/{_part(name)}/status")

    def topics(self, name: str) -> Answer:
        """The topics that a connector has used."""
        return self._ask("GET", f"/connectors/{_part(name)}/topics")

    def delete(self, name: str) -> Answer:
        """Drop a connector."""
        return self._ask("DELETE", f"/connectors/{_part(name)}", None, (200, 204))

    def _ask(
        self, method: str, path: str, body: Any = None, expected: Sequence[int] = (200,)
    ) -> Answer:
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            is_last = attempt == _ATTEMPTS_MAX
            try:
                response = self._client.request(method, self._url + path, json=body)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if is_last or (method == "POST" and not isinstance(error, _UNSENT)):
                    raise ConnectUnavailableError(
                        f"cannot ask the Connect worker at {_shown(self._url)}: "
                        f"{_without_number(error) or type(error).__name__}"
                    ) from error
            else:
                is_other = method == "POST" or response.status_code < 500
                if is_last or (is_other and response.status_code != _REBALANCE):
                    return _answer(response, expected)
            time.sleep(doubled(_PAUSE_S, 1, attempt - 1))
        raise AssertionError("the last attempt returns or raises")


def _answer(response: httpx.Response, expected: Sequence[int]) -> Answer:
    if response.status_code not in expected:
        status = response.status_code if response.status_code >= 400 else 502
        return Answer(status, error=response.text[:_BODY_SHOWN_MAX])
    try:
        return Answer(response.status_code, response.json() if response.content else None)
    except ValueError as error:
        raise ConnectUnavailableError("the Connect worker answers what is not JSON") from error


def _part(name: str) -> str:
    return quote(name, safe="")


def _without_number(error: Exception) -> str:
    """The error's text; "[Errno 111]" before it helps nobody."""
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error))


def _shown(url: str) -> str:
    """The URL without a password."""
    scheme, separator, rest = url.partition("//")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
