"""OAUTHBEARER logins of our own connections, configured with librdkafka's settings.

Tokens come from the callback `oauth_cb`, or with `sasl.oauthbearer.method=oidc` from a provider, by
a client's secret. librdkafka's other ways (assertions, Azure, unsecured tokens) are refused.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from barnabas.base.errors import ConfigError
from barnabas.base.oauth.bearer import InvalidTokenError, take_apart, time_ms
from barnabas.base.oauth.fetch import FetchError, FetchSettings
from barnabas.base.oauth.retrieval import RetrievalSettings, retrieve
from barnabas.base.tls.contexts import PropertyKeys, client_context
from barnabas.kafka.security import Security
from barnabas.kafka.wire import OAUTHBEARER, Access, BearerLogin, NoTokenError, TokenError

_LIFE_USED: Final = 0.8


def client_access(settings: Mapping[str, Any], timeout_s: float = 30.0) -> Access:
    """Return how our own connections get in where librdkafka's settings say how its do.

    Raises ConfigError for a login that they do not have.
    """
    servers = settings.get("bootstrap.servers") or settings.get("metadata.broker.list")
    security = Security(PropertyKeys(settings))
    bearer = bearer_login(settings) if security.mechanism == OAUTHBEARER else None
    access = security.access(str(servers or ""), timeout_s=timeout_s, bearer=bearer)
    name = settings.get("client.id")
    return replace(access, client_id=str(name)) if name else access


def bearer_login(settings: Mapping[str, Any]) -> BearerLogin:
    """Return the login that librdkafka's settings describe. Raises ConfigError."""
    return BearerLogin(_Token(settings), _extensions(settings))


class _Token:
    """Gets a token as librdkafka's settings say, and reuses it for most of its lifetime."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._get: Callable[[], tuple[str, float]]
        callback = settings.get("oauth_cb")
        if callback is not None:
            config = str(settings.get("sasl.oauthbearer.config", ""))
            self._get = lambda: callback(config)[:2]
        else:
            self._get = functools.partial(_asked, _retrieval(settings))
        self._lock = threading.Lock()
        self._token, self._until_seconds = "", 0.0

    def __call__(self) -> str:
        with self._lock:
            now = time.time()
            if now >= self._until_seconds:
                self._token, expiry_seconds = self._get()
                self._until_seconds = now + _LIFE_USED * (expiry_seconds - now)
            return self._token


def _retrieval(settings: Mapping[str, Any]) -> RetrievalSettings:
    """Raises ConfigError."""
    prefix = "sasl.oauthbearer."

    def get(name: str, default: str = "") -> str:
        return str(settings.get(prefix + name) or default)

    grant = get("grant.type", "client_credentials")
    azure = get("metadata.authentication.type", "none")
    method = get("method", "default").lower()
    if method != "oidc" or grant != "client_credentials" or azure != "none":
        raise ConfigError(
            f"{prefix}method",
            f"tokens come from oauth_cb here, or with {prefix}method=oidc from a provider that is "
            "shown a client's secret",
        )
    authorities = str(settings.get("https.ca.location") or "") or None
    tls = functools.partial(client_context, authorities_path=authorities)
    return RetrievalSettings(
        get("token.endpoint.url"),
        client_id=get("client.id"),
        client_secret=get("client.secret"),
        scope=get("scope") or None,
        fetch=FetchSettings(tls=tls),
    )


def _asked(settings: RetrievalSettings) -> tuple[str, float]:
    """A token and when it ends, in seconds; one that does not say serves once."""
    try:
        token = retrieve(settings, lambda: time.time_ns() // 1_000_000)
    except FetchError as error:
        raise (TokenError if error.is_final else NoTokenError)(str(error)) from error
    try:
        return token, (time_ms(take_apart(token).claims, "exp") or 0) / 1000
    except InvalidTokenError:
        return token, 0.0


def _extensions(settings: Mapping[str, Any]) -> dict[str, str]:
    given = str(settings.get("sasl.oauthbearer.extensions") or "")
    pairs = (pair.partition("=") for pair in given.split(",") if pair.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}
