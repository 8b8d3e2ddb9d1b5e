"""Certificates of the development authority: what is in them, and who trusts them."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from barnabas.node.security.development_ca import (
    CertificateError,
    Identity,
    Usage,
    describe,
    identity_of,
    issue,
    new_authority,
    renew,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AUTHORITY = new_authority("lab", days=100, now=NOW)
HOSTS = ["Kafka-1.example.com", "*.example.org", "10.0.0.7", "::1"]


def node(days: int = 10) -> Identity:
    return issue(AUTHORITY, "node-1", Usage.NODE, HOSTS, days=days, now=NOW)


def test_a_node_s_certificate_says_what_it_is_for() -> None:
    own, authority = describe(node().text)
    assert (own.subject, own.issuer) == ("CN=node-1", "CN=lab")
    assert own.hosts == ("kafka-1.example.com", "*.example.org", "10.0.0.7", "::1")
    assert own.usages == ("server", "client")
    assert not own.is_authority
    assert authority.is_authority
    assert authority.subject == "CN=lab"


def test_names_are_those_of_principals() -> None:
    name = x509.Name([x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c")])
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW)
    text = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    assert describe(text)[0].subject == "1.2.840.113549.1.9.1=#16056140622e63"


def test_a_client_is_no_server() -> None:
    (own, _) = describe(issue(AUTHORITY, "alice", Usage.CLIENT, (), days=1, now=NOW).text)
    assert own.usages == ("client",)
    assert own.hosts == ()


@pytest.mark.parametrize(
    ("host", "fits"),
    [
        ("kafka-1.example.com", True),
        ("KAFKA-1.example.com.", True),
        ("10.0.0.7", True),
        ("[::1]", True),
        ("0:0:0:0:0:0:0:1", True),
        ("a.example.org", True),
        ("a.b.example.org", False),
        ("example.org", False),
        (".example.org", False),
        ("10.0.0.70", False),
        ("kafka-2.example.com", False),
    ],
)
def test_hosts_that_fit(host: str, fits: bool) -> None:
    assert describe(node().text)[0].fits(host) is fits


def test_time() -> None:
    own = describe(node(days=10).text)[0]
    assert own.not_before == NOW - timedelta(hours=1)
    assert own.not_after == NOW + timedelta(days=10)
    assert own.days_left(NOW) == 10
    assert own.days_left(NOW + timedelta(days=11)) < 0


def test_no_certificate_outlives_its_authority() -> None:
    own, authority = describe(node(days=1000).text)
    assert own.not_after == authority.not_after
    with pytest.raises(CertificateError, match="expired"):
        issue(AUTHORITY, "late", Usage.NODE, HOSTS, days=1, now=NOW + timedelta(days=101))


def test_a_renewed_certificate_has_the_same_key_and_hosts() -> None:
    old = node(days=1)
    new = renew(AUTHORITY, old, days=20, now=NOW + timedelta(days=2))
    before, after = describe(old.text)[0], describe(new.text)[0]
    assert new.key == old.key
    assert (after.subject, after.hosts, after.usages) == (
        before.subject,
        before.hosts,
        before.usages,
    )
    assert after.not_after == NOW + timedelta(days=22)


def test_another_authority_renews_nothing() -> None:
    other = new_authority("lab", days=100, now=NOW)
    with pytest.raises(CertificateError, match="another authority"):
        renew(other, node(), days=1, now=NOW)


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(CertificateError, match="name"):
        issue(AUTHORITY, name, Usage.CLIENT, (), days=1, now=NOW)


@pytest.mark.parametrize("host", ["", "a b", "http://a", "-a", "a..b", "*", "a.*.b"])
def test_hosts_that_cannot_be(host: str) -> None:
    with pytest.raises(CertificateError, match="host name or address"):
        issue(AUTHORITY, "n", Usage.NODE, [host], days=1, now=NOW)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no certificate"),
        (AUTHORITY.certificates, "no private key"),
        (AUTHORITY.key, "no certificate"),
        (AUTHORITY.key + node().certificates, "does not belong to the certificate"),
        (
            "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
            + AUTHORITY.certificates,
            "cannot be read",
        ),
    ],
)
def test_texts_that_hold_no_identity(text: str, words: str) -> None:
    with pytest.raises(CertificateError, match=words) as caught:
        identity_of(text)
    assert "BEGIN" not in str(caught.value)


def test_keys_are_not_shown() -> None:
    assert "PRIVATE" not in repr(AUTHORITY)
    assert identity_of(AUTHORITY.text) == AUTHORITY


def test_openssl_trusts_them(tmp_path: Path) -> None:
    """With the strict checks that Python 3.13 has by default."""
    now = datetime.now(UTC)
    authority = new_authority("lab", days=2, now=now)
    own = issue(authority, "node-1", Usage.NODE, ["localhost"], days=1, now=now)
    path = tmp_path / "node.pem"
    path.write_text(own.text)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(path)
    client = ssl.create_default_context(cadata=authority.certificates)
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for end in (asking, answering):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert asking.version() == answering.version() == "TLSv1.3"
