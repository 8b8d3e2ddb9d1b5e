"""Key and trust stores of a properties file, read as those of nodes are (`base.key_stores`).

A key of the server's own that Kafka's clients or the registry's are given by its path cannot be in
a JKS store: librdkafka and Python read none.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.base.config.errors import ConfigError
from barnabas.base.tls import pem
from barnabas.base.tls.key_stores import STORE_BYTES_MAX
from barnabas.sql.formats.schema_store import RegistryTls

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_PEM_MARK = b"-----BEGIN "
LISTENERS = ("",)
"""Where listeners look for `ssl.…`."""
REGISTRY = ("ksql.schema.registry.",)


@dataclass(frozen=True)
class Keys:
    """Properties by their names without prefix; of several prefixes the first that is set wins."""

    values: Mapping[str, Any]
    prefixes: Sequence[str] = LISTENERS

    def find(self, name: str) -> str | None:
        """The value, which may be empty; None where it is not set."""
        for prefix in self.prefixes:
            found = self.values.get(prefix + name)
            if found is not None:
                return str(found).strip()
        return None

    def key(self, name: str) -> str:
        """The name as whoever set it wrote it, for messages."""
        set_here = (prefix + name for prefix in self.prefixes if prefix + name in self.values)
        return next(set_here, self.prefixes[-1] + name)

    def get_str(self, name: str) -> str:
        """The value, empty where it is not set."""
        return self.find(name) or ""

    def get_bool(self, name: str) -> bool:
        """Whether the value is true."""
        return self.get_str(name).lower() == "true"


def is_pkcs12(keys: Keys) -> bool:
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


def trusted_pem(keys: Keys) -> str | None:
    """The certificates of the authorities to trust, where any are set. Raises ConfigError."""
    try:
        return pem.trusted_pem(keys)
    except ConfigError as error:
        raise ConfigError(keys.key(error.key), error.message) from error


def listener_context(values: Mapping[str, Any]) -> ssl.SSLContext:
    """TLS of https listeners, with HTTP/2 and HTTP/1.1 to choose from. Raises ConfigError."""
    context = pem.server_context(Keys(values))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def registry_tls(values: Mapping[str, Any]) -> RegistryTls:
    """How the schema registry is spoken to, by the keys under its prefix. Raises ConfigError."""
    keys = Keys(values, REGISTRY)
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


def client_context(values: Mapping[str, Any]) -> ssl.SSLContext:
    """TLS as a client with the keys of listeners. Raises ConfigError."""
    keys = Keys(values)
    context = pem.client_context(keys, "")
    if keys.find("ssl.endpoint.identification.algorithm") == "":
        context.check_hostname = False
    return context
