"""Key stores and trust stores, as Kafka's keys name them, turned into PEM.

Kafka's keys are `ssl.keystore.location` and so on, behind a prefix. A file is read for what it
is: PEM, PKCS 12 or Java's own JKS (Java itself takes a PKCS 12 file for either of the two). PKCS 12
needs the package `cryptography`; all else is read without it.
"""

import os
from base64 import encodebytes
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from barnabas.base.errors import ConfigError, install_hint
from barnabas.base.tls import jks

BEGIN: Final = "-----BEGIN "
PEM: Final = "PEM"
TRUST_PASSWORD_KEY: Final = "ssl.truststore.password"
STORE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of a store or PEM file: a path may also be that of a device without end."""
_BEGIN_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
_END_CERTIFICATE: Final = "-----END CERTIFICATE-----"
_PRIVATE: Final = "PRIVATE KEY-----"
_TYPES: Final = ("", "JKS", "PKCS12", PEM)
_NEEDS_CRYPTOGRAPHY: Final = (
    f"to read a PKCS 12 file, {install_hint('security')}, or turn it into a PEM file "
    "(`openssl pkcs12 -in FILE -nodes`) and set the type PEM"
)


class StringKeys(Protocol):
    """A configuration, as far as it is asked here."""

    def get_str(self, name: str) -> str:
        """The value of a key, empty where it is not set."""


class StoreKind(StrEnum):
    """Kinds of store files, by Java's names."""

    JKS = "JKS"
    PKCS12 = "PKCS12"
    PEM = "PEM"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key and its certificates, the key's own first, in PEM form."""

    pem: str = field(repr=False)
    password: str = field(repr=False)
    """Of the key, empty where it is not encrypted."""

    def parts(self) -> tuple[str, str]:
        """The private key, and the certificates."""
        pieces = [BEGIN + piece for piece in self.pem.split(BEGIN)[1:]]
        keys = [piece.strip() for piece in pieces if _PRIVATE in piece.partition("\n")[0]]
        return "".join(f"{key}\n" for key in keys), only_certificates("", self.pem)


def own_key(config: StringKeys, prefix: str = "") -> KeyPair | None:
    """The key and certificates of a side; None where no store is set. Raises ConfigError."""
    key = f"{prefix}ssl.keystore"
    kind = _kind(config, key)
    location = config.get_str(f"{key}.location")
    private, chain = config.get_str(f"{key}.key"), config.get_str(f"{key}.certificate.chain")
    password = config.get_str(f"{key}.password")
    key_password = config.get_str(f"{prefix}ssl.key.password")
    if private or chain:
        name = f"{key}.key" if private else f"{key}.certificate.chain"
        if kind not in ("", PEM):
            raise ConfigError(name, f"is only for the type PEM, but {key}.type is {kind}")
        if not chain:
            raise ConfigError(name, f"is set, but {key}.certificate.chain is not")
        if not private:
            raise ConfigError(name, f"is set, but {key}.key is not")
        if location:
            raise ConfigError(name, f"cannot be set together with {key}.location")
        if password:
            raise ConfigError(f"{key}.password", "PEM has none: only ssl.key.password may be set")
        return KeyPair(f"{private.strip()}\n{chain.strip()}\n", key_password)
    if not location:
        if password:
            raise ConfigError(f"{key}.password", f"is set, but {key}.location is not")
        return None
    data = _read(f"{key}.location", location)
    if _is_pem(data):
        if kind == PEM and password:
            raise ConfigError(f"{key}.password", "PEM has none: only ssl.key.password may be set")
        return KeyPair(data.decode("latin-1"), key_password)
    _check_is_no_pem(f"{key}.location", location, kind)
    if not password:
        raise ConfigError(f"{key}.password", f"must be set for the key store {location}")
    if data.startswith(jks.MAGIC):
        return _jks_key(f"{key}.location", location, data, password, key_password)
    return _pkcs12_key(f"{key}.location", location, data, password)


def key_of_files(certificate_path: str, key_path: str | None = None, password: str = "") -> KeyPair:
    """The key and certificates of PEM files; `key_path` is for a key in a separate file.

    Raises OSError.
    """
    texts = []
    for path in (key_path, certificate_path):
        if path is not None:
            with open(path, encoding="latin-1") as file:
                texts.append(file.read(STORE_BYTES_MAX))
    return KeyPair("\n".join(texts), password)


def store_kind(location: str) -> StoreKind:
    """The kind of a store's file, by its contents. Raises OSError."""
    with open(location, "rb") as file:
        data = file.read(STORE_BYTES_MAX)
    if _is_pem(data):
        return StoreKind.PEM
    return StoreKind.JKS if data.startswith(jks.MAGIC) else StoreKind.PKCS12


def trusted_certificates(config: StringKeys, prefix: str = "") -> str | None:
    """The trusted certificates in PEM form; None where no store is set. Raises ConfigError."""
    key = f"{prefix}ssl.truststore"
    kind = _kind(config, key)
    location, inline = config.get_str(f"{key}.location"), config.get_str(f"{key}.certificates")
    password = config.get_str(prefix + TRUST_PASSWORD_KEY)
    if inline:
        name = f"{key}.certificates"
        if kind not in ("", PEM):
            raise ConfigError(name, f"is only for the type PEM, but {key}.type is {kind}")
        if location:
            raise ConfigError(name, f"cannot be set together with {key}.location")
        return only_certificates(name, inline)
    if not location:
        if password:
            raise ConfigError(prefix + TRUST_PASSWORD_KEY, f"is set, but {key}.location is not")
        return None
    name = f"{key}.location"
    data = _read(name, location)
    if _is_pem(data):
        if kind == PEM and password:
            raise ConfigError(prefix + TRUST_PASSWORD_KEY, "PEM has none")
        return only_certificates(name, data.decode("latin-1"))
    _check_is_no_pem(name, location, kind)
    if data.startswith(jks.MAGIC):
        try:
            store = jks.read_jks(data, password or None)
        except jks.KeyStoreError as error:
            raise ConfigError(name, f"{location} cannot be read: {error}") from None
        certificates = store.trusted
    else:
        certificates = _pkcs12_certificates(name, location, data, password)
    if not certificates:
        raise ConfigError(name, f"{location} holds no trusted certificate")
    return "".join(map(pem_certificate, certificates))


def store_files(config: StringKeys) -> list[str]:
    """The files of both stores, as far as they are set."""
    names = ("keystore", "truststore")
    locations = [config.get_str(f"ssl.{name}.location") for name in names]
    return [location for location in locations if location]


def only_certificates(key: str, text: str) -> str:
    """The certificates of a PEM text, without what stands beside them. Raises ConfigError."""
    certificates = []
    for piece in text.split(_BEGIN_CERTIFICATE)[1:]:
        body, end, _ = piece.partition(_END_CERTIFICATE)
        if not end:
            raise ConfigError(key, "a certificate has no end")
        if not body.isascii():
            raise ConfigError(key, "a certificate is damaged")
        certificates.append(f"{_BEGIN_CERTIFICATE}{body}{_END_CERTIFICATE}\n")
    if not certificates:
        raise ConfigError(key, "there is no certificate in the PEM text")
    return "".join(certificates)


def pem_certificate(der: bytes) -> str:
    """One certificate as text."""
    return f"{_BEGIN_CERTIFICATE}\n{encodebytes(der).decode()}{_END_CERTIFICATE}\n"


def _kind(config: StringKeys, key: str) -> str:
    kind = config.get_str(f"{key}.type").upper()
    if kind not in _TYPES:
        raise ConfigError(f"{key}.type", f"{kind} is not supported: choose PEM, PKCS12 or JKS")
    return kind


def _read(key: str, location: str) -> bytes:
    try:
        with open(os.path.abspath(location), "rb") as file:
            data = file.read(STORE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(key, f"cannot be read: {error}") from error
    if len(data) > STORE_BYTES_MAX:
        raise ConfigError(
            key, f"{location} has more than {STORE_BYTES_MAX} bytes: it is not a store"
        )
    return data


def _is_pem(data: bytes) -> bool:
    return BEGIN.encode() in data


def _check_is_no_pem(key: str, location: str, kind: str) -> None:
    if kind == PEM:
        raise ConfigError(key, f"{location} is not a PEM file")


def _jks_key(key: str, location: str, data: bytes, password: str, key_password: str) -> KeyPair:
    try:
        store = jks.read_jks(data, password, key_password or None)
    except jks.KeyStoreError as error:
        raise ConfigError(key, f"{location} cannot be read: {error}") from None
    if not store.keys:
        raise ConfigError(key, f"{location} holds no private key")
    private = encodebytes(store.keys[0]).decode()
    text = f"{BEGIN}PRIVATE KEY-----\n{private}-----END PRIVATE KEY-----\n"
    return KeyPair(text + "".join(map(pem_certificate, store.chains[0])), "")


def _pkcs12_key(key: str, location: str, data: bytes, password: str) -> KeyPair:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise ConfigError(key, _NEEDS_CRYPTOGRAPHY) from None
    try:
        store = pkcs12.load_pkcs12(data, password.encode())
    except ValueError as error:
        raise ConfigError(key, f"{location} cannot be read: {error}") from None
    if store.key is None or store.cert is None:
        raise ConfigError(key, f"{location} holds no private key")
    private = store.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain = [store.cert, *store.additional_certs]
    certificates = [
        each.certificate.public_bytes(serialization.Encoding.PEM).decode() for each in chain
    ]
    return KeyPair(private.decode() + "".join(certificates), "")


def _pkcs12_certificates(key: str, location: str, data: bytes, password: str) -> list[bytes]:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
    except ImportError:
        raise ConfigError(key, _NEEDS_CRYPTOGRAPHY) from None
    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password else None)
    except ValueError as error:
        raise ConfigError(key, f"{location} cannot be read: {error}") from None
    return [each.certificate.public_bytes(Encoding.DER) for each in store.additional_certs]
