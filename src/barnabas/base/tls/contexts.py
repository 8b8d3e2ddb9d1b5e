"""The one place that makes an `ssl.SSLContext`, for clients and for servers.

`client_context` takes plain values; `configured_client` and `configured_server` take Kafka's keys
(`<prefix>ssl.keystore.location` and so on). A node's listeners begin with `new_context` and choose
their versions and cipher suites (`node/config/tls.py`).
"""

import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from barnabas.base.errors import ConfigError
from barnabas.base.tls.cipher_suites import TLS13_SUITES, openssl_name
from barnabas.base.tls.key_stores import PEM, KeyPair, StringKeys, own_key, trusted_certificates
from barnabas.base.tls.x509 import Certificate, CertificateError, read_certificate

SHARED_MEMORY: Final = "/dev/shm"
"""A file system of Linux that never reaches a disk."""
CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_OLD_VERSIONS: Final = frozenset({"TLSv1", "TLSv1.1", "SSLv2Hello", "SSLv3"})


class VersionKeys(StringKeys, Protocol):
    """Keys that name versions and cipher suites."""

    def get_list(self, name: str) -> list[str]:
        """The words of a list."""


class ListenerKeys(StringKeys, Protocol):
    """A configuration of listeners."""

    def get_bool(self, name: str) -> bool:
        """The value of a BOOLEAN key."""


@dataclass(frozen=True)
class PropertyKeys:
    """The keys of a properties file, by their names without prefix.

    Of several prefixes the first that is set wins.
    """

    values: Mapping[str, Any] = field(repr=False)
    prefixes: Sequence[str] = ("",)

    def find(self, name: str) -> str | None:
        """The value, which may be empty; None where it is not set.

        Blanks around it belong to passwords alone.
        """
        for prefix in self.prefixes:
            value = self.values.get(prefix + name)
            if value is not None:
                return str(value) if name.endswith("password") else str(value).strip()
        return None

    def key(self, name: str) -> str:
        """The name with the prefix under which it is set, for messages."""
        set_here = (prefix + name for prefix in self.prefixes if prefix + name in self.values)
        return next(set_here, self.prefixes[-1] + name)

    def get_str(self, name: str) -> str:
        """The value, empty where it is not set."""
        return self.find(name) or ""

    def get_list(self, name: str) -> list[str]:
        """The words of a list."""
        return [word.strip() for word in self.get_str(name).split(",") if word.strip()]

    def get_bool(self, name: str) -> bool:
        """Return whether the value is true."""
        return self.get_str(name).lower() == "true"


def new_context(*, is_server: bool) -> ssl.SSLContext:
    """A context that trusts nobody yet; a client's checks certificates and their names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def client_context(
    authorities: str | None = None,
    *,
    authorities_path: str | None = None,
    own: KeyPair | None = None,
    checks_names: bool = True,
    checks_certificate: bool = True,
) -> ssl.SSLContext:
    """A client's context. Raises OSError, ValueError.

    Trusted are `authorities` (in PEM) and the PEM file or directory `authorities_path`; without
    both, those of the system. `own` goes to servers that ask for a certificate.
    """
    if checks_certificate:
        is_directory = authorities_path is not None and os.path.isdir(authorities_path)
        context = ssl.create_default_context(
            cafile=None if is_directory else authorities_path,
            capath=authorities_path if is_directory else None,
            cadata=authorities,
        )
        context.check_hostname = checks_names
    else:
        context = new_context(is_server=False)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if own is not None:
        _load(context, own)
    return context


def configured_client(config: StringKeys, prefix: str = "") -> ssl.SSLContext:
    """A client's context by the keys behind a prefix. Raises ConfigError."""
    keys = _Lenient(config)
    trusted = trusted_certificates(keys, prefix)
    try:
        context = client_context(trusted)
    except (ssl.SSLError, ValueError) as error:
        raise _unfit(f"{prefix}ssl.truststore.location", error) from error
    if prefix and config.get_str(f"{prefix}ssl.endpoint.identification.algorithm") == "":
        context.check_hostname = False
    own = own_key(keys, prefix)
    if own is not None:
        load_key(context, own, f"{prefix}ssl.keystore.location")
    return context


def configured_server(config: ListenerKeys) -> ssl.SSLContext:
    """A server's context by the keys; `ssl.client.authentication` says what clients show.

    Raises ConfigError.
    """
    keys = _Lenient(config)
    own = own_key(keys)
    if own is None:
        raise ConfigError("ssl.keystore.location", "must be set for a listener that speaks https")
    trusted = trusted_certificates(keys)
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise _unfit("ssl.truststore.location", error) from error
    load_key(context, own, "ssl.keystore.location")
    wanted = config.get_str("ssl.client.authentication")
    if wanted == "REQUIRED" or config.get_bool("ssl.client.auth"):
        context.verify_mode = ssl.CERT_REQUIRED
    elif wanted == "REQUESTED":
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def https_client(values: Mapping[str, Any]) -> ssl.SSLContext:
    """A client's context by `ssl.…` of a properties file. Raises ConfigError."""
    keys = PropertyKeys(values)
    context = configured_client(keys)
    if keys.find("ssl.endpoint.identification.algorithm") == "":
        context.check_hostname = False
    return context


def https_listener(values: Mapping[str, Any]) -> ssl.SSLContext:
    """The context of https listeners, for HTTP/2 and HTTP/1.1, by `ssl.…` of a properties file.

    Raises ConfigError.
    """
    context = configured_server(PropertyKeys(values))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def _unfit(key: str, error: Exception) -> ConfigError:
    return ConfigError(key, f"the certificates cannot be used: {error}")


class _Lenient:
    """Keys that a configuration may lack; the password of a PEM store is ignored."""

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


def configured_key(config: StringKeys) -> KeyPair | None:
    """The key of the key store, or None if none is set. Raises ConfigError."""
    return own_key(_Lenient(config))


def trusted_pem(config: StringKeys) -> str | None:
    """The trusted certificates; None where no trust store is set. Raises ConfigError."""
    return trusted_certificates(_Lenient(config))


def load_key(context: ssl.SSLContext, own: KeyPair, key: str) -> Certificate:
    """Give a context its key and certificate. Raises ConfigError."""
    try:
        _load(context, own)
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = _why_unusable(own, error)
        raise ConfigError(key, f"the key or certificate cannot be used: {reason}") from None
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    first = begin + own.pem.partition(begin)[2].partition(end)[0] + end
    try:
        return read_certificate(ssl.PEM_cert_to_DER_cert(first))
    except (CertificateError, ValueError) as error:
        raise ConfigError(key, f"the certificate cannot be used: {error}") from None


def _load(context: ssl.SSLContext, own: KeyPair) -> None:
    with key_file(own.pem) as path:
        # As a function: without a password OpenSSL would ask for it on the terminal.
        context.load_cert_chain(path, password=lambda: own.password)


def _why_unusable(own: KeyPair, error: Exception) -> str:
    """Explain an error of OpenSSL, which says little, by its most likely cause."""
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


def choose_versions(context: ssl.SSLContext, keys: VersionKeys) -> None:
    """Take the versions of `ssl.enabled.protocols`. Raises ConfigError."""
    key = "ssl.enabled.protocols"
    names = keys.get_list(key)
    wanted = [_VERSIONS[name] for name in names if name in _VERSIONS]
    unknown = [name for name in names if name not in _VERSIONS and name not in _OLD_VERSIONS]
    if unknown:
        raise ConfigError(key, f"{unknown[0]!r} is not a version of TLS: choose TLSv1.2, TLSv1.3")
    if names and not wanted:
        raise ConfigError(key, f"{', '.join(names)} are not safe and not supported: add TLSv1.2")
    context.minimum_version = min(wanted, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(wanted, default=ssl.TLSVersion.TLSv1_3)
    protocol = keys.get_str("ssl.protocol")
    if protocol not in ("", "TLS", *_VERSIONS, *_OLD_VERSIONS):
        raise ConfigError("ssl.protocol", f"{protocol!r} is not TLS, TLSv1.2 or TLSv1.3")


def choose_suites(context: ssl.SSLContext, keys: VersionKeys) -> None:
    """Take the suites of `ssl.cipher.suites`, after the versions. Raises ConfigError."""
    key = "ssl.cipher.suites"
    wanted = keys.get_list(key)
    if not wanted:
        return
    modern = TLS13_SUITES.intersection(wanted)
    older = [(name, openssl_name(name)) for name in wanted if name not in TLS13_SUITES]
    known = [own for _, own in older if own is not None]
    if known:
        try:
            context.set_ciphers(":".join(known))
        except ssl.SSLError:
            known = []
    if not known and not modern:
        raise ConfigError(key, f"OpenSSL has none of {', '.join(wanted)}")
    if not known:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if not modern:
        context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    if context.minimum_version > context.maximum_version:
        raise ConfigError(key, "none of these belongs to a version of ssl.enabled.protocols")


@contextmanager
def key_file(text: str) -> Iterator[str]:
    """A file for OpenSSL, which reads keys from files only: ours alone, and gone after use."""
    directory = SHARED_MEMORY if os.path.isdir(SHARED_MEMORY) else None
    with tempfile.NamedTemporaryFile(dir=directory, prefix="barnabas-", suffix=".pem") as file:
        file.write(text.encode("latin-1"))
        file.flush()
        yield file.name
