"""Names in certificates, as Java's X500Principal.getName() of OpenJDK 17 prints them."""

import ssl
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from barnabas.base.tls.x509 import Certificate, CertificateError, name_of, read_certificate
from support.certificates import Authority

AS_JAVA_PRINTS = [
    (
        "3067310b3009060355040613024445310f300d06035504080c0642617965726e3111300f06035504070c084dc3bc6e6368656e31133011060355040a0c0a41636d652c20496e632e310c300a060355040b0c03522b443111300f06035504030c0862726f6b65722d31",
        "CN=broker-1,OU=R\\+D,O=Acme\\, Inc.,L=München,ST=Bayern,C=DE",
    ),
    (
        "3022310a300806035504030c01613114301206092a864886f70d01090116056140622e63",
        "1.2.840.113549.1.9.1=#16056140622e63,CN=a",
    ),
    (
        "304231133011060a0992268993f22c64011916036f726731173015060a0992268993f22c64011916076578616d706c6531123010060a0992268993f22c6401010c027531",
        "UID=u1,DC=example,DC=org",
    ),
    ("30163114300806035504030c01783008060355040b0c0179", "CN=x+OU=y"),
    ("301b3119301706035504030c10206c65616420616e6420747261696c20", "CN=\\ lead and trail\\ "),
    (
        "301b3119301706035504030c1023686173683d227122203c613e3b5c62",
        'CN=\\#hash\\=\\"q\\" \\<a\\>\\;\\\\b',
    ),
    ("301a310c300a06035504051303313233310a300806035504030c0173", "CN=s,2.5.4.5=#1303313233"),
    (
        "3034310d300b06035504090c044d61696e310b3009060355040c0c024472310a3008060355042a0c0147310a300806035504040c0153",
        "2.5.4.4=#0c0153,2.5.4.42=#0c0147,2.5.4.12=#0c024472,STREET=Main",
    ),
    ("30153113301106035504030c0a6e756c00696e09746162", "CN=nul\\00in\ttab"),
    ("3011310f300d06035504031e060062006d0070", "CN=\\00b\\00m\\00p"),
    ("300e310c300a06032a03040c036f6464", "1.2.3.4=#0c036f6464"),
    ("30163114301206035504030c0b74776f2020737061636573", "CN=two  spaces"),
    ("3018310a300806035504030c0161310a300806035504030c0162", "CN=b,CN=a"),
    ("30193117301506035504030c0e636166c3a920e4b8ad202a5f4021", "CN=café 中 *_@!"),
    ("3000", ""),
    # An attribute that is not text, one of four bytes a letter, and returns at both ends.
    ("300c310a30080603550406120131", "C=#120131"),
    ("300f310d300b06035504071c0400000061", "L=#1c0400000061"),
    ("300e310c300a060355040a0c030d610d", "O=\\\ra\\\r"),
]


@pytest.mark.parametrize(("der", "text"), AS_JAVA_PRINTS, ids=[text for _, text in AS_JAVA_PRINTS])
def test_a_name_is_written_as_java_writes_it(der: str, text: str) -> None:
    assert name_of(bytes.fromhex(der)) == text


def certificate(tmp_path: Path, **options: Any) -> bytes:
    text = Path(Authority(tmp_path).issue("broker", **options)).read_text()
    return ssl.PEM_cert_to_DER_cert("-----BEGIN CERT" + text.partition("-----BEGIN CERT")[2])


def test_what_a_certificate_says_is_read(tmp_path: Path) -> None:
    der = certificate(tmp_path, hosts=["127.0.0.1", "::1"], days=3)
    read = read_certificate(der)
    theirs = x509.load_der_x509_certificate(der)
    assert read.subject == "CN=broker"
    assert read.not_before == theirs.not_valid_before_utc
    assert read.not_after == theirs.not_valid_after_utc
    assert read.alternative_names == {"127.0.0.1", "::1"}


def test_a_certificate_that_is_cut_or_changed_raises_one_error(tmp_path: Path) -> None:
    der = certificate(tmp_path)
    for cut in range(len(der)):
        with pytest.raises(CertificateError):
            read_certificate(der[:cut])
    for position in range(len(der)):
        changed = bytearray(der)
        changed[position] ^= 0xFF
        with suppress(CertificateError):
            read_certificate(bytes(changed))


@pytest.mark.parametrize(
    ("host", "matches"),
    [
        ("broker-1.example.org", True),
        ("BROKER-1.example.org.", True),
        ("a.wild.example.org", True),
        ("a.b.wild.example.org", False),
        ("wild.example.org", False),
        ("10.0.0.1", True),
        ("10.0.0.2", False),
        ("localhost", False),
    ],
)
def test_a_certificate_is_for_its_hosts(host: str, matches: bool) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    names = frozenset({"broker-1.Example.org", "*.wild.example.org"})
    read = Certificate("CN=x", moment, moment, names, frozenset({"10.0.0.1"}))
    assert read.is_for(host) == matches
