"""Access to a schema registry by the settings of Confluent's client: addresses, TLS, logins, tries.

Names are those of SchemaRegistryClientConfig. TLS is by `schema.registry.ssl.*`; the client asks an
identity provider for tokens with the same TLS.

Unlike Confluent's client, which compares a certificate with the host only where
`schema.registry.ssl.endpoint.identification.algorithm` is set, this one leaves the comparison out
only where it is empty or `none`.

Source: SchemaRegistryClientConfig, CachedSchemaRegistryClient (Confluent 8.0).
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.base.backoff import doubled
from barnabas.base.clock import now_ms
from barnabas.base.errors import ConfigError as BaseConfigError
from barnabas.base.jaas import JaasError, jaas_options
from barnabas.base.oauth.bearer import InvalidTokenError, take_apart
from barnabas.base.oauth.fetch import FetchError, FetchSettings
from barnabas.base.oauth.retrieval import RetrievalSettings, retrieve
from barnabas.base.tls.contexts import client_context, configured_client
from barnabas.schemas.data.errors import ConfigError
from barnabas.schemas.errors import RegistryError
from barnabas.schemas.registry_client import RegistryClient

PREFIX: Final = "schema.registry."
BASIC: Final = "basic.auth.credentials.source"
BEARER: Final = "bearer.auth.credentials.source"
NAME_CHECK: Final = "ssl.endpoint.identification.algorithm"


_NONE: Final = (
    *("basic.auth.user.info", "sasl.jaas.config", BEARER, "bearer.auth.token"),
    *("bearer.auth.issuer.endpoint.url", "bearer.auth.client.id", "bearer.auth.client.secret"),
    *("bearer.auth.scope", "bearer.auth.logical.cluster", "bearer.auth.identity.pool.id"),
)
_EARLY: Final = "bearer.auth.cache.expiry.buffer.seconds"
_DEFAULTS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(_NONE),
    BASIC: "URL",
    _EARLY: 300,
    PREFIX + NAME_CHECK: "https",
}


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """How requests to a registry are sent; members as the arguments of RegistryClient."""

    urls: str | Sequence[str]
    user_info: str | None = field(default=None, repr=False)
    authorization: Callable[[], str] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None


def open_registry(values: Mapping[str, Any], *, normalizes: bool) -> RegistryClient:
    """The registry that settings name; all of them are given, parsed. Raises ConfigError.

    `normalizes` as in RegistryClient.
    """
    found = _access(values)
    try:
        return RegistryClient(
            found.urls,
            user_info=found.user_info,
            authorization=found.authorization,
            headers=found.headers,
            tls=found.tls,
            waits=_waits(values),
            normalizes=normalizes,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def is_access_setting(name: str) -> bool:
    """Return whether `access_of` reads a setting."""
    plain = name.removeprefix(PREFIX)
    return name.startswith(f"{PREFIX}ssl.") or name == PREFIX + "url" or plain in _DEFAULTS


def access_of(texts: Mapping[str, str]) -> RegistryAccess:
    """Return how to reach the registry that a properties file names. Raises ConfigError.

    Login settings may also have the prefix `schema.registry.`.
    """
    given = {
        name.removeprefix(PREFIX) if name.removeprefix(PREFIX) in _DEFAULTS else name: text
        for name, text in texts.items()
        if is_access_setting(name)
    }
    early = given.pop(_EARLY, str(_DEFAULTS[_EARLY]))
    if not early.isdigit():
        raise ConfigError(f"{_EARLY}: {early} is not a whole number")
    if given.get(BASIC) and given.get(BEARER):
        raise ConfigError(f"Only one of '{BASIC}' and '{BEARER}' may be specified")
    return _access({**_DEFAULTS, **given, _EARLY: int(early)})


def _access(values: Mapping[str, Any]) -> RegistryAccess:
    tls = _tls(values)
    urls = values["schema.registry.url"]
    if values[BEARER]:
        login = _bearer(values, tls)
        return RegistryAccess(urls, None, login, _bearer_headers(values), tls)
    return RegistryAccess(urls, _user(values), tls=tls)


def _waits(values: Mapping[str, Any]) -> Callable[[int], bool]:
    """Pauses that double, of which up to a fifth is left out by chance."""
    first_s, longest_s = values["retries.wait.ms"] / 1000, values["retries.max.wait.ms"] / 1000

    def wait(failures: int) -> bool:
        if failures > values["max.retries"]:
            return False
        whole_s = doubled(first_s, longest_s, failures - 1)
        time.sleep(whole_s * random.uniform(0.8, 1.0))
        return True

    return wait


class _Keys:
    """The keys of stores, by their names without prefix; what is not set is empty."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get_str(self, name: str) -> str:
        return str(self._values.get(PREFIX + name) or "")


def _tls(values: Mapping[str, Any]) -> ssl.SSLContext | None:
    """TLS if any of its settings is set; None is what Python does by itself."""
    checks_names = values[PREFIX + NAME_CHECK].lower() not in ("", "none")
    stores = (f"{PREFIX}ssl.truststore.", f"{PREFIX}ssl.key")
    if checks_names and not any(
        value
        for name, value in values.items()
        if name.startswith(stores) and not name.endswith(".type")
    ):
        return None
    try:
        context = configured_client(_Keys(values))
    except BaseConfigError as error:
        raise ConfigError(f"{PREFIX}{error}") from error
    context.check_hostname = checks_names
    return context


def _user(values: Mapping[str, Any]) -> str | None:
    source = values[BASIC].upper()
    if source == "USER_INFO":
        if not values["basic.auth.user.info"]:
            raise ConfigError(f"UserInfo must be provided when {BASIC} is set to USER_INFO")
        return str(values["basic.auth.user.info"])
    if source == "SASL_INHERIT":
        try:
            options = jaas_options(values["sasl.jaas.config"] or "")
        except JaasError as error:
            raise ConfigError(f"sasl.jaas.config: {error}") from None
        if not options.get("username"):
            raise ConfigError(
                "Provided SASL Login module doesn't provide username and password options and "
                "can't be inherited"
            )
        return f"{options['username']}:{options.get('password', '')}"
    if source != "URL":
        raise ConfigError(
            f"Invalid value {values[BASIC]} for configuration {BASIC}: "
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
    source = values[BEARER].upper()
    if source == "STATIC_TOKEN":
        token = values["bearer.auth.token"]
        if not token:
            raise ConfigError(
                f"Token must be provided via bearer.auth.token config when {BEARER} is set to "
                "STATIC_TOKEN"
            )
        return lambda: f"Bearer {token}"
    if source != "OAUTHBEARER":
        raise ConfigError(
            f"Invalid value {values[BEARER]} for configuration {BEARER}: "
            "it must be STATIC_TOKEN or OAUTHBEARER"
        )
    needed = (
        "bearer.auth.issuer.endpoint.url",
        "bearer.auth.client.id",
        "bearer.auth.client.secret",
    )
    for name in needed:
        if not values[name]:
            raise ConfigError(f"{name} must be set where {BEARER} is OAUTHBEARER")
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
        """The header of a request. Raises RegistryError."""
        if now_ms() >= self._until_ms:
            try:
                token = retrieve(self._settings, now_ms)
                end_s = take_apart(token).claims.get("exp")
            except FetchError as error:
                raise RegistryError(
                    f"No token for the schema registry: {error}", retriable=not error.is_final
                ) from error
            except InvalidTokenError as error:
                raise RegistryError(f"The token for the schema registry: {error}") from error
            if not isinstance(end_s, int | float):
                raise RegistryError("The token for the schema registry says no end")
            self._header = f"Bearer {token}"
            self._until_ms = int(end_s * 1000) - self._early_ms
        return self._header
