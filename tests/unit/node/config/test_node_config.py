"""What NodeConfig says about keys that are set, beyond Kafka's own verdicts."""

import pytest

from barnabas.base.config.definitions import HIDDEN
from barnabas.base.config.properties import from_flags
from barnabas.base.errors import ConfigError
from barnabas.node.config.definitions import from_environment, key_of_variable
from barnabas.node.config.listeners import ListenerConfig
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.node_values import is_secret
from barnabas.node.config.topic import topic_config_values, validate_topic_overrides

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@localhost:9093",
}


def configured(**values: str) -> NodeConfig:
    return NodeConfig.from_properties(
        COMBINED | {k.replace("__", "."): v for k, v in values.items()}
    )


def with_values(values: dict[str, str]) -> NodeConfig:
    return NodeConfig.from_properties(COMBINED | values)


def test_typed_values() -> None:
    config = with_values({"log.dirs": "/a, /b", "broker.rack": " r1 ", "num.partitions": "7"})
    assert config.get_int("num.partitions") == 7
    assert config.get_int("log.retention.bytes") == -1
    assert config.get_bool("auto.create.topics.enable") is True
    assert config.get_float("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.get_str("broker.rack") == "r1"
    assert config.get_str_or_none("metadata.log.dir") is None
    assert config.get_list("log.dirs") == config.log_dirs == ["/a", "/b"]
    assert config.metadata_log_dir == "/a"
    assert config.node_id == 1
    assert config.process_roles == {"broker", "controller"}
    with pytest.raises(KeyError):
        config.get("no.such.key")


def test_listeners() -> None:
    config = with_values({"advertised.listeners": "PLAINTEXT://public:19092"})
    assert config.listeners == [
        ListenerConfig("PLAINTEXT", "", 9092, "PLAINTEXT"),
        ListenerConfig("CONTROLLER", "", 9093, "PLAINTEXT"),
    ]
    assert config.advertised_listeners == [
        ListenerConfig("PLAINTEXT", "public", 19092, "PLAINTEXT")
    ]
    assert [listener.name for listener in config.advertised_controller_listeners] == ["CONTROLLER"]
    assert str(ListenerConfig("X", "::1", 1, "PLAINTEXT")) == "X://[::1]:1"


def test_a_controller_bound_everywhere_is_advertised_by_this_machines_name() -> None:
    config = with_values({"listeners": "PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093"})
    assert [listener.host for listener in config.advertised_controller_listeners] == [""]


def test_defaults_leave_no_warning() -> None:
    assert configured().warnings == []


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("log.preallocate", "true", "not supported yet"),
        ("transaction.two.phase.commit.enable", "true", "not supported yet"),
        ("num.partitons", "3", "did you mean num.partitions?"),
        ("something.else", "3", "not a key of Kafka 4.3"),
        ("log.message.downconversion.enable", "true", "ignored"),
        ("listener.name.plaintext.sasl.kerberos.kinit.cmd", "kinit", "not supported yet"),
    ],
)
def test_one_warning_per_key_without_effect(key: str, value: str, words: str) -> None:
    config = with_values({key: value})
    (warning,) = config.warnings
    assert warning.startswith(key)
    assert words in warning


@pytest.mark.parametrize(
    ("key", "value"),
    [("log.cleaner.enable", "true"), ("num.io.threads", "3"), ("rlmm.config.x", "y")],
)
def test_no_warning_where_nothing_is_lost(key: str, value: str) -> None:
    assert with_values({key: value}).warnings == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("zookeeper.connect", "localhost:2181"),
        ("zookeeper.session.timeout.ms", "1"),
        ("inter.broker.protocol.version", "3.9"),
        ("create.topic.policy.class.name", "com.example.Policy"),
        ("principal.builder.class", "com.example.Builder"),
    ],
)
def test_what_will_not_be_served_is_an_error(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match="not supported") as caught:
        with_values({key: value})
    assert caught.value.key == key


@pytest.mark.parametrize(
    "name",
    ["", "StandardAuthorizer", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"],
)
def test_kafkas_own_authorizer_is_known(name: str) -> None:
    values = {
        "authorizer.class.name": name,
        "super.users": "User:admin; User:CN=broker,O=x",
        "allow.everyone.if.no.acl.found": "true",
    }
    assert with_values(values).warnings == []


def test_another_authorizer_is_refused_with_what_can_be_used() -> None:
    with pytest.raises(ConfigError, match="StandardAuthorizer") as caught:
        with_values({"authorizer.class.name": "com.example.Authorizer"})
    assert caught.value.key == "authorizer.class.name"


def test_a_super_user_has_a_kind() -> None:
    with pytest.raises(ConfigError, match="'admin' is not kind:name") as caught:
        with_values({"super.users": "User:one;admin"})
    assert caught.value.key == "super.users"


def test_a_java_class_that_is_the_default_is_accepted() -> None:
    name = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
    assert with_values({"principal.builder.class": name}).warnings == []


def test_secrets_are_never_shown() -> None:
    secrets = {
        "ssl.key.password": "hunter2",
        "listener.name.sasl.plain.sasl.jaas.config": "hunter2",
        "some.unknown.key": "hunter2",
    }
    config = with_values(secrets)
    assert "hunter2" not in repr(config)
    assert "hunter2" not in " ".join(config.warnings)
    assert config.shown("ssl.key.password") == HIDDEN
    assert config.shown("node.id") == "1"
    assert config.shown("num.partitions") is None
    assert not is_secret("log.dirs")
    assert not is_secret("listener.name.plaintext.max.connections")


def test_a_listeners_own_value_wins() -> None:
    config = with_values({"listener.name.plaintext.max.connections": "7"})
    assert config.listener_value("PLAINTEXT", "max.connections") == 7
    assert config.listener_value("OTHER", "max.connections") == 2**31 - 1


CORDONED_CASES = {
    "none": ("", []),
    "one": ("/b", ["/b"]),
    "in the order of log.dirs": ("/c,/a", ["/a", "/c"]),
    "all": ("*", ["/a", "/b", "/c"]),
}


@pytest.mark.parametrize(("text", "expected"), CORDONED_CASES.values(), ids=CORDONED_CASES)
def test_cordoned_directories(text: str, expected: list[str]) -> None:
    config = with_values({"log.dirs": "/a,/b,/c", "cordoned.log.dirs": text})
    assert config.cordoned_log_dirs == expected
    assert config.warnings == []


@pytest.mark.parametrize(
    ("text", "words"), [("/d,/a", "/d is not in log.dirs"), ("*,/a", r"beside \*")]
)
def test_what_cannot_be_cordoned(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        with_values({"log.dirs": "/a,/b,/c", "cordoned.log.dirs": text})


def test_a_directory_that_is_named_twice() -> None:
    with pytest.raises(ConfigError, match="twice"):
        with_values({"log.dirs": "/a,/b,/a/"})


def test_dynamic_values_come_on_top() -> None:
    config = with_values({"log.retention.hours": "5"})
    changed = config.with_dynamic({"log.retention.ms": "12"})
    assert topic_config_values(changed, {})["retention.ms"] == 12
    assert topic_config_values(config, {})["retention.ms"] == 5 * 3_600_000
    assert topic_config_values(changed, {"retention.ms": "9"})["retention.ms"] == 9


def test_an_unknown_topic_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"retention\.seconds"):
        validate_topic_overrides({"retention.seconds": "1"})


def test_remote_topics_need_remote_storage_and_fitting_retention() -> None:
    on = with_values({"remote.log.storage.system.enable": "true"})
    validate_topic_overrides({"remote.storage.enable": "true"}, on)
    for overrides in (
        {"cleanup.policy": "compact"},
        {"local.retention.ms": "10", "retention.ms": "9"},
        {"local.retention.bytes": "-1", "retention.bytes": "9"},
    ):
        with pytest.raises(ConfigError):
            validate_topic_overrides({"remote.storage.enable": "true", **overrides}, on)


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("BARNABAS_LOG_RETENTION_MS", "log.retention.ms"),
        ("BARNABAS_NODE_ID", "node.id"),
        (
            "BARNABAS_LISTENER_NAME_MY__NAME_MAX_CONNECTIONS",
            "listener.name.my_name.max.connections",
        ),
        ("BARNABAS_LISTENER_NAME_A___B_SASL_JAAS_CONFIG", "listener.name.a-b.sasl.jaas.config"),
    ],
)
def test_environment_names(variable: str, key: str) -> None:
    assert key_of_variable(variable) == key


def test_only_broker_keys_are_taken_from_the_environment() -> None:
    environment = {
        "BARNABAS_NUM_PARTITIONS": "3",
        "BARNABAS_BOOTSTRAP_SERVERS": "x:1",
        "KAFKA_NODE_ID": "9",
        "PATH": "/bin",
    }
    assert from_environment(environment) == {"num.partitions": "3"}


def test_flags() -> None:
    assert from_flags(["a=b", "c = d=e "]) == {"a": "b", "c": "d=e"}
    with pytest.raises(ConfigError, match="write a setting as key=value"):
        from_flags(["a"])
