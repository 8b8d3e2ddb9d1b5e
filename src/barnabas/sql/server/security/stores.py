"""Key and trust stores of a properties file, read as those of nodes are (`base.key_stores`).

A key of the server's own that Kafka's clients or the registry's are given by its path cannot be in
a JKS store: librdkafka and Python read none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from barnabas.base.config.errors import ConfigError
from barnabas.base.tls import contexts
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.base.tls.key_stores import STORE_BYTES_MAX
from barnabas.schemas.registry_client import RegistryTls

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_PEM_MARK = b"-----BEGIN "
REGISTRY = ("ksql.schema.registry.",)


def is_pkcs12(keys: PropertyKeys) -> bool:
    """Whether the key store is PKCS12; False where none is set.

    Raises ConfigError for Java's own form and for what cannot be read.
    """
    location = keys.get_str("ssl.keystore.location")
    if not location:
        return False
    try:
        with open(location, "rb") as file:
            data = file.read(STORE_BYTES_MAX)
    except OSError as error:
        raise ConfigError(
            keys.key("ssl.keystore.location"), f"cannot be read: {error.strerror}"
        ) from error
    if data.startswith(_JKS_MAGIC):
        raise ConfigError(
            keys.key("ssl.keystore.location"),
            f"{location} is a JKS store, which no client can be given: `keytool -importkeystore "
            f"-srckeystore {os.path.basename(location)} -destkeystore store.p12 "
            "-deststoretype PKCS12` makes a PKCS12 store of it",
        )
    return _PEM_MARK not in data


def trusted_pem(keys: PropertyKeys) -> str | None:
    """The certificates of the authorities to trust, where any are set. Raises ConfigError."""
    try:
        return contexts.trusted_pem(keys)
    except ConfigError as error:
        raise ConfigError(keys.key(error.key), error.message) from error


def registry_tls(values: Mapping[str, Any]) -> RegistryTls:
    """How the schema registry is spoken to, by the keys under its prefix. Raises ConfigError."""
    keys = PropertyKeys(values, REGISTRY)
    if is_pkcs12(keys):
        raise ConfigError(
            keys.key("ssl.keystore.location"),
            "is PKCS12; to the schema registry a PEM file is shown: `openssl pkcs12 -in STORE "
            "-nodes -out FILE.pem`",
        )
    return RegistryTls(
        trusted_pem(keys),
        keys.get_str("ssl.keystore.location") or None,
        keys.get_str("ssl.key.password"),
        keys.find("ssl.endpoint.identification.algorithm") != "",
    )
