"""schema-registry.properties."""

import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from barnabas.base.config.properties import parse_properties
from barnabas.base.errors import ConfigError
from barnabas.base.jaas import jaas_options
from barnabas.base.tls.contexts import configured_client, configured_server
from barnabas.registry.config import KEYS, RegistryConfig
from barnabas.registry.kafka.connection import Connection
from support.certificates import Authority

BROKERS = {"kafkastore.bootstrap.servers": "PLAINTEXT://localhost:9092"}
SHIPPED = parse_properties("""\
# what Confluent's packages bring
listeners=http://0.0.0.0:8081
kafkastore.bootstrap.servers=PLAINTEXT://localhost:9092
kafkastore.topic=_schemas
debug=false
metadata.encoder.secret=REPLACE_ME_WITH_HIGH_ENTROPY_STRING
resource.extension.class=io.confluent.dekregistry.DekRegistryResourceExtension
""")


def config(**values: str) -> RegistryConfig:
    """Keys with underscores for dots."""
    return RegistryConfig(BROKERS | {name.replace("_", "."): text for name, text in values.items()})


def test_confluents_own_file_is_taken_with_two_warnings() -> None:
    found = RegistryConfig(SHIPPED)
    assert found.bootstrap_servers == ["localhost:9092"]
    assert [str(listener) for listener in found.listeners] == ["http://0.0.0.0:8081"]
    assert (found.topic, found.group_id) == ("_schemas", "schema-registry")
    assert found.transactional_id == "schema-registry-_schemas"
    assert [warning.split()[0] for warning in found.warnings] == [
        "metadata.encoder.secret",
        "resource.extension.class:",
    ]
    assert "HIGH_ENTROPY" not in str(found.warnings)


def test_defaults_are_confluents() -> None:
    found = config()
    assert (found.timeout_ms, found.init_timeout_ms, found.session_timeout_ms) == (
        500,
        60000,
        10000,
    )
    assert found.defaults.compatibility_level == "BACKWARD"
    assert found.defaults.mode_mutability is True
    assert found.defaults.schemas.default == 1000
    assert found.defaults.versions.max == 2**31 - 1
    assert found.warnings == []


@pytest.mark.parametrize(
    ("old", "text", "new", "value"),
    [
        ("avro.compatibility.level", "full", "schema.compatibility.level", "full"),
        ("master.eligibility", "false", "leader.eligibility", False),
        ("schema.registry.inter.instance.protocol", "https", "inter.instance.protocol", "https"),
    ],
)
def test_an_old_name_goes_before_the_new_one(old: str, text: str, new: str, value: object) -> None:
    listeners = {"listeners": "http://:8081,https://:8082"}
    assert RegistryConfig(BROKERS | listeners | {old: text}).get(new) == value


def test_keys_that_are_unknown_or_without_effect_are_named_once() -> None:
    found = config(kafkastore_topik="x", schema_reject_empty_subject="true")
    assert [warning.split()[0] for warning in found.warnings] == [
        "kafkastore.topik",
        "schema.reject.empty.subject",
    ]
    assert config(kafkastore_topic_config_min_insync_replicas="2").topic_config == {
        "min.insync.replicas": "2"
    }


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"kafkastore.timeout.ms": "soon"}, "kafkastore.timeout.ms"),
        ({"kafkastore.timeout.ms": "0"}, "kafkastore.timeout.ms"),
        ({"kafkastore.bootstrap.servers": "localhost"}, "kafkastore.bootstrap.servers"),
        ({"kafkastore.bootstrap.servers": ""}, "kafkastore.bootstrap.servers"),
        ({"kafkastore.bootstrap.servers": "SSL://a:1"}, "kafkastore.bootstrap.servers"),
        ({"kafkastore.security.protocol": "TLS"}, "kafkastore.security.protocol"),
        ({"schema.compatibility.level": "sideways"}, "schema.compatibility.level"),
        ({"listeners": "http//:8081"}, "listeners"),
        ({"listeners": "http://:99999"}, "listeners"),
        ({"listeners": "internal://:8081"}, "listeners"),
        ({"listeners": ""}, "listeners"),
        ({"inter.instance.protocol": "https"}, "inter.instance.protocol"),
        ({"inter.instance.listener.name": "inner"}, "inter.instance.listener.name"),
        ({"listener.security.protocol.map": "a"}, "listener.security.protocol.map"),
        ({"kafkagroup.heartbeat.interval.ms": "10000"}, "kafkagroup.heartbeat.interval.ms"),
        ({"authentication.method": "KERBEROS"}, "authentication.method"),
        ({"schema.providers": "a.B"}, "schema.providers"),
        ({"resource.extension.class": "a.SecurityExtension"}, "resource.extension.class"),
        ({"kafkastore.connection.url": "zk:2181"}, "kafkastore.connection.url"),
    ],
)
def test_a_wrong_value_names_its_key(values: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RegistryConfig(BROKERS | values)
    assert caught.value.key == key


def test_brokers_must_be_named() -> None:
    with pytest.raises(ConfigError, match=r"kafkastore\.bootstrap\.servers: must be set"):
        RegistryConfig({})


def test_endpoints_of_another_protocol_are_passed_over() -> None:
    found = config(kafkastore_bootstrap_servers="SSL://a:1,PLAINTEXT://b:2,[::1]:3")
    assert found.bootstrap_servers == ["b:2", "[::1]:3"]
    assert "SSL://a:1" in found.warnings[0]


def test_the_listener_for_other_instances() -> None:
    both = "http://:8081,https://[::1]:8082,inner://h:8083"
    mapped = {"listeners": both, "listener_security_protocol_map": "INNER:http"}
    assert str(config(**mapped).inter_instance_listener) == "http://h:8083"
    assert (
        str(config(**mapped, inter_instance_protocol="https").inter_instance_listener)
        == "https://[::1]:8082"
    )
    named = config(**mapped, inter_instance_listener_name="HTTP")
    assert str(named.inter_instance_listener) == "http://0.0.0.0:8081"
    assert named.advertised_port == 8081
    assert config(**mapped, host_port="80", host_name="me").advertised_port == 80
    assert config(host_name="me").advertised_host == "me"


def test_without_listeners_it_serves_this_machine_alone() -> None:
    assert [str(listener) for listener in config().listeners] == ["http://127.0.0.1:8081"]
    assert config().advertised_host == "127.0.0.1"
    assert config(listeners="http://:8081").advertised_host == socket.getfqdn()


def test_sasl() -> None:
    secure = {"kafkastore_security_protocol": "sasl_plaintext"}
    brokers = {"kafkastore_bootstrap_servers": "SASL_PLAINTEXT://b:1"}
    jaas = {
        "kafkastore_sasl_jaas_config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="me" password="pass\\"word;=";'
        )
    }
    with pytest.raises(ConfigError, match=r"sasl\.mechanism: GSSAPI is not supported"):
        Connection(config(**brokers, **secure))
    scram = {"kafkastore_sasl_mechanism": "SCRAM-SHA-512"}
    with pytest.raises(ConfigError, match="has no username and no password"):
        Connection(config(**brokers, **secure, **scram))
    options = Connection(config(**brokers, **secure, **scram, **jaas)).options("reader")
    assert options["security_protocol"] == "SASL_PLAINTEXT"
    assert options["sasl_mechanism"] == "SCRAM-SHA-512"
    assert options["sasl_plain_username"] == "me"
    assert options["sasl_plain_password"] == 'pass"word;='
    assert options["client_id"] == "barnabas-schema-registry-reader"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("m required username=a password='b c';", {"username": "a", "password": "b c"}),
        ('m required\n  a="" \n b = "x";', {"a": "", "b": "x"}),
    ],
)
def test_options_of_jaas(text: str, options: dict[str, str]) -> None:
    assert jaas_options(text) == options


def test_stores_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    secure = {
        "kafkastore_bootstrap_servers": "b:1",
        "kafkastore_security_protocol": "SSL",
        "kafkastore_ssl_truststore_location": str(store),
    }
    with pytest.raises(ConfigError, match="cannot be read: the file is cut off or damaged"):
        Connection(config(**secure))
    with pytest.raises(ConfigError, match="not a PEM file"):
        Connection(config(**secure, kafkastore_ssl_truststore_type="pem"))
    with pytest.raises(ConfigError, match="cannot be read"):
        Connection(config(**secure | {"kafkastore_ssl_truststore_location": str(tmp_path / "no")}))
    store.write_text("-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigError, match="the certificates cannot be used"):
        Connection(config(**secure))


def test_a_store_of_java_is_read(tmp_path: Path) -> None:
    store = str(tmp_path / "trust.jks")
    subprocess.run(
        [
            "keytool", "-importcert", "-noprompt", "-alias", "ca", "-storetype", "JKS",
            "-file", Authority(tmp_path).file, "-keystore", store, "-storepass", "changeit",
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    keys = {"kafkastore_ssl_truststore_location": store, "kafkastore_bootstrap_servers": "b:1"}
    right = config(**keys, kafkastore_ssl_truststore_password="changeit")
    assert len(configured_client(right, "kafkastore.").get_ca_certs()) == 1
    wrong = config(**keys, kafkastore_ssl_truststore_password="hunter2")
    with pytest.raises(ConfigError, match="the password is wrong") as caught:
        configured_client(wrong, "kafkastore.")
    assert "hunter2" not in str(caught.value)


def test_tls_checks_names_unless_told_not_to() -> None:
    secure = {"kafkastore_bootstrap_servers": "b:1", "kafkastore_security_protocol": "SSL"}
    context = configured_client(config(**secure), "kafkastore.")
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    lax = config(**secure, kafkastore_ssl_endpoint_identification_algorithm="")
    context = configured_client(lax, "kafkastore.")
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    with pytest.raises(ConfigError, match=r"ssl\.keystore\.location: must be set"):
        configured_server(config())


def test_every_key_has_a_doc() -> None:
    assert all(key.doc.endswith(".") for key in KEYS.values())
