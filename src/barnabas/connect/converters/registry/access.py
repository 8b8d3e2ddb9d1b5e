"""How converters reach their schema registry: its addresses, TLS, logins, and tries.

`schema.registry.basic.auth.user.info` is the same as `basic.auth.user.info`, and so with each
setting of the client; where both are given, the one with the prefix wins. TLS is by
`schema.registry.ssl.*`, and an identity provider of tokens is asked with the same TLS.

Unlike Confluent's client, which compares a certificate with the host only where
`schema.registry.ssl.endpoint.identification.algorithm` is set, this one leaves the comparison out
only where it is empty or `none`.

Source: SchemaRegistryClientConfig, CachedSchemaRegistryClient (Confluent 8.0).
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.base.config.errors import ConfigError as BaseConfigError
from barnabas.base.jaas import jaas_options
from barnabas.base.oauth.bearer import InvalidTokenError, take_apart
from barnabas.base.oauth.fetch import FetchError, FetchSettings
from barnabas.base.oauth.retrieval import RetrievalSettings, retrieve
from barnabas.base.tls.contexts import client_context, configured_client
from barnabas.connect.config.definition import ConfigType, Definition, Importance, Setting
from barnabas.connect.config.validators import at_least
from barnabas.connect.config.values import Password
from barnabas.schemas.data.errors import ConfigError
from barnabas.sql.formats.format import FormatError
from barnabas.sql.formats.schema_store import HttpSchemaStore

_PREFIX: Final = "schema.registry."
_BASIC: Final = "basic.auth.credentials.source"
_BEARER: Final = "bearer.auth.credentials.source"
_NAME_CHECK: Final = "ssl.endpoint.identification.algorithm"


def _text(name: str, doc: str, default: str | None = None) -> Setting:
    return Setting(name, ConfigType.STRING, default=default, doc=doc)


def _secret(name: str, doc: str) -> Setting:
    return Setting(name, ConfigType.PASSWORD, default=None, doc=doc)


def _count(name: str, default: int, doc: str) -> Setting:
    return Setting(name, ConfigType.INT, default, Importance.LOW, doc, validator=at_least(0))


ACCESS_SETTINGS: Final = (
    Setting(
        "schema.registry.url",
        ConfigType.LIST,
        importance=Importance.HIGH,
        doc="The registry's URLs; the next is asked where one does not answer.",
    ),
    _text(_BASIC, "Where user and password are: URL, USER_INFO or SASL_INHERIT.", "URL"),
    _secret("basic.auth.user.info", "user:password for USER_INFO."),
    _secret("schema.registry.basic.auth.user.info", "Older name of basic.auth.user.info."),
    _secret("sasl.jaas.config", "The login that SASL_INHERIT takes user and password of."),
    _text(_BEARER, "Where tokens come from: STATIC_TOKEN or OAUTHBEARER."),
    _secret("bearer.auth.token", "The token of STATIC_TOKEN."),
    _text("bearer.auth.issuer.endpoint.url", "Where OAUTHBEARER asks for tokens."),
    _text("bearer.auth.client.id", "The client that asks for tokens."),
    _secret("bearer.auth.client.secret", "The client's secret."),
    _text("bearer.auth.scope", "What the tokens are to allow."),
    Setting(
        "bearer.auth.cache.expiry.buffer.seconds",
        ConfigType.SHORT,
        300,
        Importance.LOW,
        "So long before its end a token is not used any more.",
        validator=at_least(0),
    ),
    _text("bearer.auth.logical.cluster", "The registry behind a proxy that is meant."),
    _text("bearer.auth.identity.pool.id", "The pool of identities that the token is of."),
    _count("max.retries", 3, "How often a request is sent again that may go well later."),
    _count("retries.wait.ms", 1000, "How long to wait before that; it doubles each time."),
    _count("retries.max.wait.ms", 20_000, "The longest wait."),
    _text(f"{_PREFIX}ssl.truststore.type", "JKS, PKCS12 or PEM.", "JKS"),
    _text(f"{_PREFIX}ssl.truststore.location", "A file with the authorities to trust."),
    _secret(f"{_PREFIX}ssl.truststore.password", "The file's password."),
    _secret(f"{_PREFIX}ssl.truststore.certificates", "The authorities to trust, in PEM."),
    _text(f"{_PREFIX}ssl.keystore.type", "JKS, PKCS12 or PEM.", "JKS"),
    _text(f"{_PREFIX}ssl.keystore.location", "A file with the key and certificate to show."),
    _secret(f"{_PREFIX}ssl.keystore.password", "The file's password."),
    _secret(f"{_PREFIX}ssl.keystore.key", "The key to show, in PEM."),
    _secret(f"{_PREFIX}ssl.keystore.certificate.chain", "The certificates to show, in PEM."),
    _secret(f"{_PREFIX}ssl.key.password", "The password of the key."),
    _text(
        f"{_PREFIX}{_NAME_CHECK}",
        "How names in certificates are compared; empty or none: not at all.",
        "https",
    ),
)
_DEFINITION: Final = Definition(ACCESS_SETTINGS)


def open_registry(settings: Mapping[str, Any], *, normalizes: bool) -> HttpSchemaStore:
    """The registry that settings of a converter name. Raises ConfigError.

    `normalizes` as in HttpSchemaStore.
    """
    given = dict(settings)
    for name in _DEFINITION.settings:
        if _PREFIX + name in settings:
            given[name] = settings[_PREFIX + name]
    if given.get(_BASIC) and given.get(_BEARER):
        raise ConfigError(f"Only one of '{_BASIC}' and '{_BEARER}' may be specified")
    values = {
        name: value.value if isinstance(value, Password) else value
        for name, value in _DEFINITION.parse(given).items()
    }
    tls = _tls(values)
    try:
        if values[_BEARER]:
            return HttpSchemaStore(
                values["schema.registry.url"],
                authorization=_bearer(values, tls),
                headers=_bearer_headers(values),
                tls=tls,
                waits=_waits(values),
                normalizes=normalizes,
            )
        return HttpSchemaStore(
            values["schema.registry.url"],
            user_info=_user(values),
            tls=tls,
            waits=_waits(values),
            normalizes=normalizes,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _waits(values: Mapping[str, Any]) -> Callable[[int], bool]:
    """Pauses that double, of which up to a fifth is left out by chance."""
    first_s, longest_s = values["retries.wait.ms"] / 1000, values["retries.max.wait.ms"] / 1000

    def wait(failures: int) -> bool:
        if failures > values["max.retries"]:
            return False
        whole_s = min(first_s * 2 ** min(failures - 1, 62), longest_s)
        time.sleep(whole_s * random.uniform(0.8, 1.0))
        return True

    return wait


class _Keys:
    """The keys of stores, by their names without prefix; what is not set is empty."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get_str(self, name: str) -> str:
        return str(self._values.get(_PREFIX + name) or "")


def _tls(values: Mapping[str, Any]) -> ssl.SSLContext | None:
    """TLS where anything of it is set; None is what Python does by itself."""
    checks_names = values[_PREFIX + _NAME_CHECK].lower() not in ("", "none")
    stores = (f"{_PREFIX}ssl.truststore.", f"{_PREFIX}ssl.key")
    if checks_names and not any(
        value
        for name, value in values.items()
        if name.startswith(stores) and not name.endswith(".type")
    ):
        return None
    try:
        context = configured_client(_Keys(values))
    except BaseConfigError as error:
        raise ConfigError(f"{_PREFIX}{error}") from error
    context.check_hostname = checks_names
    return context


def _user(values: Mapping[str, Any]) -> str | None:
    source = values[_BASIC].upper()
    if source == "USER_INFO":
        if not values["basic.auth.user.info"]:
            raise ConfigError(f"UserInfo must be provided when {_BASIC} is set to USER_INFO")
        return str(values["basic.auth.user.info"])
    if source == "SASL_INHERIT":
        options = jaas_options(values["sasl.jaas.config"] or "")
        if not options.get("username"):
            raise ConfigError(
                "Provided SASL Login module doesn't provide username and password options and "
                "can't be inherited"
            )
        return f"{options['username']}:{options.get('password', '')}"
    if source != "URL":
        raise ConfigError(
            f"Invalid value {values[_BASIC]} for configuration {_BASIC}: "
            "it must be URL, USER_INFO or SASL_INHERIT"
        )
    return None


def _bearer_headers(values: Mapping[str, Any]) -> dict[str, str]:
    headers = {
        "target-sr-cluster": values["bearer.auth.logical.cluster"],
        "Confluent-Identity-Pool-Id": values["bearer.auth.identity.pool.id"],
    }
    return {name: text for name, text in headers.items() if text}


def _bearer(values: Mapping[str, Any], tls: ssl.SSLContext | None) -> Callable[[], str]:
    source = values[_BEARER].upper()
    if source == "STATIC_TOKEN":
        token = values["bearer.auth.token"]
        if not token:
            raise ConfigError(
                f"Token must be provided via bearer.auth.token config when {_BEARER} is set to "
                "STATIC_TOKEN"
            )
        return lambda: f"Bearer {token}"
    if source != "OAUTHBEARER":
        raise ConfigError(
            f"Invalid value {values[_BEARER]} for configuration {_BEARER}: "
            "it must be STATIC_TOKEN or OAUTHBEARER"
        )
    needed = (
        "bearer.auth.issuer.endpoint.url",
        "bearer.auth.client.id",
        "bearer.auth.client.secret",
    )
    for name in needed:
        if not values[name]:
            raise ConfigError(f"{name} must be set where {_BEARER} is OAUTHBEARER")
    return _Tokens(
        RetrievalSettings(
            values["bearer.auth.issuer.endpoint.url"],
            client_id=values["bearer.auth.client.id"],
            client_secret=values["bearer.auth.client.secret"],
            scope=values["bearer.auth.scope"],
            fetch=FetchSettings(tls=lambda: tls or client_context()),
        ),
        values["bearer.auth.cache.expiry.buffer.seconds"] * 1000,
    )


class _Tokens:
    """Tokens of an identity provider: each is used until shortly before its end."""

    def __init__(self, settings: RetrievalSettings, early_ms: int) -> None:
        self._settings = settings
        self._early_ms = early_ms
        self._header = ""
        self._until_ms = 0

    def __call__(self) -> str:
        """The header of a request. Raises FormatError."""
        now_ms = _now_ms()
        if now_ms >= self._until_ms:
            try:
                token = retrieve(self._settings, _now_ms)
                end_s = take_apart(token).claims.get("exp")
            except FetchError as error:
                raise FormatError(
                    f"No token for the schema registry: {error}", retriable=not error.is_final
                ) from error
            except InvalidTokenError as error:
                raise FormatError(f"The token for the schema registry: {error}") from error
            if not isinstance(end_s, int | float):
                raise FormatError("The token for the schema registry says no end")
            self._header = f"Bearer {token}"
            self._until_ms = int(end_s * 1000) - self._early_ms
        return self._header


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
