"""Logins by token, and how identity providers are asked, as a node's configuration has them.

What the configuration says wins over the options of the JAAS line, where Kafka has both.
Source: Kafka's ConfigOrJaas, DefaultJwtRetriever and ClientCredentialsRequestFormatterFactory.
"""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from barnabas.base.backoff import RandomSource
from barnabas.base.clock import Clock
from barnabas.base.errors import ConfigError
from barnabas.base.oauth.fetch import TIMEOUT_MS_DEFAULT, FetchSettings, file_of, is_file
from barnabas.base.oauth.retrieval import AssertionSettings, Grant, RetrievalSettings, retrieve
from barnabas.base.tls.contexts import client_context, configured_client
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.oauth import (
    JWT_BEARER_RETRIEVER,
    LOGIN_HANDLER_KEY,
    LOGIN_HANDLERS,
    MECHANISM,
    RETRIEVER_KEY,
    TOKEN_URL_KEY,
    UNSECURED_LOGIN_HANDLER,
    check_url,
)
from barnabas.node.config.sasl import mechanism_value
from barnabas.node.net.oauth.message import BearerMessageError, check_extensions
from barnabas.node.net.oauth.token_login import RefreshSettings, TokenLogin
from barnabas.node.net.oauth.unsecured_login import EXTENSION_PREFIX as UNSECURED_EXTENSION_PREFIX
from barnabas.node.net.oauth.unsecured_login import unsecured_token

EXTENSION_PREFIX: Final = "extension_"
CONNECT_TIMEOUT_KEY = "sasl.login.connect.timeout.ms"
READ_TIMEOUT_KEY = "sasl.login.read.timeout.ms"
CLIENT_ID_KEY = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET_KEY = "sasl.oauthbearer.client.credentials.client.secret"
ASSERTION_FILE_KEY = "sasl.oauthbearer.assertion.file"
PRIVATE_KEY_KEY = "sasl.oauthbearer.assertion.private.key.file"
ISSUER_KEY = "sasl.oauthbearer.assertion.claim.iss"
RETRY_KEY = "sasl.login.retry.backoff.ms"
RETRY_MAX_KEY = "sasl.login.retry.backoff.max.ms"

telemetry = logging.getLogger(__name__)


class Keys:
    """The keys of OAUTHBEARER on one listener, with the options of its JAAS line."""

    def __init__(
        self, config: NodeConfig, listener_name: str, options: Mapping[str, str] | None
    ) -> None:
        self._config = config
        self._listener_name = listener_name
        self.options = options or {}

    def get(self, key: str) -> Any:
        """The typed value of a key, or None."""
        return mechanism_value(self._config, self._listener_name, MECHANISM, key)

    def text(self, key: str, option: str | None = None) -> str | None:
        """The text of a key, or of the option that it replaces; None for neither."""
        value = self.get(key) or (self.options.get(option) if option else None)
        return str(value).strip() or None if value else None

    def file(self, key: str) -> Path | None:
        """The file that a key names, as a path or as a URL."""
        value = self.text(key)
        if value is None:
            return None
        return file_of(check_url(key, value)) if is_file(value) else Path(value)

    def url(self, key: str) -> str | None:
        """The URL that a key names. Raises ConfigError for one that may not be read."""
        value = self.text(key)
        return None if value is None else check_url(key, value)

    def fetching(self) -> FetchSettings:
        """The settings for requests to identity providers. Raises ConfigError."""
        waits = [ms for key in (CONNECT_TIMEOUT_KEY, READ_TIMEOUT_KEY) if (ms := self.get(key))]
        tls = partial(configured_client, _Options(self.options), "")
        if any(name.startswith("ssl.") for name in self.options):
            tls()  # what cannot be used is said now
            return FetchSettings(max(waits, default=TIMEOUT_MS_DEFAULT), tls)
        return FetchSettings(max(waits, default=TIMEOUT_MS_DEFAULT), client_context)


class _Options:
    """Options of a JAAS line as a configuration of TLS."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def get_str(self, name: str) -> str:
        """The value of an option, empty where it is not set."""
        return self._options.get(name, "")


def token_login(
    config: NodeConfig,
    listener_name: str,
    options: Mapping[str, str],
    clock: Clock,
    random: RandomSource,
) -> TokenLogin:
    """Return the login of a node by OAUTHBEARER at a listener. Raises ConfigError."""
    keys = Keys(config, listener_name, options)
    url = keys.url(TOKEN_URL_KEY)
    handler = keys.text(LOGIN_HANDLER_KEY)
    is_unsecured = url is None or handler == UNSECURED_LOGIN_HANDLER
    if is_unsecured:
        if handler in LOGIN_HANDLERS:
            raise ConfigError(TOKEN_URL_KEY, "must be set: it says where tokens are fetched")
        unsecured_token(options, clock.now_ms())  # what cannot be used is said now
        fetch = partial(_unsecured, options, clock)
        prefix = UNSECURED_EXTENSION_PREFIX
    else:
        assert url is not None
        fetch = partial(retrieve, retrieval_settings(keys, url), clock.now_ms)
        prefix = EXTENSION_PREFIX
    extensions = {
        name.removeprefix(prefix): value
        for name, value in options.items()
        if name.startswith(prefix)
    }
    try:
        check_extensions(extensions)
    except BearerMessageError as error:
        raise ConfigError("sasl.jaas.config", str(error)) from error
    return TokenLogin(
        fetch,
        clock,
        random,
        refresh=RefreshSettings(
            keys.get("sasl.login.refresh.window.factor"),
            keys.get("sasl.login.refresh.window.jitter"),
            keys.get("sasl.login.refresh.min.period.seconds") * 1000,
            keys.get("sasl.login.refresh.buffer.seconds") * 1000,
        ),
        retry_ms=keys.get(RETRY_KEY),
        retry_max_ms=keys.get(RETRY_MAX_KEY),
        extensions=extensions,
        subject_claim=_subject_claim(keys, is_unsecured=is_unsecured),
        in_thread=url is not None and not is_unsecured and not is_file(url),
    )


def _subject_claim(keys: Keys, *, is_unsecured: bool) -> str:
    name = keys.options.get("unsecuredLoginPrincipalClaimName", "").strip() if is_unsecured else ""
    return name or keys.text("sasl.oauthbearer.sub.claim.name") or "sub"


def _unsecured(options: Mapping[str, str], clock: Clock) -> str:
    return unsecured_token(options, clock.now_ms())


def retrieval_settings(keys: Keys, url: str) -> RetrievalSettings:
    """Whom to ask for tokens, and how. Raises ConfigError."""
    if is_file(url):
        return RetrievalSettings(url)
    client_id = keys.text(CLIENT_ID_KEY, "clientId")
    client_secret = keys.text(CLIENT_SECRET_KEY, "clientSecret")
    ready = keys.file(ASSERTION_FILE_KEY)
    issuer = keys.text(ISSUER_KEY)
    if keys.text(RETRIEVER_KEY) == JWT_BEARER_RETRIEVER:
        grant = Grant.JWT_BEARER
    elif ready is not None or issuer is not None:
        grant = Grant.CLIENT_ASSERTION
    else:
        grant = Grant.CLIENT_SECRET
        for key, value in ((CLIENT_ID_KEY, client_id), (CLIENT_SECRET_KEY, client_secret)):
            if value is None:
                raise ConfigError(key, f"must be set to ask {TOKEN_URL_KEY}")
    if ready is not None and issuer is not None:
        telemetry.warning(
            "%s is used, and the keys of assertions made here are ignored", ASSERTION_FILE_KEY
        )
    return RetrievalSettings(
        url,
        grant,
        client_id,
        client_secret,
        keys.text("sasl.oauthbearer.scope", "scope"),
        None if grant is Grant.CLIENT_SECRET else ready or _assertion(keys),
        keys.fetching(),
    )


def _assertion(keys: Keys) -> AssertionSettings:
    key_file = keys.file(PRIVATE_KEY_KEY)
    if key_file is None:
        raise ConfigError(PRIVATE_KEY_KEY, "must be set to sign assertions")
    named = {
        "aud": keys.text("sasl.oauthbearer.assertion.claim.aud"),
        "iss": keys.text(ISSUER_KEY),
        "sub": keys.text("sasl.oauthbearer.assertion.claim.sub"),
    }
    return AssertionSettings(
        key_file,
        keys.text("sasl.oauthbearer.assertion.private.key.passphrase"),
        (keys.text("sasl.oauthbearer.assertion.algorithm") or "RS256").upper(),
        {name: value for name, value in named.items() if value is not None},
        keys.file("sasl.oauthbearer.assertion.template.file"),
        keys.get("sasl.oauthbearer.assertion.claim.exp.seconds"),
        keys.get("sasl.oauthbearer.assertion.claim.nbf.seconds"),
        keys.get("sasl.oauthbearer.assertion.claim.jti.include"),
    )
