"""Key stores and trust stores of every kind that Kafka's keys allow."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from support.certificates import Authority

PASSWORD = "changeit"


class KeyStores:
    """A key with its certificate, and an authority to trust, in every form."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory)
        self.pem = self.authority.issue("broker")
        self.encrypted = self.authority.issue("broker-encrypted", password=PASSWORD)
        self.text = Path(self.pem).read_text()
        self.private, begin, certificate = self.text.partition("-----BEGIN CERTIFICATE")
        self.certificate = begin + certificate
        self.pkcs12 = str(directory / "broker.p12")
        self.jks = str(directory / "broker.jks")
        self.trust_pkcs12 = str(directory / "trust.p12")
        self.trust_jks = str(directory / "trust.jks")
        key = load_pem_private_key(self.private.encode(), None)
        own = x509.load_pem_x509_certificate(self.certificate.encode())
        signer = x509.load_pem_x509_certificate(self.authority.text.encode())
        store = pkcs12.serialize_key_and_certificates(
            b"broker",
            key,  # type: ignore[arg-type]  # a key of an elliptic curve
            own,
            [signer],
            BestAvailableEncryption(PASSWORD.encode()),
        )
        Path(self.pkcs12).write_bytes(store)
        keytool(
            "-importkeystore", "-srckeystore", self.pkcs12, "-srcstorepass", PASSWORD,
            "-destkeystore", self.jks, "-deststoretype", "JKS", "-deststorepass", PASSWORD,
        )  # fmt: skip
        for path, kind in ((self.trust_pkcs12, "PKCS12"), (self.trust_jks, "JKS")):
            keytool(
                "-importcert", "-noprompt", "-alias", "ca", "-file", self.authority.file,
                "-keystore", path, "-storetype", kind, "-storepass", PASSWORD,
            )  # fmt: skip


def keytool(*arguments: str) -> None:
    subprocess.run(["keytool", *arguments], check=True, capture_output=True)
