"""TLS of https, as Kafka's keys name it: `<prefix>ssl.keystore.location` and so on."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from barnabas.base.config.errors import ConfigError
from barnabas.base.tls.key_stores import (
    PEM,
    KeyPair,
    StringKeys,
    own_key,
    trusted_certificates,
)
from barnabas.base.tls.x509 import Certificate, CertificateError, read_certificate

SHARED_MEMORY: Final = "/dev/shm"
"""A file system of Linux that never reaches a disk."""


class ListenerKeys(StringKeys, Protocol):
    """A configuration of listeners."""

    def get_bool(self, name: str) -> bool:
        """The value of a BOOLEAN key."""


class _Lenient:
    """Keys of which a configuration may lack some; a store's password says nothing beside PEM."""

    def __init__(self, config: StringKeys) -> None:
        self._config = config

    def get_str(self, name: str) -> str:
        store, dot, last = name.rpartition(".")
        if last == "password" and store.endswith("store"):
            if self.get_str(f"{store}{dot}type").upper() == PEM:
                return ""
            if not self.get_str(f"{store}{dot}location"):
                return ""
        try:
            return self._config.get_str(name) or ""
        except KeyError:
            return ""


def trusted_pem(config: StringKeys) -> str | None:
    """The certificates of whom to trust, None where no store is set. Raises ConfigError."""
    return trusted_certificates(_Lenient(config))


def client_context(config: StringKeys, prefix: str) -> ssl.SSLContext:
    """TLS as a client. Raises ConfigError."""
    trusted = trusted_certificates(_Lenient(config), prefix)
    try:
        context = ssl.create_default_context(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{prefix}ssl.truststore.location", f"the certificates cannot be used: {error}"
        ) from error
    if prefix and config.get_str(f"{prefix}ssl.endpoint.identification.algorithm") == "":
        context.check_hostname = False
    load_own(context, config, prefix)
    return context


def server_context(config: ListenerKeys) -> ssl.SSLContext:
    """TLS of https listeners: `ssl.client.authentication` says what clients show.

    Raises ConfigError.
    """
    keys = _Lenient(config)
    if own_key(keys) is None:
        raise ConfigError("ssl.keystore.location", "must be set for a listener that speaks https")
    trusted = trusted_certificates(keys)
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            "ssl.truststore.location", f"the certificates cannot be used: {error}"
        ) from error
    load_own(context, config, "")
    wanted = config.get_str("ssl.client.authentication")
    if wanted == "REQUIRED" or config.get_bool("ssl.client.auth"):
        context.verify_mode = ssl.CERT_REQUIRED
    elif wanted == "REQUESTED":
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def load_own(context: ssl.SSLContext, config: StringKeys, prefix: str) -> None:
    """Give a context the private key and certificates of the keystore, if one is set."""
    own = own_key(_Lenient(config), prefix)
    if own is not None:
        load_key(context, own, f"{prefix}ssl.keystore.location")


def load_key(context: ssl.SSLContext, own: KeyPair, key: str) -> Certificate:
    """Have a context show a certificate. Raises ConfigError."""
    try:
        with key_file(own.pem) as path:
            context.load_cert_chain(path, password=lambda: own.password)
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = _why_unusable(own, error)
        raise ConfigError(key, f"the key or certificate cannot be used: {reason}") from None
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = begin + own.pem.partition(begin)[2].partition(end)[0] + end
    try:
        return read_certificate(ssl.PEM_cert_to_DER_cert(first))
    except (CertificateError, ValueError) as error:
        raise ConfigError(key, f"the certificate cannot be used: {error}") from None


def _why_unusable(own: KeyPair, error: Exception) -> str:
    """What OpenSSL, which says little, most likely means."""
    reason = getattr(error, "reason", None)
    if "PRIVATE KEY-----" not in own.pem:
        return "there is no private key"
    if "-----BEGIN CERTIFICATE-----" not in own.pem:
        return "there is no certificate"
    if reason == "KEY_VALUES_MISMATCH":
        return "the private key is not that of the first certificate"
    if "ENCRYPTED" in own.pem and isinstance(error, ssl.SSLError):
        said = "is not the private key's" if own.password else "must be set: the key is encrypted"
        return f"ssl.key.password {said}"
    return reason or str(error)


def trust(context: ssl.SSLContext, certificates: str | None) -> None:
    """Trust those certificates, or the system's. Raises ConfigError."""
    if certificates is None:
        context.load_default_certs(
            ssl.Purpose.SERVER_AUTH
            if context.protocol == ssl.PROTOCOL_TLS_CLIENT
            else ssl.Purpose.CLIENT_AUTH
        )
        return
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            "ssl.truststore.location", f"the certificates cannot be used: {error}"
        ) from None


@contextmanager
def key_file(text: str) -> Iterator[str]:
    """A file for OpenSSL, which reads keys from files only: ours alone, and gone after use."""
    directory = SHARED_MEMORY if os.path.isdir(SHARED_MEMORY) else None
    with tempfile.NamedTemporaryFile(dir=directory, prefix="barnabas-", suffix=".pem") as file:
        file.write(text.encode("latin-1"))
        file.flush()
        yield file.name
