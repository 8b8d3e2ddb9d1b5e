"""Certificates for tests of TLS, as PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """One that signs certificates, whose own is `text`, in `file`."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self._own = builder.sign(self._key, hashes.SHA256())
        self.text = self._own.public_bytes(Encoding.PEM).decode()
        self.file = str(directory / f"{name}.pem")
        Path(self.file).write_text(self.text)

    def issue(
        self,
        name: str,
        hosts: Sequence[str] = ("127.0.0.1",),
        password: str | None = None,
        *,
        days: float = 1,
        subject: x509.Name | None = None,
    ) -> str:
        """The path of a new file with a private key and its certificate, for these addresses.

        It ends in so many days, or has ended before.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ipaddress.ip_address(host)) for host in hosts]
        certificate = (
            self._builder(subject or _name(name), key, days)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        hidden = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        file = self._directory / f"{name}.pem"
        file.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden)
            + certificate.public_bytes(Encoding.PEM)
        )
        return str(file)

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: float = 1
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        signer = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * DAY)
            .not_valid_after(now + days * DAY)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False
            )
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
