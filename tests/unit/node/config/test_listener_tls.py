"""Contexts from Kafka's ssl keys: what holds for which listener, and how new files are taken up."""

import os
import shutil
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from barnabas.app.listening import ListenerCertificates
from barnabas.base.errors import ConfigError
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.tls import TlsSide, dialling_tls, listening_tls
from barnabas.node.config.tls_changes import check_tls_change
from sim.manual_clock import ManualClock
from support.certificates import Authority

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "SSL://:9092,LOGIN://:9094,CONTROLLER://:9093",
    "advertised.listeners": "SSL://localhost:9092",
    "inter.broker.listener.name": "SSL",
    "listener.security.protocol.map": "SSL:SSL,LOGIN:SASL_SSL,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.login.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required user_a='b';"
    ),
    "log.dirs": "/data",
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
}
DAY_MS = 86_400_000
OWN = "listener.name.ssl."


class World:
    """A node's configuration, whose key store is `file`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority(directory)
        self.file = str(directory / "own.pem")
        self.replace("first")

    def replace(self, name: str, *, bears: str = "broker", **options: object) -> None:
        """Have another certificate in the file, of the same name."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, bears)])
        made = self.authority.issue(name, subject=subject, **options)  # type: ignore[arg-type]
        shutil.copy(made, self.file + ".new")
        os.replace(self.file + ".new", self.file)

    def config(self, **values: str) -> NodeConfig:
        own = {
            "ssl.keystore.location": self.file,
            "ssl.truststore.location": self.authority.file,
        }
        return NodeConfig.from_properties(BASE | own | values)

    def side(self, name: str = "SSL", **values: str) -> TlsSide:
        config = self.config(**values)
        (listener,) = [each for each in config.listeners if each.name == name]
        side = listening_tls(config, listener)
        assert side is not None
        return side


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def until(side: TlsSide) -> object:
    assert side.certificate is not None
    return side.certificate.not_after


def test_a_plain_listener_has_none(world: World) -> None:
    config = world.config()
    (listener,) = [each for each in config.listeners if each.name == "CONTROLLER"]
    assert listening_tls(config, listener) is None
    assert dialling_tls(config, "CONTROLLER") is None


@pytest.mark.parametrize(
    ("listener", "values", "mode"),
    [
        ("SSL", {}, ssl.CERT_NONE),
        ("SSL", {"ssl.client.auth": "requested"}, ssl.CERT_OPTIONAL),
        ("SSL", {"ssl.client.auth": "required"}, ssl.CERT_REQUIRED),
        (
            "SSL",
            {"ssl.client.auth": "none", OWN + "ssl.client.auth": "required"},
            ssl.CERT_REQUIRED,
        ),
        ("LOGIN", {"ssl.client.auth": "required"}, ssl.CERT_NONE),
        ("LOGIN", {"listener.name.login.ssl.client.auth": "required"}, ssl.CERT_REQUIRED),
    ],
)
def test_who_must_show_a_certificate(
    world: World, listener: str, values: dict[str, str], mode: ssl.VerifyMode
) -> None:
    assert world.side(listener, **values).context().verify_mode == mode


@pytest.mark.parametrize(("algorithm", "checks"), [("https", True), ("HTTPS", True), ("", False)])
def test_names_of_other_nodes_are_checked_unless_told_not_to(
    world: World, algorithm: str, checks: bool
) -> None:
    side = dialling_tls(world.config(**{"ssl.endpoint.identification.algorithm": algorithm}), "SSL")
    assert side is not None
    assert side.context().check_hostname is checks
    assert side.context().verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("values", "lowest", "highest"),
    [
        ({}, "TLSv1_2", "TLSv1_3"),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "TLSv1_3", "TLSv1_3"),
        ({"ssl.enabled.protocols": "TLSv1.2,TLSv1.1"}, "TLSv1_2", "TLSv1_2"),
        ({"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"}, "TLSv1_3", "TLSv1_3"),
        (
            {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
            "TLSv1_2",
            "TLSv1_2",
        ),
        (
            {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
            "TLSv1_2",
            "TLSv1_3",
        ),
    ],
)
def test_which_versions_are_spoken(
    world: World, values: dict[str, str], lowest: str, highest: str
) -> None:
    context = world.side(**values).context()
    assert context.minimum_version == ssl.TLSVersion[lowest]
    assert context.maximum_version == ssl.TLSVersion[highest]
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_only_the_suites_that_are_named_are_offered(world: World) -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    context = world.side(**{"ssl.cipher.suites": suite}).context()
    older = [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]
    assert older == ["ECDHE-ECDSA-AES128-GCM-SHA256"]


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols"),
        ({"ssl.enabled.protocols": "TLSv9"}, "ssl.enabled.protocols"),
        ({"ssl.protocol": "DTLS"}, "ssl.protocol"),
        ({"ssl.cipher.suites": "TLS_KRB5_WITH_DES_CBC_MD5"}, "ssl.cipher.suites"),
        (
            {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384", "ssl.enabled.protocols": "TLSv1.2"},
            "ssl.cipher.suites",
        ),
        ({"ssl.keystore.location": ""}, "listener.name.ssl.ssl.keystore.location"),
    ],
)
def test_what_cannot_be_used_is_refused_at_the_start(
    world: World, values: dict[str, str], key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        world.side(**values)
    assert caught.value.key == key


def test_a_key_of_another_certificate_is_refused(world: World) -> None:
    other = Path(world.authority.issue("other")).read_text()
    own = Path(world.file).read_text()
    marker = "-----BEGIN CERTIFICATE"
    Path(world.file).write_text(other.partition(marker)[0] + marker + own.partition(marker)[2])
    with pytest.raises(ConfigError, match="not that of the first certificate"):
        world.side()


# -- new certificates


@pytest.mark.parametrize(
    ("password", "lacks", "words"),
    [
        ("", "", r"ssl\.key\.password must be set: the key is encrypted"),
        ("another", "", r"ssl\.key\.password is not the private key's"),
        ("", "key", "there is no private key"),
        ("secret", "certificate", "there is no certificate"),
    ],
)
def test_why_a_key_cannot_be_used(world: World, password: str, lacks: str, words: str) -> None:
    file = Path(world.file)
    text = file.read_text()
    key = load_pem_private_key(text.encode(), None)
    sealed = BestAvailableEncryption(b"secret")
    parts = {
        "key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, sealed).decode(),
        "certificate": text[text.index("-----BEGIN CERTIFICATE") :],
    }
    file.write_text("".join(part for name, part in parts.items() if name != lacks))
    with pytest.raises(ConfigError, match=words) as raised:
        world.side(**{"ssl.key.password": password} if password else {})
    assert "another" not in str(raised.value)


def test_a_new_file_is_for_the_next_connection(world: World) -> None:
    side = world.side()
    context, ends = side.context(), until(side)
    assert side.context() is context
    world.replace("second", days=9)
    assert side.context() is not context
    assert until(side) != ends


def test_a_file_that_cannot_be_used_changes_nothing_and_is_told_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    side = world.side()
    context = side.context()
    Path(world.file).write_text("half a fi")
    assert side.context() is context
    assert side.context() is context
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    os.unlink(world.file)
    assert side.context() is context
    world.replace("second")
    assert side.context() is not context


@pytest.mark.parametrize(
    ("options", "allow", "reason"),
    [
        ({"bears": "stranger"}, "ssl.allow.dn.changes", "DistinguishedName does not match"),
        ({"hosts": ["10.0.0.1"]}, "ssl.allow.san.changes", "SubjectAltNames do not match"),
    ],
)
def test_another_name_needs_leave(
    world: World,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, object],
    allow: str,
    reason: str,
) -> None:
    strict, lax = world.side(), world.side(**{allow: "true"})
    before, before_lax = strict.context(), lax.context()
    world.replace("second", **options)  # type: ignore[arg-type]
    assert strict.context() is before
    assert lax.context() is not before_lax
    assert reason in caplog.text


def test_more_names_need_no_leave(world: World) -> None:
    side = world.side()
    before = side.context()
    world.replace("second", hosts=["127.0.0.1", "10.0.0.1"])
    assert side.context() is not before


def test_another_configuration_is_followed(world: World) -> None:
    side = world.side()
    context = side.context()
    side.follow(world.config(**{"message.max.bytes": "5000000"}))
    assert side.context() is context
    side.follow(world.config(**{OWN + "ssl.client.auth": "required"}))
    assert side.context().verify_mode == ssl.CERT_REQUIRED


def check(world: World, **values: str) -> None:
    check_tls_change(world.config(), world.config(**values))


def test_a_change_that_can_be_used_is_accepted(world: World) -> None:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    check(world, **{OWN + "ssl.keystore.location": world.authority.issue("next", subject=subject)})
    check(world, **{"log.retention.ms": "5"})


def test_changes_that_cannot_be_used_are_refused(world: World, tmp_path: Path) -> None:
    location = OWN + "ssl.keystore.location"
    with pytest.raises(ConfigError, match="cannot be read"):
        check(world, **{location: "/nowhere"})
    with pytest.raises(ConfigError, match="DistinguishedName does not match"):
        check(world, **{location: world.authority.issue("stranger")})
    check(world, **{location: world.authority.issue("stranger"), "ssl.allow.dn.changes": "true"})
    (tmp_path / "other").mkdir()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    untrusted = Authority(tmp_path / "other").issue("own", subject=subject)
    with pytest.raises(ConfigError, match="would not trust each other"):
        check(world, **{location: untrusted})


# -- the end of a certificate


def test_a_certificate_that_ends_soon_is_told_of_in_time(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    world.replace("long", days=40.5)
    side = world.side()
    assert side.certificate is not None
    end_ms = int(side.certificate.not_after.timestamp() * 1000)
    clock = ManualClock(end_ms - 40 * DAY_MS)
    watched = ListenerCertificates(clock)
    watched.watch([side])
    told: list[str] = []
    for days in (31, 29, 28, 6, 5, -1):
        clock.advance(end_ms - days * DAY_MS - clock.time_ms)
        # Threads of other tests in this process may still have something to say.
        own = [
            one.getMessage()
            for one in caplog.records
            if one.name == ListenerCertificates.__module__
        ]
        told.append(" ".join(own))
        caplog.clear()
    assert [bool(each) for each in told] == [False, True, False, True, False, True]
    assert "expires in 29 days" in told[1]
    assert "expires in 6 days" in told[3]
    assert "has expired" in told[5]
    assert watched.seconds_left()["SSL"] < 0
    watched.close()


def test_a_key_that_cannot_be_handed_over_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    config = world.config()
    side = listening_tls(config, config.listeners[0])
    assert side is not None
    before = side.context()
    world.replace("second")

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    assert side.context() is before
    assert "no space left" in caplog.text
