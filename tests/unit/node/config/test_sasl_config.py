"""Which logins a configuration asks for, and what of it is refused."""

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.base.errors import ConfigError
from barnabas.base.jaas import JaasError, login_modules
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.sasl import enabled_mechanisms, jaas_options, mechanism_value

PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="node-secret" user_node="node-secret";'
)
SCRAM = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="node" password="node-secret";'
)
SASL = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": PLAIN,
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": SCRAM,
    "listener.name.controller.plain.sasl.jaas.config": PLAIN,
}
NOT_SET = object()


def config_with(**changes: object) -> NodeConfig:
    values = {**SASL}
    for name, value in changes.items():
        key = name.replace("__", "-").replace("_", ".")
        if value is NOT_SET:
            del values[key]
        else:
            values[key] = str(value)
    return NodeConfig.from_properties(standalone_properties("/data", overrides=values))


def test_what_is_right_is_accepted_without_a_word() -> None:
    config = config_with()
    assert config.warnings == []
    assert jaas_options(config, "PLAINTEXT", "PLAIN") == {
        "username": "node",
        "password": "node-secret",
        "user_node": "node-secret",
    }


@pytest.mark.parametrize("name", ["sasl_jaas_config", "listener_name_other_sasl_jaas_config"])
def test_lines_that_hold_nowhere_are_named(name: str) -> None:
    (warning,) = config_with(**{name: PLAIN}).warnings
    assert warning.startswith(f"{name.replace('_', '.')} has no effect")
    assert "secret" not in warning


def test_keys_of_listeners_and_mechanisms_win() -> None:
    config = config_with(
        listener_name_controller_sasl_enabled_mechanisms="PLAIN",
        connections_max_reauth_ms=1,
        listener_name_plaintext_connections_max_reauth_ms=2,
        listener_name_plaintext_plain_connections_max_reauth_ms=3,
    )
    assert config.warnings == []
    assert enabled_mechanisms(config, "CONTROLLER") == ["PLAIN"]
    assert enabled_mechanisms(config, "PLAINTEXT") == ["PLAIN", "SCRAM-SHA-512"]
    key = "connections.max.reauth.ms"
    assert mechanism_value(config, "PLAINTEXT", "PLAIN", key) == 3
    assert mechanism_value(config, "PLAINTEXT", "SCRAM-SHA-512", key) == 2
    assert mechanism_value(config, "CONTROLLER", "PLAIN", key) == 1


REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "Kerberos, by default": (
        {"sasl_enabled_mechanisms": NOT_SET},
        "sasl.enabled.mechanisms: GSSAPI, the default, is not supported",
    ),
    "Kerberos between brokers, by default": (
        {"sasl_mechanism_inter_broker_protocol": NOT_SET},
        "sasl.mechanism.inter.broker.protocol: must be included in sasl.enabled.mechanisms",
    ),
    "Kerberos to controllers, by default": (
        {"sasl_mechanism_controller_protocol": NOT_SET},
        "sasl.mechanism.controller.protocol: GSSAPI, the default, is not supported",
    ),
    "no mechanism": (
        {"sasl_enabled_mechanisms": ""},
        "sasl.enabled.mechanisms",
    ),
    "an unknown mechanism": (
        {"sasl_enabled_mechanisms": "PLAIN,DIGEST-MD5"},
        "'DIGEST-MD5' of listener PLAINTEXT is not a supported mechanism",
    ),
    "not enabled between brokers": (
        {"sasl_mechanism_inter_broker_protocol": "SCRAM-SHA-256"},
        "must be included in sasl.enabled.mechanisms when SASL is used for inter-broker",
    ),
    "no users": (
        {"listener_name_plaintext_plain_sasl_jaas_config": NOT_SET},
        "listener.name.plaintext.plain.sasl.jaas.config: must be set",
    ),
    "no login of its own": (
        {"listener_name_plaintext_scram__sha__512_sasl_jaas_config": NOT_SET},
        "must name the username and password by which this node logs in",
    ),
    "no password of its own": (
        {
            "listener_name_controller_plain_sasl_jaas_config": PLAIN.replace(
                'password="node-secret" ', ""
            )
        },
        "must name the username and password by which this node logs in",
    ),
    "a line without listener and mechanism": (
        {
            "listener_name_plaintext_plain_sasl_jaas_config": NOT_SET,
            "sasl_jaas_config": PLAIN,
        },
        "sasl.jaas.config itself is not read",
    ),
    "a line without mechanism": (
        {
            "listener_name_plaintext_plain_sasl_jaas_config": NOT_SET,
            "listener_name_plaintext_sasl_jaas_config": PLAIN,
        },
        "listener.name.plaintext.sasl.jaas.config itself is not read",
    ),
    "a broken line": (
        {"listener_name_plaintext_plain_sasl_jaas_config": PLAIN.rstrip(";")},
        "JAAS config entry not terminated by semi-colon",
    ),
    "two modules": (
        {"listener_name_plaintext_plain_sasl_jaas_config": PLAIN + PLAIN},
        "contains 2 login modules, should be 1 module",
    ),
    "another mechanism's module": (
        {"listener_name_plaintext_plain_sasl_jaas_config": SCRAM},
        "the login module of PLAIN is org.apache.kafka",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_not_work_is_refused(name: str) -> None:
    changes, text = REFUSED[name]
    with pytest.raises(ConfigError) as caught:
        config_with(**changes)
    assert text in str(caught.value)
    assert "secret" not in str(caught.value)


def test_defaults_harm_nobody_without_a_sasl_listener() -> None:
    NodeConfig.from_properties(standalone_properties("/data"))


def test_a_line_for_a_mechanism_of_every_listener() -> None:
    values = {key: value for key, value in SASL.items() if "plain.sasl.jaas" not in key}
    values["plain.sasl.jaas.config"] = PLAIN
    config = NodeConfig.from_properties(standalone_properties("/data", overrides=values))
    assert config.warnings == []
    options = jaas_options(config, "CONTROLLER", "PLAIN")
    assert options is not None
    assert options["username"] == "node"
    assert "node-secret" not in repr(config)


MODULES: dict[str, dict[str, str]] = {
    "a required;": {},
    "a required x=y;": {"x": "y"},
    'a REQUIRED x="y z" ;': {"x": "y z"},
    "a required x='y;z';": {"x": "y;z"},
    r'a required x="y\"z\\";': {"x": 'y"z\\'},
    'a required\n  x="1"\n  y="2";': {"x": "1", "y": "2"},
    'a required x="//no comment" /* y=z */ z="#"; // end': {"x": "//no comment", "z": "#"},
    'a required "user_a b"="c";': {"user_a b": "c"},
    "a required user_a-b.c=d;": {"user_a-b.c": "d"},
}


@pytest.mark.parametrize("text", MODULES)
def test_lines_that_java_reads(text: str) -> None:
    (module,) = login_modules(text)
    assert module.options == MODULES[text]
    assert str(module.options) not in repr(module) or not module.options


BROKEN = {
    "": "Login module not specified in JAAS config",
    "// nothing": "Login module not specified in JAAS config",
    "a": "Login module control flag not specified in JAAS config",
    "a sometimes;": "Invalid login module control flag in JAAS config",
    "a required": "JAAS config entry not terminated by semi-colon",
    "a required secret;": "Value not specified for the first key in JAAS config",
    "a required x=;": "Value not specified for the first key in JAAS config",
    "a required x=y secret;": "Value not specified after 1 options in JAAS config",
    'a required x="secret;': "A quote is not closed in JAAS config",
}


@pytest.mark.parametrize("text", BROKEN)
def test_lines_that_java_does_not_read(text: str) -> None:
    with pytest.raises(JaasError) as caught:
        login_modules(text)
    assert str(caught.value) == BROKEN[text]
