"""A client's properties file: Java's names of keys, or librdkafka's, in librdkafka's terms.

Kafka's own tools, Confluent's and ours can be given the same file.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.base.config.properties import parse_properties
from barnabas.cli.errors import CliError, ExitCode

TOKEN_KEY: Final = "sasl.tokenauth"
"""Ours: the name and password are a delegation token's (KIP-48). librdkafka knows of none."""
_SECRET_WORDS: Final = ("password", "secret", "key.pem", "jaas")


def read_client_file(path: str) -> dict[str, str]:
    """The properties in a file. Raises CliError."""
    try:
        with open(path, encoding="utf-8") as file:
            return parse_properties(file.read())
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", ExitCode.NOT_FOUND) from error
    except ValueError as error:
        raise CliError(f"{path}: {error}", ExitCode.USAGE) from error


def from_java(values: Mapping[str, str], more: Mapping[str, str] | None = None) -> dict[str, str]:
    """A client's properties, `more` on top, in librdkafka's terms. Raises ConfigError."""
    if not values and not more:
        return {}
    from barnabas.base.tls.contexts import PropertyKeys
    from barnabas.kafka.security import Security
    from barnabas.kafka.settings import check_files, librdkafka_settings, overridden

    values = overridden(values, more or {})
    check_files(values)
    config = librdkafka_settings(values)
    security = Security(PropertyKeys(values))
    if security.mechanism is not None and security.found_login().is_token:
        config[TOKEN_KEY] = "true"
    return config


def is_secret(key: str) -> bool:
    """Return whether the value of a client's key must not be shown."""
    return any(word in key for word in _SECRET_WORDS)
