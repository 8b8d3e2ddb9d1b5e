"""A certificate for the servers' TLS listeners: RSA of 2048 bits, as most brokers have."""

import subprocess
from pathlib import Path


def make_certificate(path: Path) -> None:
    """Write a key and a certificate of its own for loopback. Raises RuntimeError."""
    key, certificate = path.with_suffix(".key"), path.with_suffix(".crt")
    done = subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(key), "-out", str(certificate),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"openssl made no certificate: {done.stderr}")
    path.write_text(key.read_text() + certificate.read_text())
