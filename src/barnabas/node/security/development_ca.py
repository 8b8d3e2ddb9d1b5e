"""A certificate authority for development: makes certificates, and says what is in one.

For `barnabas cert`, `barnabas dev --secure` and `barnabas.Cluster(security=...)`. Everything is
PEM text; a node's or client's file has its private key (PKCS 8), its certificate and those that
sign it, which is what Kafka's `ssl.keystore.location` takes with `ssl.keystore.type=PEM`. Keys are
of the curve P-256, which every client of Kafka knows and which cost little to make.

Needs the package `cryptography` (the extra `security`).
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificateIssuerPrivateKeyTypes,
    CertificatePublicKeyTypes,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from barnabas.base.tls.x509 import name_of, stands_for

CLOCK_SKEW = timedelta(hours=1)
"""Certificates begin this long before now: clocks of other machines may be behind."""
NAME_SIZE_MAX = 64
"""Of a common name (X.520)."""
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_CERTIFICATE = re.compile(
    r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", flags=re.DOTALL
)
_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL
)


class CertificateError(ValueError):
    """A certificate cannot be made as requested, or a text holds none. It never quotes a key."""


class Usage(Enum):
    """The use of a certificate: a node is a server, and a client of the other nodes."""

    NODE = "node"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key and the certificates that belong to it, its own first; all PEM."""

    certificates: str
    key: str = field(repr=False)

    @property
    def text(self) -> str:
        """Key and certificates as one file has them."""
        return self.key + self.certificates


@dataclass(frozen=True, slots=True)
class Description:
    """One certificate in words."""

    subject: str
    """Its distinguished name as RFC 2253 writes it, as in Kafka's principals."""
    issuer: str
    hosts: tuple[str, ...]
    """Host names and addresses that it stands for."""
    not_before: datetime
    not_after: datetime
    is_authority: bool
    usages: tuple[str, ...]
    fingerprint: str
    """SHA-256, in hexadecimal."""

    def days_left(self, now: datetime) -> int:
        """Whole days until it ends; negative once it has."""
        return (self.not_after - now).days

    def fits(self, host: str) -> bool:
        """Return whether a client that connects to `host` accepts it (RFC 6125)."""
        return stands_for(self.hosts, host)


def new_authority(name: str, *, days: int, now: datetime) -> Identity:
    """An authority that signs certificates of nodes and clients. Raises CertificateError."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    builder = (
        _builder(subject, subject, key.public_key(), days, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _identity(key, builder.sign(key, hashes.SHA256()))


def issue(
    authority: Identity, name: str, usage: Usage, hosts: Sequence[str], *, days: int, now: datetime
) -> Identity:
    """A key with a certificate for `hosts`, signed by `authority`. Raises CertificateError."""
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = x509.ExtendedKeyUsage(_purposes(usage))
    return _sign(authority, _subject(name), key, _host_names(hosts), purposes, days, now)


def renew(authority: Identity, old: Identity, *, days: int, now: datetime) -> Identity:
    """The same subject, hosts, purposes and key with a new span of time.

    Raises CertificateError, for a certificate that another authority has signed too: who trusts
    that one would not trust the new certificate.
    """
    certificate = _load(old.certificates)[0]
    signer = _load(authority.certificates)[0]
    try:
        certificate.verify_directly_issued_by(signer)
    except Exception as error:
        raise CertificateError("it was signed by another authority") from error
    hosts: list[x509.GeneralName] = []
    purposes = x509.ExtendedKeyUsage(_purposes(Usage.CLIENT))
    for extension in certificate.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            hosts = list(extension.value)
        elif isinstance(extension.value, x509.ExtendedKeyUsage):
            purposes = extension.value
    return _sign(authority, certificate.subject, _key(old), hosts, purposes, days, now)


def identity_of(text: str) -> Identity:
    """Key and certificates from the text of a file or of two. Raises CertificateError."""
    certificates = _CERTIFICATE.findall(text)
    key = _KEY.search(text)
    if not certificates:
        raise CertificateError("there is no certificate in it")
    if key is None:
        raise CertificateError("there is no private key in it")
    identity = Identity("".join(f"{part}\n" for part in certificates), f"{key[0]}\n")
    own = _load(identity.certificates)[0]
    if _public_bytes(_key(identity).public_key()) != _public_bytes(own.public_key()):
        raise CertificateError("the private key does not belong to the certificate")
    return identity


def describe(text: str) -> list[Description]:
    """The content of the certificates in a PEM text, in order. Raises CertificateError."""
    return [_describe(certificate) for certificate in _load(text)]


# -- making


def _subject(name: str) -> x509.Name:
    if not name or len(name) > NAME_SIZE_MAX or not name.isprintable():
        raise CertificateError(f"a name has 1 to {NAME_SIZE_MAX} characters that can be printed")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host_names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in dict.fromkeys(hosts):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host.strip("[]"))))
        except ValueError:
            labels = host.removeprefix("*.").split(".")
            if not all(_LABEL.fullmatch(label) for label in labels):
                raise CertificateError(f"{host!r} is not a host name or address") from None
            names.append(x509.DNSName(host.lower()))
    return names


def _purposes(usage: Usage) -> list[x509.ObjectIdentifier]:
    if usage is Usage.NODE:
        return [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return [ExtendedKeyUsageOID.CLIENT_AUTH]


def _sign(
    authority: Identity,
    subject: x509.Name,
    key: CertificateIssuerPrivateKeyTypes,
    hosts: Sequence[x509.GeneralName],
    purposes: x509.ExtendedKeyUsage,
    days: int,
    now: datetime,
) -> Identity:
    signer = _load(authority.certificates)[0]
    if now > signer.not_valid_after_utc:
        raise CertificateError("the authority's own certificate has expired")
    signing_key = _key(authority)
    builder = (
        _builder(subject, signer.subject, key.public_key(), days, now, signer.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(purposes, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
    own = _identity(key, builder.sign(signing_key, hashes.SHA256()))
    return Identity(own.certificates + authority.certificates, own.key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: CertificatePublicKeyTypes,
    days: int,
    now: datetime,
    latest: datetime | None = None,
) -> x509.CertificateBuilder:
    """The common fields of all certificates. None outlives its authority, whose end is `latest`."""
    end = now + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end if latest is None else min(end, latest))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _identity(key: CertificateIssuerPrivateKeyTypes, certificate: x509.Certificate) -> Identity:
    hidden = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Identity(certificate.public_bytes(Encoding.PEM).decode(), hidden.decode())


# -- reading


def _load(text: str) -> list[x509.Certificate]:
    blocks = _CERTIFICATE.findall(text)
    if not blocks:
        raise CertificateError("there is no certificate in it")
    try:
        return [x509.load_pem_x509_certificate(part.encode()) for part in blocks]
    except ValueError as error:
        raise CertificateError("a certificate in it cannot be read") from error


def _key(identity: Identity) -> CertificateIssuerPrivateKeyTypes:
    try:
        key = load_pem_private_key(identity.key.encode(), password=None)
    except TypeError as error:
        raise CertificateError("the private key is encrypted") from error
    except ValueError as error:
        raise CertificateError("the private key cannot be read") from error
    return key  # type: ignore[return-value]  # other kinds sign nothing, and fail there


def _public_bytes(key: object) -> bytes:
    encoded: bytes = key.public_bytes(  # type: ignore[attr-defined]  # every public key has it
        Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    )
    return encoded


def _describe(certificate: x509.Certificate) -> Description:
    hosts: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()
    is_authority = False
    for extension in certificate.extensions:
        value = extension.value
        if isinstance(value, x509.SubjectAlternativeName):
            hosts = tuple(_text(name) for name in value)
        elif isinstance(value, x509.ExtendedKeyUsage):
            usages = tuple(_PURPOSES.get(purpose, purpose.dotted_string) for purpose in value)
        elif isinstance(value, x509.BasicConstraints):
            is_authority = value.ca
    return Description(
        name_of(certificate.subject.public_bytes()),
        name_of(certificate.issuer.public_bytes()),
        hosts,
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        is_authority,
        usages,
        certificate.fingerprint(hashes.SHA256()).hex(),
    )


_PURPOSES = {
    ExtendedKeyUsageOID.SERVER_AUTH: "server",
    ExtendedKeyUsageOID.CLIENT_AUTH: "client",
}


def _text(name: x509.GeneralName) -> str:
    return str(name.value)
