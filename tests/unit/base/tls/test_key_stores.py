"""Stores of keys and of trust in every form that Kafka's keys allow, and their errors."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
)

from barnabas.base.errors import ConfigError
from barnabas.base.tls import jks
from barnabas.base.tls.key_stores import STORE_BYTES_MAX, own_key, trusted_certificates
from support.key_stores import PASSWORD, KeyStores


class Keys(dict[str, str]):
    """Keys without their `ssl.`."""

    def get_str(self, name: str) -> str:
        return self.get(name.removeprefix("ssl."), "")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> KeyStores:
    return KeyStores(tmp_path_factory.mktemp("stores"))


@pytest.mark.parametrize("form", ["PEM", "encrypted", "inline", "PKCS12", "JKS", "PKCS12 as JKS"])
def test_a_key_is_read_in_every_form(files: KeyStores, form: str) -> None:
    keys = {
        "PEM": Keys({"keystore.type": "PEM", "keystore.location": files.pem}),
        "encrypted": Keys(
            {
                "keystore.type": "PEM",
                "keystore.location": files.encrypted,
                "key.password": PASSWORD,
            }
        ),
        "inline": Keys(
            {
                "keystore.type": "PEM",
                "keystore.key": files.private,
                "keystore.certificate.chain": files.certificate,
            }
        ),
        "PKCS12": Keys(
            {
                "keystore.type": "PKCS12",
                "keystore.location": files.pkcs12,
                "keystore.password": PASSWORD,
            }
        ),
        "JKS": Keys(
            {
                "keystore.type": "JKS",
                "keystore.location": files.jks,
                "keystore.password": PASSWORD,
                "key.password": PASSWORD,
            }
        ),
        "PKCS12 as JKS": Keys(
            {
                "keystore.type": "JKS",
                "keystore.location": files.pkcs12,
                "keystore.password": PASSWORD,
            }
        ),
    }[form]
    own = own_key(keys)
    assert own is not None
    hidden = own.password.encode() if form == "encrypted" else None
    key = load_pem_private_key(own.pem.encode(), hidden)
    certificate = x509.load_pem_x509_certificates(own.pem.encode())[0]
    assert key.public_key() == certificate.public_key()
    assert PASSWORD not in repr(own)
    assert "PRIVATE" not in repr(own)


@pytest.mark.parametrize("form", ["PEM", "inline", "PKCS12", "JKS", "JKS without a password"])
def test_whom_to_trust_is_read_in_every_form(files: KeyStores, form: str) -> None:
    keys = {
        "PEM": Keys({"truststore.type": "PEM", "truststore.location": files.authority.file}),
        "inline": Keys({"truststore.type": "PEM", "truststore.certificates": files.authority.text}),
        "PKCS12": Keys(
            {
                "truststore.type": "PKCS12",
                "truststore.location": files.trust_pkcs12,
                "truststore.password": PASSWORD,
            }
        ),
        "JKS": Keys({"truststore.location": files.trust_jks, "truststore.password": PASSWORD}),
        "JKS without a password": Keys({"truststore.location": files.trust_jks}),
    }[form]
    found = trusted_certificates(keys)
    assert found is not None
    (certificate,) = x509.load_pem_x509_certificates(found.encode())
    assert certificate == x509.load_pem_x509_certificate(files.authority.text.encode())


def test_without_stores_there_is_none() -> None:
    assert own_key(Keys()) is None
    assert trusted_certificates(Keys()) is None


@pytest.mark.parametrize(
    ("given", "key", "message"),
    [
        ({"keystore.location": "/nowhere"}, "keystore.location", "cannot be read"),
        ({"keystore.type": "BKS"}, "keystore.type", "BKS is not supported"),
        (
            {"keystore.type": "PEM", "keystore.location": "{jks}"},
            "keystore.location",
            "is not a PEM file",
        ),
        ({"keystore.location": "{jks}"}, "keystore.password", "must be set"),
        (
            {"keystore.location": "{jks}", "keystore.password": "hunter2"},
            "keystore.location",
            "the password is wrong",
        ),
        (
            {
                "keystore.location": "{jks}",
                "keystore.password": PASSWORD,
                "key.password": "hunter2",
            },
            "keystore.location",
            "the password of the private key is wrong",
        ),
        (
            {"keystore.location": "{pkcs12}", "keystore.password": "hunter2"},
            "keystore.location",
            "cannot be read",
        ),
        (
            {"keystore.location": "{trust_jks}", "keystore.password": PASSWORD},
            "keystore.location",
            "holds no private key",
        ),
        (
            {"keystore.location": "{trust_pkcs12}", "keystore.password": PASSWORD},
            "keystore.location",
            "holds no private key",
        ),
        ({"keystore.key": "x", "keystore.type": "JKS"}, "keystore.key", "only for the type PEM"),
        ({"keystore.key": "x", "keystore.type": "PEM"}, "keystore.key", "certificate.chain is not"),
        (
            {"keystore.certificate.chain": "x", "keystore.type": "PEM"},
            "keystore.certificate.chain",
            "ssl.keystore.key is not",
        ),
        (
            {
                "keystore.key": "x",
                "keystore.certificate.chain": "x",
                "keystore.location": "y",
                "keystore.type": "PEM",
            },
            "keystore.key",
            "together with",
        ),
        (
            {"keystore.type": "PEM", "keystore.location": "{pem}", "keystore.password": "hunter2"},
            "keystore.password",
            "PEM has none",
        ),
        ({"keystore.password": "hunter2"}, "keystore.password", "location is not"),
        ({"truststore.password": "hunter2"}, "truststore.password", "location is not"),
        (
            {"truststore.certificates": "x", "truststore.type": "JKS"},
            "truststore.certificates",
            "only for the type PEM",
        ),
        (
            {"truststore.certificates": "x", "truststore.type": "PEM"},
            "truststore.certificates",
            "no certificate",
        ),
        (
            {
                "truststore.certificates": "-----BEGIN CERTIFICATE-----\nMII\u00e9\n"
                "-----END CERTIFICATE-----",
                "truststore.type": "PEM",
            },
            "truststore.certificates",
            "a certificate is damaged",
        ),
        (
            {"truststore.location": "{jks}", "truststore.password": PASSWORD},
            "truststore.location",
            "holds no trusted certificate",
        ),
    ],
)
def test_stores_that_cannot_be_used_say_why(
    files: KeyStores, given: dict[str, str], key: str, message: str
) -> None:
    keys = Keys({name: value.format_map(vars(files)) for name, value in given.items()})
    with pytest.raises(ConfigError, match=message) as caught:
        (own_key if key.startswith("key") else trusted_certificates)(keys)
    assert caught.value.key == f"ssl.{key}"
    assert "hunter2" not in str(caught.value)


def test_a_damaged_store_raises_one_error(files: KeyStores) -> None:
    data = Path(files.jks).read_bytes()
    for cut in range(0, len(data), 7):
        with pytest.raises(jks.KeyStoreError):
            jks.read_jks(data[:cut], PASSWORD)
        with pytest.raises(jks.KeyStoreError):
            jks.read_jks(data[: min(cut, len(data) - 40)], None)


def test_without_the_library_a_store_says_what_to_install(
    files: KeyStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives", None)
    keys = Keys({"keystore.location": files.pkcs12, "keystore.password": PASSWORD})
    with pytest.raises(ConfigError, match=r"pip install '\.\[security\]'"):
        own_key(keys)


@pytest.mark.parametrize("read", [own_key, trusted_certificates])
def test_a_device_without_end_is_no_store(read: Callable[[Keys], object]) -> None:
    keys = Keys({"keystore.location": "/dev/zero", "truststore.location": "/dev/zero"})
    with pytest.raises(ConfigError, match=f"more than {STORE_BYTES_MAX} bytes"):
        read(keys)
