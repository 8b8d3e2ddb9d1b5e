"""Key and trust stores of a properties file: PEM and PKCS12. Java's own JKS is refused."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from barnabas.base import pem
from barnabas.base.config.errors import ConfigError
from barnabas.pipeline.sql.formats.schema_store import RegistryTls

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

    def replaced(self, values: Mapping[str, str]) -> Keys:
        """With other values for some names."""
        own = {self.prefixes[0] + name: value for name, value in values.items()}
        return Keys({**self.values, **own}, self.prefixes)


def is_pkcs12(keys: Keys, store: str) -> bool:
    """Whether `store` (keystore, truststore) is PKCS12; False where none is set.

    Raises ConfigError for Java's own form and for what cannot be read.
    """
    location = keys.get_str(f"ssl.{store}.location")
    if not location:
        return False
    try:
        with open(location, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(
            keys.key(f"ssl.{store}.location"), f"cannot be read: {error.strerror}"
        ) from error
    if data.startswith(_JKS_MAGIC):
        raise ConfigError(
            keys.key(f"ssl.{store}.location"),
            f"{location} is a JKS store, which is not served: `keytool -importkeystore "
            f"-srckeystore {os.path.basename(location)} -destkeystore store.p12 "
            "-deststoretype PKCS12` makes a PKCS12 store of it",
        )
    return _PEM_MARK not in data


@contextmanager
def as_pem(keys: Keys) -> Iterator[Keys]:
    """The keys with PEM files in place of PKCS12 stores; the files are there as long as this.

    Raises ConfigError.
    """
    with tempfile.TemporaryDirectory(prefix="barnabas-sql-") as directory:
        changed: dict[str, str] = {}
        for store in ("keystore", "truststore"):
            if not keys.get_str(f"ssl.{store}.location"):
                continue
            # Java's default is to look what a store is, whatever its type says.
            changed[f"ssl.{store}.type"] = "PEM"
            if not is_pkcs12(keys, store):
                continue
            path = os.path.join(directory, f"{store}.pem")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                file.write(pem_of_pkcs12(keys, store))
            changed[f"ssl.{store}.location"] = path
            changed["ssl.key.password"] = (
                ""
                if store == "keystore"
                else changed.get("ssl.key.password", keys.get_str("ssl.key.password"))
            )
        yield keys.replaced(changed)


def pem_of_pkcs12(keys: Keys, store: str) -> str:
    """A PKCS12 store's private key, if it has one, and certificates. Raises ConfigError."""
    location_key = keys.key(f"ssl.{store}.location")
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise ConfigError(
            location_key, "reading PKCS12 needs the package cryptography; PEM does not"
        ) from error
    password = keys.get_str(f"ssl.{store}.password").encode() or None
    with open(keys.get_str(f"ssl.{store}.location"), "rb") as file:
        data = file.read()
    try:
        found = pkcs12.load_pkcs12(data, password)
    except ValueError as error:
        raise ConfigError(
            location_key,
            f"is neither PEM nor a PKCS12 store that {keys.key(f'ssl.{store}.password')} opens",
        ) from error
    parts = []
    if found.key is not None:
        parts.append(
            found.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    own = [] if found.cert is None else [found.cert]
    parts += [
        one.certificate.public_bytes(serialization.Encoding.PEM)
        for one in (*own, *found.additional_certs)
    ]
    return b"".join(parts).decode()


def trusted_pem(keys: Keys) -> str | None:
    """The certificates of the authorities to trust, where any are set. Raises ConfigError."""
    inline = keys.get_str("ssl.truststore.certificates")
    if inline:
        return inline
    location = keys.get_str("ssl.truststore.location")
    if not location:
        return None
    if is_pkcs12(keys, "truststore"):
        return pem_of_pkcs12(keys, "truststore")
    with open(location, encoding="latin-1") as file:
        return file.read()


def listener_context(values: Mapping[str, Any]) -> ssl.SSLContext:
    """TLS of https listeners, with HTTP/2 and HTTP/1.1 to choose from. Raises ConfigError."""
    with as_pem(Keys(values)) as keys:
        context = pem.server_context(keys)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def registry_tls(values: Mapping[str, Any]) -> RegistryTls:
    """How the schema registry is spoken to, by the keys under its prefix. Raises ConfigError."""
    keys = Keys(values, REGISTRY)
    if is_pkcs12(keys, "keystore"):
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


def client_context(values: Mapping[str, Any], prefixes: Sequence[str]) -> ssl.SSLContext:
    """TLS as a client with the keys under these prefixes. Raises ConfigError."""
    with as_pem(Keys(values, prefixes)) as keys:
        context = ssl.create_default_context()
        trusted = trusted_pem(keys)
        if trusted is not None:
            try:
                context = ssl.create_default_context(cadata=trusted)
            except (ssl.SSLError, ValueError) as error:
                raise ConfigError(
                    keys.key("ssl.truststore.location"), f"the certificates cannot be used: {error}"
                ) from error
        if keys.find("ssl.endpoint.identification.algorithm") == "":
            context.check_hostname = False
        pem.load_own(context, _Prefixed(keys), "")
        return context


@dataclass(frozen=True)
class _Prefixed:
    """Keys whose names have no prefix any more."""

    keys: Keys

    def get_str(self, name: str) -> str:
        return self.keys.get_str(name)
