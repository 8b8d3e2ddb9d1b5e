"""Key and trust stores of the SQL server, and what its Kafka clients are told."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from barnabas.base.errors import ConfigError
from barnabas.base.tls.contexts import https_listener
from barnabas.sql.engine import config
from barnabas.sql.server.config import ServerConfig, ServerConfigError, kafka_security, registry_tls
from support.certificates import Authority

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="ann" password="pa\\"ss";'
)


def librdkafka(values: dict[str, str]) -> dict[str, str]:
    return kafka_security(values).librdkafka()


def java(values: dict[str, str]) -> dict[str, str]:
    return kafka_security(values).java()


def keystore(pem: str, password: str) -> str:
    """A PKCS12 store beside a PEM file, with the same in it."""
    data = Path(pem).read_bytes()
    key = load_pem_private_key(data, None)
    certificate = x509.load_pem_x509_certificate(data)
    hidden = BestAvailableEncryption(password.encode())
    path = Path(pem).with_suffix(".p12")
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"k", key, certificate, None, hidden))  # type: ignore[arg-type]  # any key will do
    return str(path)


def test_listeners_take_pem_and_pkcs12(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = authority.issue("server")
    hidden = authority.issue("hidden", password="words")
    https_listener({"ssl.keystore.location": pem})
    https_listener({"ssl.keystore.location": hidden, "ssl.key.password": "words"})
    store = {"ssl.keystore.location": keystore(pem, "words"), "ssl.keystore.type": "PKCS12"}
    context = https_listener(
        store
        | {
            "ssl.keystore.password": "words",
            "ssl.key.password": "words",
            "ssl.truststore.location": authority.file,
            "ssl.client.authentication": "REQUIRED",
        }
    )
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1
    with pytest.raises(ConfigError, match="cannot be read: Invalid password"):
        https_listener(store | {"ssl.keystore.password": "wrong"})


def test_stores_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    store = tmp_path / "own.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    own = {"ssl.keystore.location": str(store), "ssl.keystore.password": "words"}
    with pytest.raises(ConfigError, match=r"own\.jks cannot be read"):
        https_listener(own)
    kafka = {"security.protocol": "SSL"} | own
    with pytest.raises(ConfigError, match=r"^ssl\.keystore\.location: .*own\.jks cannot be read"):
        librdkafka(kafka)
    trusting = {"security.protocol": "SSL", "ksql.streams.ssl.truststore.location": str(store)}
    with pytest.raises(
        ConfigError, match=r"^ksql\.streams\.ssl\.truststore\.location: .*cannot be read"
    ):
        java(trusting)
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location: must be set"):
        https_listener({})
    with pytest.raises(ConfigError, match="cannot be read"):
        https_listener({"ssl.keystore.location": str(tmp_path / "none")})
    values = {"listeners": "https://127.0.0.1:0"} | own
    with pytest.raises(ServerConfigError, match=r"own\.jks cannot be read"):
        _ = ServerConfig(values).listener_tls


def test_kafka_clients_get_the_login_of_the_file(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pem = authority.issue("server")
    values = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS,
        "ssl.truststore.location": authority.file,
        "ssl.keystore.location": pem,
        "ksql.streams.ssl.endpoint.identification.algorithm": "",
    }
    assert librdkafka(values) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": 'pa"ss',
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.pem": authority.text,
        "ssl.certificate.location": pem,
        "ssl.key.location": pem,
    }
    assert java(values) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": JAAS,
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.text.strip(),
        "ssl.keystore.location": pem,
        "ssl.keystore.type": "PEM",
    }


def test_librdkafkas_names_of_user_and_password_do_too() -> None:
    values = {
        "ksql.streams.security.protocol": "sasl_plaintext",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": 'a"b',
        "sasl.password": "c\\d",
    }
    assert librdkafka(values)["sasl.username"] == 'a"b'
    assert java(values)["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="a\\"b" password="c\\\\d";'
    )
    assert librdkafka({}) == java({}) == {}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: TLS is none of"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism: GSSAPI is not supported"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "sasl.jaas.config: has no username and no password",
        ),
    ],
)
def test_logins_that_are_not_served(values: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        librdkafka(values)


def test_the_registry_has_keys_of_its_own(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    prefix = "ksql.schema.registry.ssl."
    values = {
        f"{prefix}truststore.location": authority.file,
        f"{prefix}keystore.location": authority.issue("own", password="words"),
        f"{prefix}key.password": "words",
        f"{prefix}endpoint.identification.algorithm": "",
    }
    tls = registry_tls(values)
    assert "words" not in repr(tls)
    context = tls.context()
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    assert ServerConfig({}).registry_tls is None


def test_no_secret_is_shown() -> None:
    settings = {
        "ksql.streams.sasl.jaas.config": JAAS,
        "ksql.streams.ssl.key.password": "words",
        "ksql.streams.ssl.keystore.key": "words",
        "ksql.schema.registry.basic.auth.user.info": "ann:words",
        "ksql.schema.registry.url": "https://ann:words@one:1,http://two:2",
    }
    shown = config.shown(settings)
    assert "words" not in str(shown)
    assert "pa" not in shown["ksql.streams.sasl.jaas.config"]
    assert shown["ksql.schema.registry.url"] == "https://one:1,http://two:2"
    assert list(config.without_secrets(settings)) == ["ksql.schema.registry.url"]
    assert "words" not in str(config.without_secrets(settings))
