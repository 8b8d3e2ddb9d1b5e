"""TLS of a worker: of its https listeners, and of what it asks other workers.

`listeners.https.ssl.*` and `admin.listeners.https.ssl.*` hold, if there is any of them, instead of
`ssl.*`. Source: org.apache.kafka.connect.runtime.rest.util.SSLUtils (Kafka 4.3).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from typing import Final

from barnabas.base.errors import ConfigError as BaseConfigError
from barnabas.base.tls.contexts import (
    CLIENT_AUTH,
    PropertyKeys,
    choose_suites,
    choose_versions,
    https_client,
    https_listener,
)
from barnabas.schemas.data.errors import ConfigError

REGULAR: Final = "listeners.https."
ADMIN: Final = "admin.listeners.https."
_CLIENT_AUTH: Final = "ssl.client.auth"


def listener_tls(settings: Mapping[str, str], prefix: str) -> ssl.SSLContext:
    """Return TLS of https listeners. Raises ConfigError."""
    values = _values(settings, prefix)
    context = _made(https_listener, values)
    wanted = values.get(_CLIENT_AUTH, "none").strip()
    if wanted not in CLIENT_AUTH:
        raise ConfigError(
            f"Invalid value {wanted} for configuration {_CLIENT_AUTH}: "
            f"String must be one of: {', '.join(CLIENT_AUTH)}"
        )
    context.verify_mode = CLIENT_AUTH[wanted]
    return context


def client_tls(settings: Mapping[str, str]) -> ssl.SSLContext:
    """Return TLS for requests to other workers. Raises ConfigError."""
    return _made(https_client, _values(settings, REGULAR))


def _values(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    own = {
        name.removeprefix(prefix): value
        for name, value in settings.items()
        if name.startswith(prefix)
    }
    return own or {name: value for name, value in settings.items() if name.startswith("ssl.")}


def _made(
    make: Callable[[Mapping[str, str]], ssl.SSLContext], values: Mapping[str, str]
) -> ssl.SSLContext:
    try:
        context = make(values)
        keys = PropertyKeys(values)
        choose_versions(context, keys)
        choose_suites(context, keys)
    except BaseConfigError as error:
        raise ConfigError(str(error)) from error
    return context
