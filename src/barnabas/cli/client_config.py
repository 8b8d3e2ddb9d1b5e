"""A client's properties file: Java's names of keys, or librdkafka's, in librdkafka's terms.

Kafka's own tools, Confluent's and ours can be given the same file. Of Java's stores, PEM files are
read; what a JKS file holds has to be turned into PEM.
"""

import os
from collections.abc import Mapping
from typing import Final

from barnabas.base.config.properties import parse_properties
from barnabas.base.jaas import jaas_options
from barnabas.cli.errors import CliError, ExitCode

_DROPPED: Final = frozenset(
    {"key.serializer", "value.serializer", "key.deserializer", "value.deserializer"}
    | {"sasl.client.callback.handler.class", "sasl.login.callback.handler.class"}
    | {"ssl.truststore.type", "ssl.truststore.password", "ssl.keystore.type", "ssl.protocol"}
    | {"ssl.enabled.protocols", "ssl.provider", "ssl.trustmanager.algorithm"}
    | {"ssl.keymanager.algorithm", "ssl.secure.random.implementation"}
)
"""Java's alone: without a meaning here, or said otherwise."""
_JAVA_NAMES: Final = {
    "ssl.truststore.location": "ssl.ca.location",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
}
_CA_BUNDLE: Final = "probe"
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


def from_java(values: Mapping[str, str]) -> dict[str, str]:
    """A Java client's properties in librdkafka's terms; librdkafka's own stay as they are.

    Raises CliError for stores that only Java reads.
    """
    for store in ("truststore", "keystore"):
        kind = values.get(f"ssl.{store}.type", "PEM").upper()
        if kind != "PEM" and (store == "truststore" or kind != "PKCS12"):
            raise CliError(
                f"ssl.{store}.type: a {kind} file cannot be read here",
                ExitCode.USAGE,
                "turn it into a PEM file (`openssl pkcs12`, `keytool -exportcert -rfc`)",
            )
    config = {
        _JAVA_NAMES.get(key, key): value for key, value in values.items() if key not in _DROPPED
    }
    if values.get("ssl.keystore.type", "").upper() == "PEM":
        own = config.pop("ssl.keystore.location", None)
        if own:  # one file with both
            config.setdefault("ssl.certificate.location", own)
            config.setdefault("ssl.key.location", own)
    if config.get("ssl.endpoint.identification.algorithm") == "":
        config["ssl.endpoint.identification.algorithm"] = "none"
    options = jaas_options(config.pop("sasl.jaas.config", ""))
    for name in ("username", "password"):
        if name in options:
            config.setdefault(f"sasl.{name}", options[name])
    if options.get("tokenauth", "").lower() == "true":
        config[TOKEN_KEY] = "true"
    return config


def check_files(config: Mapping[str, str]) -> None:
    """Raise CliError for a certificate or key that cannot be read: clients say it in riddles."""
    for key in ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location"):
        path = config.get(key)
        if not path or path == _CA_BUNDLE or (key == "ssl.ca.location" and os.path.isdir(path)):
            continue
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError as error:
            raise CliError(f"{key}: {path}: {error.strerror}", ExitCode.USAGE) from error


def is_secret(key: str) -> bool:
    """Whether the value of a client's key must not be shown."""
    return any(word in key for word in _SECRET_WORDS)
