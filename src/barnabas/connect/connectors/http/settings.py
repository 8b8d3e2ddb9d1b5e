"""Settings of the HTTP connectors.

The sink's are those of Aiven's HTTP sink connector; `connection.user` and `connection.password`
of basic logins are Confluent's. The source shares what says how to reach a server.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import httpx

from barnabas.base.errors import ConfigError as StoreError
from barnabas.base.tls.contexts import https_client
from barnabas.connect.config import validators
from barnabas.connect.config.definition import (
    NO_DEFAULT,
    ConfigType,
    Definition,
    Importance,
    Setting,
    Validator,
)
from barnabas.connect.config.values import invalid
from barnabas.connect.connectors.base import Connector, ConnectorContext, Settings
from barnabas.schemas.data.errors import ConfigError

_LOW, _MEDIUM, _HIGH = Importance.LOW, Importance.MEDIUM, Importance.HIGH
BATCH_PREFIX: Final = "batch.prefix"
BATCH_SUFFIX: Final = "batch.suffix"
BATCH_SEPARATOR: Final = "batch.separator"


def _url(name: str, value: Any) -> None:
    if value is None or _is_address(str(value)):
        return
    # Without the value: login and parameters of an address may be secrets.
    raise ConfigError(
        f"Invalid value for configuration {name}: must be an address with http:// or https://"
    )


def _is_address(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and bool(url.host)


def _headers(name: str, value: Any) -> None:
    for one in value or ():
        key, colon, _ = str(one).partition(":")
        if not colon or not key.strip():
            raise invalid(name, one, "headers are written key:value")


def _statuses(name: str, value: Any) -> None:
    if not all(one.isdecimal() for one in value or ()):
        raise invalid(name, value, "must be a list of numbers")


def _text(
    name: str,
    doc: str,
    default: Any = None,
    importance: Importance = _MEDIUM,
    validator: Validator | None = None,
) -> Setting:
    return Setting(name, ConfigType.STRING, default, importance, doc, validator=validator)


def _count(name: str, doc: str, default: int, low: int = 0) -> Setting:
    return Setting(name, ConfigType.INT, default, _MEDIUM, doc, validator=validators.at_least(low))


def _secret(name: str, doc: str) -> Setting:
    return Setting(name, ConfigType.PASSWORD, None, _MEDIUM, doc)


_CONNECTION: Final = (
    _text("http.url", "The address.", NO_DEFAULT, _HIGH, _url),
    _text("http.authorization.type", "Kind of login: none, static, basic or oauth2.", "none", _HIGH,
          validators.one_of_any_case("none", "static", "basic", "oauth2")),
    _secret("http.headers.authorization", "The Authorization header of static logins."),
    _text("connection.user", "The name of basic logins."),
    _secret("connection.password", "The password of basic logins."),
    Setting("http.headers.additional", ConfigType.LIST, "", _LOW,
            "More headers, each as key:value.", validator=_headers),
    _text("oauth2.access.token.url", "URL of the OAuth 2 token endpoint.", None, _HIGH, _url),
    _text("oauth2.client.id", "The client that asks for tokens."),
    _secret("oauth2.client.secret", "The client's secret."),
    _text("oauth2.client.authorization.mode",
          "Place of id and secret: header (basic login) or url (in the body).", "header", _MEDIUM,
          validators.one_of_any_case("header", "url")),
    _text("oauth2.client.scope", "The scope of the tokens.", ""),
    _text("oauth2.grant.type", "The kind of grant.", "client_credentials"),
    _text("oauth2.request.grant.type.property", "Its name in the request.", "grant_type"),
    _text("oauth2.request.client.id.property", "The id's name in the body.", "client_id"),
    _text("oauth2.request.client.secret.property", "The secret's name in the body.",
          "client_secret"),
    Setting("oauth2.token.renew.on.status.codes", ConfigType.LIST, "401", _LOW,
            "The answers after which a new token is fetched.", validator=_statuses),
    _text("oauth2.response.token.property", "The token's name in the answer.", "access_token"),
    _text("http.proxy.host", "The host of a proxy for all requests.", None, _LOW),
    Setting("http.proxy.port", ConfigType.INT, -1, _LOW, "The proxy's port.",
            validator=validators.between(-1, 65535)),
    _text("http.ssl.truststore.location",
          "A file with the authorities to trust: JKS, PKCS12 or PEM.", None, _LOW),
    _secret("http.ssl.truststore.password", "The file's password."),
    _count("http.timeout", "After how many seconds a request has failed.", 30, 1),
    Setting("http.ssl.trust.all.certs", ConfigType.BOOLEAN, False, _LOW,
            "Do not verify servers' certificates."),
    _count("max.retries", "Maximum number of retries of a failed request.", 5),
    _count("retry.backoff.ms", "First pause between retries, unless the server names one.", 3000),
    _count("retry.backoff.max.ms", "The longest wait, also where a server asks for more.", 60_000),
)  # fmt: skip

SINK: Final = Definition((
    *_CONNECTION,
    _text("http.method", "The method of requests.", "POST", _LOW,
          validators.one_of_any_case("POST", "PUT", "PATCH")),
    _text("http.headers.content.type", "The Content-Type header."),
    Setting("batching.enabled", ConfigType.BOOLEAN, False, _HIGH,
            "Send several records in one request."),
    Setting("batch.max.size", ConfigType.INT, 500, _MEDIUM,
            "Maximum number of records in one request.",
            validator=validators.between(1, 1_000_000)),
    # Spaces and line ends count in these, and settings lose theirs when they are parsed.
    _text(BATCH_PREFIX, "Text before the records of a request; by default none."),
    _text(BATCH_SUFFIX, "Text after the records of a request; by default a line feed."),
    _text(BATCH_SEPARATOR, "Text between records; by default a line feed."),
    _text("decimal.format", "Format of decimals: BASE64 or NUMERIC.", "BASE64", _LOW,
          validators.one_of_any_case("BASE64", "NUMERIC")),
    Setting("kafka.retry.backoff.ms", ConfigType.LONG, None, _MEDIUM,
            "Whether a request is tried again for ever, with the engine's pauses, once "
            "max.retries are used up: any number says so.",
            validator=validators.optional(validators.between(0, 86_400_000))),
))  # fmt: skip
SOURCE: Final = Definition((
    *_CONNECTION,
    _text("topic", "The topic to write to.", NO_DEFAULT, _HIGH, validators.non_empty),
    _text("http.method", "The method of requests.", "GET", _LOW,
          validators.one_of_any_case("GET", "POST")),
    _text("http.body", "The body of requests.", None, _LOW),
    Setting("poll.interval.ms", ConfigType.LONG, 60_000, _MEDIUM,
            "Time to wait before the next request once no records are left.",
            validator=validators.at_least(1)),
    _text("response.format", "Format of answers: json, or text (each line a record).", "json",
          _MEDIUM, validators.one_of("json", "text")),
    _text("response.records.pointer",
          "JSON pointer to the records in an answer; empty is the whole answer.", ""),
    _text("response.key.pointer", "The place of a record's key, as a JSON pointer."),
    _text("paging.mode", "Kind of paging: none, offset or cursor.", "none", _HIGH,
          validators.one_of("none", "offset", "cursor")),
    _text("paging.parameter", "The parameter of requests that says where to go on.", "offset"),
    _text("paging.cursor.pointer", "The place of the next cursor in an answer.", "/next"),
    _text("paging.start", "First value of the parameter; empty omits it.", ""),
    _text("paging.size.parameter", "The parameter that says how many records are wanted.", ""),
    _count("paging.size", "Number of records in a page.", 100, 1),
))  # fmt: skip
_LOGINS: Final = {
    "static": ("http.headers.authorization",),
    "basic": ("connection.user", "connection.password"),
    "oauth2": ("oauth2.access.token.url", "oauth2.client.id", "oauth2.client.secret"),
}
_PAGED: Final = ("response.records.pointer", "response.key.pointer")


def errors_of(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what is wrong between settings."""
    errors = dict(_connection_errors(values))
    if "response.format" in values:
        errors |= _source_errors(values)
    return {name: [text] for name, text in errors.items()}


class HttpConnector(Connector):
    """A connector whose settings are checked together."""

    def conflicts(
        self, values: Mapping[str, Any], settings: Settings
    ) -> Mapping[str, Sequence[str]]:
        """Return what is wrong between settings."""
        return errors_of(values)

    def start(self, context: ConnectorContext, settings: Settings) -> None:
        """Check the settings together. Raises ConfigError."""
        for texts in errors_of(self.definition.parse(settings)).values():
            raise ConfigError(texts[0])
        self._settings = settings


def trusted(values: Mapping[str, Any]) -> ssl.SSLContext | bool:
    """Return what says which servers are trusted, as httpx takes it. Raises ConfigError."""
    if values["http.ssl.trust.all.certs"]:
        return False
    location = values["http.ssl.truststore.location"]
    if not location:
        return True
    password = values["http.ssl.truststore.password"]
    store = {"ssl.truststore.location": location}
    if password is not None:
        store["ssl.truststore.password"] = password.value
    try:
        return https_client(store)
    except StoreError as error:
        raise ConfigError(
            f"Invalid value for configuration http.{error.key}: {error.message}"
        ) from error


def _connection_errors(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if values["http.proxy.host"] and values["http.proxy.port"] < 0:
        yield "http.proxy.port", "http.proxy.port must be set beside http.proxy.host"
    if values["http.ssl.truststore.location"]:
        try:
            trusted(values)
        except ConfigError as error:
            yield "http.ssl.truststore.location", str(error)
    kind = str(values["http.authorization.type"]).lower()
    for name in _LOGINS.get(kind, ()):
        if not values[name]:
            yield name, f"{name} must be set for http.authorization.type={kind}"


def _source_errors(values: Mapping[str, Any]) -> dict[str, str]:
    errors = {}
    if values["response.format"] == "text":
        for name in _PAGED:
            if values[name]:
                errors[name] = f"{name} is for JSON, and response.format is text"
        if values["paging.mode"] == "cursor":
            errors["paging.mode"] = "paging.mode=cursor is for JSON, and response.format is text"
    start = str(values["paging.start"])
    if values["paging.mode"] == "offset" and start and not start.isdecimal():
        errors["paging.start"] = f"paging.start must be a number, not {start}"
    return errors
