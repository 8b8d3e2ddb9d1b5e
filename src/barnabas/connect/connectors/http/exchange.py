"""Requests with logins and retries.

What may go well later (no connection, time-outs, 408, 425, 429, 5xx) is tried again, after what the
server says in Retry-After, or after a pause that doubles. A refused token is fetched again once. No
text of an error has a secret: neither headers nor bodies of requests are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

from barnabas.base.backoff import doubled
from barnabas.connect.connectors.http.settings import trusted
from barnabas.schemas.data.errors import ConnectError

_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_EARLY_SECONDS: Final = 30.0
_TOKEN_SECONDS: Final = 300.0
"""Lifetime of a token if its answer names none."""
_SHOWN_MAX: Final = 300
Sleep = Callable[[float], bool | None]


class RefusedError(ConnectError):
    """The server does not take a request, and will not later."""


class GaveUpError(ConnectError):
    """All tries failed; later ones may not."""


class Exchange:
    """A client of one connector. `values` are its parsed settings."""

    def __init__(self, values: Mapping[str, Any], sleep: Sleep = time.sleep) -> None:
        self._values = values
        self._sleep = sleep
        self._kind = str(values["http.authorization.type"]).lower()
        self._token = ""
        self._token_until_s = 0.0
        codes = values["oauth2.token.renew.on.status.codes"]
        self._renewed_on = frozenset(int(code) for code in codes)
        headers = {}
        for one in values["http.headers.additional"]:
            key, _, value = one.partition(":")
            headers[key.strip()] = value.strip()
        if self._kind == "static":
            headers["Authorization"] = _secret(values, "http.headers.authorization")
        login = None
        if self._kind == "basic":
            login = httpx.BasicAuth(
                values["connection.user"], _secret(values, "connection.password")
            )
        self._client = httpx.Client(
            headers=headers,
            auth=login,
            timeout=float(values["http.timeout"]),
            verify=trusted(values),
            proxy=_proxy(values),
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def send(
        self, method: str, params: Mapping[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        """Return the answer to a request that went well; `params` join those of the address.

        Raises RefusedError, GaveUpError.
        """
        url = str(httpx.URL(self._values["http.url"]).copy_merge_params(dict(params or {})))
        headers = dict(more.pop("headers", {}))
        is_renewed = False
        tries = 0
        while True:
            if self._kind == "oauth2":
                headers["Authorization"] = f"Bearer {self._bearer()}"
            answer, text = self._once(method, url, headers=headers, **more)
            if answer is not None:
                if answer.is_success:
                    return answer
                is_old = self._kind == "oauth2" and answer.status_code in self._renewed_on
                if is_old and not is_renewed:
                    is_renewed, self._token = True, ""
                    continue
                if answer.status_code not in _AGAIN:
                    raise RefusedError(text)
            if tries >= int(self._values["max.retries"]):
                raise GaveUpError(f"{text} (tried {tries + 1} times)")
            tries += 1
            if self._sleep(self._pause_s(tries, answer)):
                raise GaveUpError(f"{text.partition(': ')[0]} (the task ends)")

    def _once(self, method: str, url: str, **more: Any) -> tuple[httpx.Response | None, str]:
        try:
            answer = self._client.request(method, url, **more)
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol) as error:
            raise _unsendable(url, error) from None
        except httpx.TransportError as error:
            return None, f"no answer from {shown(url)}: {type(error).__name__} {error}".rstrip()
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise _unsendable(url, error) from None
        body = answer.text[:_SHOWN_MAX] if not answer.is_success else ""
        return answer, f"{shown(url)} answered {answer.status_code}: {body}".rstrip(": ")

    def _pause_s(self, tries: int, answer: httpx.Response | None) -> float:
        longest = float(self._values["retry.backoff.max.ms"]) / 1000
        said = None if answer is None else retry_after_s(answer.headers.get("Retry-After"))
        first = float(self._values["retry.backoff.ms"]) / 1000
        return doubled(first, longest, tries - 1) if said is None else min(longest, said)

    def _bearer(self) -> str:
        if self._token and time.monotonic() < self._token_until_s:
            return self._token
        values = self._values
        client = str(values["oauth2.client.id"]), _secret(values, "oauth2.client.secret")
        form = {str(values["oauth2.request.grant.type.property"]): str(values["oauth2.grant.type"])}
        if values["oauth2.client.scope"]:
            form["scope"] = str(values["oauth2.client.scope"])
        login = None
        if str(values["oauth2.client.authorization.mode"]).lower() == "url":
            for part, text in zip(("id", "secret"), client, strict=True):
                form[str(values[f"oauth2.request.client.{part}.property"])] = text
        else:
            login = httpx.BasicAuth(*client)
        url = str(values["oauth2.access.token.url"])
        name = str(values["oauth2.response.token.property"])
        tries = 0
        while True:
            more: dict[str, Any] = {} if login is None else {"auth": login}
            answer, text = self._once("POST", url, data=form, **more)
            if answer is not None and answer.is_success:
                break
            if answer is not None and answer.status_code not in _AGAIN:
                raise RefusedError(f"no token: {shown(url)} answered {answer.status_code}")
            if tries >= int(values["max.retries"]):
                raise GaveUpError(f"no token: {text.partition(': ')[0]}")
            tries += 1
            if self._sleep(self._pause_s(tries, answer)):
                raise GaveUpError(f"{text.partition(': ')[0]} (the task ends)")
        try:
            document = answer.json()
            self._token = str(document[name])
            life_s = float(document.get("expires_in", _TOKEN_SECONDS))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RefusedError(f"no token: {shown(url)} answered without {name}") from error
        self._token_until_s = time.monotonic() + max(life_s - _EARLY_SECONDS, life_s / 2)
        return self._token


def _unsendable(url: str, error: Exception) -> RefusedError:
    """The error's own text may have a header's value."""
    return RefusedError(f"cannot ask {shown(url)}: {type(error).__name__}")


def retry_after_s(text: str | None, now: datetime | None = None) -> float | None:
    """Return how long a server wants to be left alone: seconds, or up to a date."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())


def _proxy(values: Mapping[str, Any]) -> str | None:
    host, port = values["http.proxy.host"], values["http.proxy.port"]
    return f"http://{host}:{port}" if host and port >= 0 else None


def _secret(values: Mapping[str, Any], name: str) -> str:
    return str(values[name].value)


def shown(url: str) -> str:
    """Return an address without login and parameters, which may have secrets."""
    parts = httpx.URL(url)
    return str(parts.copy_with(username=None, password=None, query=None, fragment=None))
