"""OAUTHBEARER as a node's configuration has it: whose tokens are accepted, and how a node gets one.

In Kafka, the names of Java classes choose what checks and fetches tokens. The names of Kafka's own
classes are accepted where we do the same; all others are refused. Where no class is named, tokens
must be signed if a key set's URL is set; without one, as in Kafka, they need no signature.

Source: KIP-255, KIP-768, KIP-1139, KIP-1258; SaslConfigs of Kafka 4.3.
"""

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from barnabas.base.errors import ConfigError

MECHANISM: Final = "OAUTHBEARER"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
LOGIN_MODULE: Final = f"{_PACKAGE}.OAuthBearerLoginModule"
SERVER_HANDLER_KEY = "sasl.server.callback.handler.class"
LOGIN_HANDLER_KEY = "sasl.login.callback.handler.class"
RETRIEVER_KEY = "sasl.oauthbearer.jwt.retriever.class"
VALIDATOR_KEY = "sasl.oauthbearer.jwt.validator.class"
JWKS_URL_KEY = "sasl.oauthbearer.jwks.endpoint.url"
TOKEN_URL_KEY = "sasl.oauthbearer.token.endpoint.url"
SIGNED_HANDLERS: Final = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
)
UNSECURED_HANDLER: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
LOGIN_HANDLERS: Final = (
    f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
)
UNSECURED_LOGIN_HANDLER: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
)
JWT_BEARER_RETRIEVER: Final = f"{_PACKAGE}.JwtBearerJwtRetriever"
CLASSES: Final = {
    SERVER_HANDLER_KEY: (*SIGNED_HANDLERS, UNSECURED_HANDLER),
    LOGIN_HANDLER_KEY: (*LOGIN_HANDLERS, UNSECURED_LOGIN_HANDLER),
    RETRIEVER_KEY: (
        f"{_PACKAGE}.DefaultJwtRetriever",
        f"{_PACKAGE}.ClientCredentialsJwtRetriever",
        f"{_PACKAGE}.FileJwtRetriever",
        JWT_BEARER_RETRIEVER,
    ),
    VALIDATOR_KEY: (
        f"{_PACKAGE}.DefaultJwtValidator",
        f"{_PACKAGE}.BrokerJwtValidator",
        f"{_PACKAGE}.ClientJwtValidator",
    ),
}
"""The Java classes that have a counterpart here, by the keys that name them."""
SCHEMES: Final = frozenset({"http", "https", "file"})
ALLOWED_URLS_VARIABLE: Final = "BARNABAS_OAUTHBEARER_ALLOWED_URLS"
"""In the environment, the only URLs that may be read, with commas between; unset, any may be.

Kafka has a Java system property for it. URLs come from the node's file alone, since none of their
keys is dynamic.
"""


def check_classes(originals: Mapping[str, str]) -> None:
    """Raises ConfigError for a class that has no counterpart here."""
    for name, value in originals.items():
        for key, known in CLASSES.items():
            is_named = name == key or name.endswith("." + key)
            if is_named and value.strip() and value.strip() not in known:
                raise ConfigError(
                    name, "Java classes cannot be loaded here; supported are " + ", ".join(known)
                )


def checks_signatures(jwks_url: str | None, handler: str | None, where: str) -> bool:
    """Return whether tokens must be signed. Raises ConfigError for a handler that has no keys."""
    if handler in SIGNED_HANDLERS and not jwks_url:
        raise ConfigError(JWKS_URL_KEY, f"must be set, because {where} requires signed tokens")
    return bool(jwks_url) and handler != UNSECURED_HANDLER


def check_url(key: str, url: str, environment: Mapping[str, str] = os.environ) -> str:
    """The URL, if it is one that may be read. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme.lower(), parts.hostname
    except ValueError:
        raise ConfigError(key, "is not a URL") from None
    if scheme not in SCHEMES:
        raise ConfigError(key, 'only "http", "https" and "file" URLs are read')
    if scheme == "file":
        if not parts.path.startswith("/") or parts.netloc not in ("", "localhost"):
            raise ConfigError(key, "a file URL needs a path of this machine, as file:///path")
    elif not host:
        raise ConfigError(key, "the URL names no host")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(key, "the URL must not contain a user or password")
    allowed = environment.get(ALLOWED_URLS_VARIABLE)
    if allowed is not None and url not in {entry.strip() for entry in allowed.split(",")}:
        raise ConfigError(key, f"{ALLOWED_URLS_VARIABLE} does not allow the URL")
    return url
