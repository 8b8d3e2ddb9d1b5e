"""The translator of client settings: each of Java's settings, and what each kind of client gets."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.base.errors import ConfigError
from barnabas.base.tls.contexts import PropertyKeys
from barnabas.base.tls.key_stores import KeyPair
from barnabas.kafka.security import Security
from barnabas.kafka.settings import JAVA_ONLY, java_settings, librdkafka_settings, overridden
from barnabas.kafka.wire import Access
from support.key_stores import PASSWORD, KeyStores

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
ASSIGNORS = "org.apache.kafka.clients.consumer"
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
TLS = {"security.protocol": "SSL"}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> KeyStores:
    return KeyStores(tmp_path_factory.mktemp("stores"))


@dataclass
class Case:
    """Settings of a user, and what follows for each kind of client."""

    given: dict[str, str]
    librdkafka: dict[str, str]
    java: dict[str, str]
    access: dict[str, Any] = field(default_factory=dict)
    """How `Access` differs from that of a plain connection."""


LOGINS = {
    "nothing": Case({}, {}, {}),
    "plain text says nothing": Case({"security.protocol": "plaintext"}, {}, {}),
    "other settings of a connection in plain text": Case(
        {"sasl.mechanism": "PLAIN", "ssl.ca.location": "/nowhere"}, {}, {}
    ),
    "JAAS": Case(
        {**SASL, "sasl.jaas.config": rf'{PLAIN} required username="ann" password="a\"b";'},
        {**SASL, "sasl.username": "ann", "sasl.password": 'a"b'},
        {**SASL, "sasl.jaas.config": rf'{PLAIN} required username="ann" password="a\"b";'},
        {"mechanism": "PLAIN", "user": "ann", "password": 'a"b'},
    ),
    "JAAS with comments and single quotes": Case(
        {**SASL, "sasl.jaas.config": "x required /* who */ username='ann' password=b; // end"},
        {**SASL, "sasl.username": "ann", "sasl.password": "b"},
        {**SASL, "sasl.jaas.config": "x required /* who */ username='ann' password=b; // end"},
        {"mechanism": "PLAIN", "user": "ann", "password": "b"},
    ),
    "librdkafka's names of user and password": Case(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "scram-sha-512",
            "sasl.username": 'a"b',
            "sasl.password": "c\\d ",
        },
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": 'a"b',
            "sasl.password": "c\\d ",
        },
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": rf'{SCRAM} required username="a\"b" password="c\\d ";',
        },
        {"mechanism": "SCRAM-SHA-512", "user": 'a"b', "password": "c\\d "},
    ),
}


@pytest.mark.parametrize("name", LOGINS)
def test_logins(name: str) -> None:
    case = LOGINS[name]
    assert librdkafka_settings(case.given) == case.librdkafka
    assert java_settings(case.given) == case.java
    security = Security(PropertyKeys(case.given))
    assert security.access("a:1") == Access("a:1", **case.access)
    options = security.aiokafka()
    assert options.pop("security_protocol") == security.protocol
    assert options == {
        f"sasl_plain_{name}" if name != "mechanism" else "sasl_mechanism": value
        for name, value in case.access.items()
        for name in [name.replace("user", "username")]
    }


def test_our_own_connections_log_in_with_delegation_tokens() -> None:
    line = rf'{SCRAM} required username="id" password="mac" tokenauth="true";'
    names = {**SASL, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": line}
    assert Security(PropertyKeys(names)).access("a:1").is_token
    assert (
        not Security(PropertyKeys({**names, "sasl.jaas.config": line[:-18] + ";"}))
        .access("a:1")
        .is_token
    )


def test_other_mechanisms_are_the_clients_own() -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.login.callback.handler.class": "org.example.Handler",
    }
    handled = {"sasl.login.callback.handler.class"}
    assert java_settings(given) == given
    assert librdkafka_settings(given) == {
        name: given[name] for name in given if name not in handled
    }
    for client in ("aiokafka", "login"):
        with pytest.raises(
            ConfigError, match=r"^sasl\.mechanism: GSSAPI is not supported; set one"
        ):
            getattr(Security(PropertyKeys(given)), client)()


REFUSED = {
    "protocol": ({"security.protocol": "TLS"}, "security.protocol: TLS is none of PLAINTEXT, SSL"),
    "no login": (SASL, "sasl.jaas.config: has no username and no password; it is written"),
    "no password": ({**SASL, "sasl.username": "ann"}, "sasl.jaas.config: has no password"),
    "broken": ({**SASL, "sasl.jaas.config": "x required a"}, "sasl.jaas.config: Value not spec"),
    "trust": ({**TLS, "ssl.truststore.location": "/no"}, "ssl.truststore.location: cannot be read"),
    "key": ({**TLS, "ssl.keystore.location": "/no"}, "ssl.keystore.location: cannot be read"),
    "kind": ({**TLS, "ssl.truststore.type": "BKS"}, "ssl.truststore.type: BKS is not supported"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("prefix", ["", "kafka."])
def test_refused_under_the_name_that_was_written(name: str, prefix: str) -> None:
    given, text = REFUSED[name]
    written = {f"{prefix}{key}": value for key, value in given.items()}
    for client in ("librdkafka", "java", "aiokafka"):
        with pytest.raises(ConfigError) as caught:
            getattr(Security(PropertyKeys(written, (prefix,))), client)()
        assert str(caught.value).startswith(prefix + text)


TRUSTED = {
    "PEM": {"location": "PEM", "type": "PEM"},
    "PEM without its type": {"location": "PEM"},
    "JKS": {"location": "JKS", "type": "JKS", "password": PASSWORD},
    "JKS without its password": {"location": "JKS"},
    "PKCS12": {"location": "PKCS12", "type": "PKCS12", "password": PASSWORD},
    "PKCS12 called JKS": {"location": "PKCS12", "type": "JKS", "password": PASSWORD},
    "inline": {"certificates": "", "type": "PEM"},
}


@pytest.mark.parametrize("name", TRUSTED)
def test_every_client_trusts_every_kind_of_store(stores: KeyStores, name: str) -> None:
    given = dict(TLS)
    places = {
        "PEM": stores.authority.file,
        "JKS": stores.trust_jks,
        "PKCS12": stores.trust_pkcs12,
        "": stores.authority.text,
    }
    for key, value in TRUSTED[name].items():
        is_place = key in ("location", "certificates")
        given[f"ssl.truststore.{key}"] = places[value] if is_place else value
    authority = ssl.PEM_cert_to_DER_cert(stores.authority.text)
    settings = librdkafka_settings(given)
    assert set(settings) == {"security.protocol", "ssl.ca.pem"}
    assert ssl.PEM_cert_to_DER_cert(settings["ssl.ca.pem"]) == authority
    java = java_settings(given)
    assert ssl.PEM_cert_to_DER_cert(java.pop("ssl.truststore.certificates")) == authority
    assert java == {**TLS, "ssl.truststore.type": "PEM"}
    access = Security(PropertyKeys(given)).access("a:1")
    assert ssl.PEM_cert_to_DER_cert(access.ca_pem or "") == authority
    for context in (access.tls(), Security(PropertyKeys(given)).aiokafka()["ssl_context"]):
        assert context.get_ca_certs(binary_form=True) == [authority]


OWN = {
    "PEM": {"location": "pem", "type": "PEM"},
    "encrypted": {"location": "encrypted", "key.password": PASSWORD},
    "JKS": {"location": "jks", "password": PASSWORD, "key.password": PASSWORD, "type": "JKS"},
    "PKCS12": {"location": "pkcs12", "password": PASSWORD, "type": "PKCS12"},
    "inline": {"key": "private", "certificate.chain": "certificate", "type": "PEM"},
}


@pytest.mark.parametrize("name", OWN)
def test_every_client_shows_the_key_of_every_kind_of_store(stores: KeyStores, name: str) -> None:
    given = dict(TLS)
    for key, value in OWN[name].items():
        is_place = key in ("location", "key", "certificate.chain")
        prefix = "ssl." if key == "key.password" else "ssl.keystore."
        given[prefix + key] = getattr(stores, value) if is_place else value
    settings = librdkafka_settings(given)
    if name == "PKCS12":
        assert settings["ssl.keystore.location"] == stores.pkcs12
    Producer({**settings, "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    java = java_settings(given)
    if name == "inline":
        assert java["ssl.keystore.certificate.chain"] == stores.certificate
    else:
        assert java["ssl.keystore.location"] == given["ssl.keystore.location"]
        assert java["ssl.keystore.type"] == {"encrypted": "PEM"}.get(name, name)
    access = Security(PropertyKeys(given)).access("a:1")
    assert access.own is not None
    assert "PRIVATE KEY" in access.own.pem
    assert PASSWORD not in repr(access)
    access.tls()
    Security(PropertyKeys(given)).tls()


def test_librdkafkas_names_of_files_are_for_every_client(stores: KeyStores, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    key.write_text(stores.private)
    certificate.write_text(stores.certificate)
    given = {
        **TLS,
        "ssl.ca.location": stores.authority.file,
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
    }
    assert librdkafka_settings(given) == given
    assert java_settings(given) == {
        **TLS,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": stores.authority.text.strip(),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": stores.private,
        "ssl.keystore.certificate.chain": stores.certificate,
    }
    access = Security(PropertyKeys(given)).access("a:1")
    assert access.own == KeyPair(stores.private + "\n" + stores.certificate, "")
    assert access.ca_path == stores.authority.file
    access.tls()
    inline = {
        **TLS,
        "ssl.ca.pem": stores.authority.text,
        "ssl.key.pem": stores.private,
        "ssl.certificate.pem": stores.certificate,
    }
    assert librdkafka_settings(inline) == {name: text.strip() for name, text in inline.items()}
    Security(PropertyKeys(inline)).tls()


@pytest.mark.parametrize(
    ("written", "librdkafka", "java", "checks"),
    [
        (None, None, None, True),
        ("https", "https", "https", True),
        ("HTTPS", "https", "HTTPS", True),
        ("", "none", "", False),
        ("none", "none", "", False),
    ],
)
def test_names_in_certificates(
    written: str | None, librdkafka: str | None, java: str | None, checks: bool
) -> None:
    name = "ssl.endpoint.identification.algorithm"
    given = TLS if written is None else {**TLS, name: written}
    assert librdkafka_settings(given).get(name) == librdkafka
    assert java_settings(given).get(name) == java
    access = Security(PropertyKeys(given)).access("a:1")
    assert (access.checks_host, access.tls().check_hostname) == (checks, checks)
    unchecked = {**given, "enable.ssl.certificate.verification": "false"}
    assert Security(PropertyKeys(unchecked)).tls().verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.endpoint.identification.algorithm", "htpps"),
        ("enable.ssl.certificate.verification", "ture"),
    ],
)
def test_a_slip_of_the_pen_switches_no_check_off(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}.*{value}"):
        Security(PropertyKeys({**TLS, name: value})).access("a:1")
    with pytest.raises(ConfigError, match=f"{name}.*{value}"):
        Security(PropertyKeys({**TLS, name: value})).tls()


def test_a_name_check_that_is_unknown_is_refused_for_every_client() -> None:
    given = {**TLS, "ssl.endpoint.identification.algorithm": "htpps"}
    for translate in (librdkafka_settings, java_settings):
        with pytest.raises(ConfigError, match="htpps is not https"):
            translate(given)


def test_a_setting_without_a_value_is_not_set() -> None:
    given = {**TLS, "ssl.crl.location": None, "ssl.cipher.suites": None}
    assert librdkafka_settings(given) == TLS
    assert java_settings(given) == TLS


def test_cipher_suites_that_openssl_has_none_of_are_refused() -> None:
    with pytest.raises(ConfigError, match="OpenSSL has none of TLS_NO_SUCH"):
        librdkafka_settings({**TLS, "ssl.cipher.suites": "TLS_NO_SUCH,TLS_AES_256_GCM_SHA384"})


@pytest.mark.parametrize(
    ("values", "more", "left"),
    [
        ({"acks": "1"}, {"acks": "all"}, {"acks": "all"}),
        ({"sasl.mechanism": "PLAIN"}, {"sasl.mechanisms": "x"}, {"sasl.mechanisms": "x"}),
        (
            {"sasl.jaas.config": 'x required username="ann" password="old";'},
            {"sasl.password": "new"},
            {"sasl.username": "ann", "sasl.password": "new"},
        ),
        (
            {"sasl.jaas.config": 'x required username="ann" password="old";'},
            {"sasl.jaas.config": "y"},
            {"sasl.jaas.config": "y"},
        ),
        (
            {"ssl.ca.location": "a.pem", "ssl.key.location": "k"},
            {"ssl.truststore.location": "b.pem"},
            {"ssl.key.location": "k", "ssl.truststore.location": "b.pem"},
        ),
        (
            {"ssl.certificate.location": "a.pem", "ssl.key.location": "k"},
            {"ssl.keystore.location": "b.p12"},
            {"ssl.keystore.location": "b.p12"},
        ),
        (
            {"ssl.certificate.location": "a.pem", "ssl.key.pem": "k"},
            {"ssl.key.location": "other"},
            {"ssl.certificate.location": "a.pem", "ssl.key.location": "other"},
        ),
    ],
)
def test_later_settings_win_whichever_names_they_use(
    values: dict[str, str], more: dict[str, str], left: dict[str, str]
) -> None:
    assert overridden(values, more) == left


OTHERS = {
    ("acks", "all"): ("acks", "all"),
    ("buffer.memory", "33554432"): ("queue.buffering.max.kbytes", "32768"),
    ("buffer.memory", "10"): ("queue.buffering.max.kbytes", "1"),
    ("fetch.max.wait.ms", "5"): ("fetch.wait.max.ms", "5"),
    ("max.request.size", "2000000"): ("message.max.bytes", "2000000"),
    ("receive.buffer.bytes", "65536"): ("socket.receive.buffer.bytes", "65536"),
    ("send.buffer.bytes", "65536"): ("socket.send.buffer.bytes", "65536"),
    ("auto.offset.reset", "none"): ("auto.offset.reset", "error"),
    ("auto.offset.reset", "earliest"): ("auto.offset.reset", "earliest"),
    ("partitioner", "consistent"): ("partitioner", "consistent"),
    ("partitioner.class", "org.example.Mine"): ("partitioner", "murmur2_random"),
    (
        "partition.assignment.strategy",
        f"{ASSIGNORS}.RangeAssignor,{ASSIGNORS}.CooperativeStickyAssignor",
    ): ("partition.assignment.strategy", "range"),
    ("partition.assignment.strategy", "range,roundrobin"): (
        "partition.assignment.strategy",
        "range,roundrobin",
    ),
    ("statistics.interval.ms", "5"): ("statistics.interval.ms", "5"),
}


@pytest.mark.parametrize(("name", "value"), OTHERS)
def test_other_settings(name: str, value: str) -> None:
    own, translated = OTHERS[name, value]
    assert librdkafka_settings({name: value}) == {own: translated}
    assert java_settings({name: value}) == {name: value}


@pytest.mark.parametrize("name", sorted(JAVA_ONLY))
def test_settings_of_java_alone_are_left_out(name: str) -> None:
    secure = {**LOGINS["JAAS"].given, "security.protocol": "SASL_SSL"}
    assert librdkafka_settings({name: "x", **secure}) == librdkafka_settings(secure)
    assert java_settings({name: "x", **secure}) == {name: "x", **java_settings(secure)}


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        (
            "TLS_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_NO_SUCH",
            "ECDHE-RSA-AES256-GCM-SHA384",
        ),
        ("TLS_AES_256_GCM_SHA384", None),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_cipher_suites(java: str, librdkafka: str | None) -> None:
    settings = librdkafka_settings({**TLS, "ssl.cipher.suites": java})
    assert settings.get("ssl.cipher.suites") == librdkafka
    assert java_settings({**TLS, "ssl.cipher.suites": java})["ssl.cipher.suites"] == java


def test_of_several_prefixes_the_first_wins() -> None:
    values = {
        "ksql.streams.security.protocol": "SASL_SSL",
        "security.protocol": "SSL",
        "sasl.mechanism": "PLAIN",
        "ksql.streams.sasl.username": "ann",
        "sasl.username": "bob",
        "sasl.password": "words",
    }
    names = PropertyKeys(values, ("ksql.streams.", ""))
    assert "words" not in repr(names)
    assert Security(names).librdkafka() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "words",
    }
