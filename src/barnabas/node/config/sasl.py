"""Logins by SASL, as a node's configuration has them: mechanisms and login modules by listener.

A key may hold for one mechanism of one listener (`listener.name.internal.plain.sasl.jaas.config`,
names in lower case). Source: KafkaConfig, JaasContext and SaslConfigs of Kafka 4.3. The file that
`java.security.auth.login.config` names is not read.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from barnabas.base.errors import ConfigError
from barnabas.base.jaas import JaasError, login_modules
from barnabas.node.config import oauth
from barnabas.node.config.definitions import BROKER_KEYS
from barnabas.node.config.node_values import NodeValues

SASL_PROTOCOLS: Final = ("SASL_PLAINTEXT", "SASL_SSL")
ENABLED_KEY = "sasl.enabled.mechanisms"
JAAS_KEY = "sasl.jaas.config"
INTER_BROKER_KEY = "sasl.mechanism.inter.broker.protocol"
CONTROLLER_KEY = "sasl.mechanism.controller.protocol"
MAX_REAUTH_KEY = "connections.max.reauth.ms"
LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    oauth.MECHANISM: oauth.LOGIN_MODULE,
}
"""The mechanisms that are served, and the Java class that stands for each in JAAS lines."""
PASSWORD_MECHANISMS: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
"""Those in which a node logs in with `username` and `password`."""


def uses_sasl(config: NodeValues, listener_name: str) -> bool:
    """Return whether clients of a listener log in by SASL."""
    return config.protocol_map.get(listener_name) in SASL_PROTOCOLS


def enabled_mechanisms(config: NodeValues, listener_name: str) -> list[str]:
    """The mechanisms of a listener's clients, in the order given."""
    mechanisms: list[str] = config.listener_value(listener_name, ENABLED_KEY) or []
    return mechanisms


def mechanism_value(config: NodeValues, listener_name: str, mechanism: str, key: str) -> Any:
    """The value of `key` for one mechanism of a listener: its own, or the listener's."""
    text = _own_text(config, listener_name, mechanism, key)
    if text is not None:
        return BROKER_KEYS[key].parse(text)
    return config.listener_value(listener_name, key)


def jaas_key(listener_name: str, mechanism: str) -> str:
    """The key of the JAAS line of a mechanism of a listener."""
    return f"listener.name.{listener_name.lower()}.{mechanism.lower()}.{JAAS_KEY}"


def jaas_options(config: NodeValues, listener_name: str, mechanism: str) -> dict[str, str] | None:
    """The options of a mechanism's login module on a listener; None if none is set.

    Raises ConfigError.
    """
    text = _own_text(config, listener_name, mechanism, JAAS_KEY)
    if text is None:
        return None
    key = jaas_key(listener_name, mechanism)
    try:
        modules = login_modules(text)
    except JaasError as error:
        raise ConfigError(key, str(error)) from None
    if len(modules) != 1:
        raise ConfigError(
            key, f"JAAS config property contains {len(modules)} login modules, should be 1 module"
        )
    wanted = LOGIN_MODULES[mechanism]
    if modules[0].name != wanted:
        raise ConfigError(key, f"the login module of {mechanism} is {wanted}")
    return modules[0].options


def asks_signed_tokens(config: NodeValues, listener_name: str) -> bool:
    """Whether OAUTHBEARER tokens that a listener takes must be signed. Raises ConfigError."""
    mechanism = oauth.MECHANISM
    return oauth.checks_signatures(
        mechanism_value(config, listener_name, mechanism, oauth.JWKS_URL_KEY),
        mechanism_value(config, listener_name, mechanism, oauth.SERVER_HANDLER_KEY),
        f"listener {listener_name}",
    )


def _own_text(config: NodeValues, listener_name: str, mechanism: str, key: str) -> str | None:
    own = f"{mechanism.lower()}.{key}"
    originals: Mapping[str, str] = config.originals
    return originals.get(f"listener.name.{listener_name.lower()}.{own}", originals.get(own))


# -- validation


def check_sasl(config: NodeValues) -> None:
    """Raises ConfigError where a listener's clients, or this node, could not log in."""
    oauth.check_classes(config.originals)
    for listener in config.listeners:
        if uses_sasl(config, listener.name):
            _check_listener(config, listener.name)
    if "broker" in config.process_roles and uses_sasl(config, config.inter_broker_listener_name):
        name = config.inter_broker_listener_name
        mechanism = config.get_str(INTER_BROKER_KEY)
        if mechanism not in enabled_mechanisms(config, name):
            raise ConfigError(
                INTER_BROKER_KEY,
                f"must be included in {ENABLED_KEY} when SASL is used for inter-broker "
                "communication",
            )
        _check_own_login(config, name, INTER_BROKER_KEY, mechanism)
    for name in config.controller_listener_names[:1]:
        if uses_sasl(config, name):
            _check_own_login(config, name, CONTROLLER_KEY, config.get_str(CONTROLLER_KEY))


def _check_listener(config: NodeValues, listener_name: str) -> None:
    mechanisms = enabled_mechanisms(config, listener_name)
    if not mechanisms:
        raise ConfigError(ENABLED_KEY, f"listener {listener_name} has no mechanism")
    for mechanism in mechanisms:
        _check_mechanism(ENABLED_KEY, mechanism, f"listener {listener_name}")
        options = jaas_options(config, listener_name, mechanism)
        if mechanism == "PLAIN" and options is None:
            raise ConfigError(
                jaas_key(listener_name, mechanism),
                f"must be set, since listener {listener_name} offers PLAIN: it names the users, "
                'each as user_alice="..."' + _misplaced(config),
            )
        if (
            mechanism == oauth.MECHANISM
            and not asks_signed_tokens(config, listener_name)
            and options is None
        ):
            raise ConfigError(
                jaas_key(listener_name, mechanism),
                f"must be set, or {oauth.JWKS_URL_KEY}, since listener {listener_name} offers "
                "OAUTHBEARER" + _misplaced(config),
            )


def _check_own_login(config: NodeValues, listener_name: str, key: str, mechanism: str) -> None:
    _check_mechanism(key, mechanism, f"connections to listener {listener_name}")
    if mechanism not in PASSWORD_MECHANISMS:
        return
    options = jaas_options(config, listener_name, mechanism)
    if options is None or not options.get("username") or not options.get("password"):
        raise ConfigError(
            jaas_key(listener_name, mechanism),
            "must name the username and password by which this node logs in" + _misplaced(config),
        )


def _check_mechanism(key: str, mechanism: str, where: str) -> None:
    if mechanism == "GSSAPI":
        raise ConfigError(
            key,
            f"GSSAPI, the default, is not supported, but {where} would use it; choose from "
            + ", ".join(LOGIN_MODULES),
        )
    if mechanism not in LOGIN_MODULES:
        raise ConfigError(
            key,
            f"{mechanism!r} of {where} is not a supported mechanism; choose from "
            + ", ".join(LOGIN_MODULES),
        )


def _misplaced(config: NodeValues) -> str:
    """Said where a line is missed, and there is one that holds nowhere, as in Kafka."""
    for name in config.originals:
        if name == JAAS_KEY or re.fullmatch(rf"listener\.name\.[^.]+\.{JAAS_KEY}", name):
            return f". {name} itself is not read: it needs a listener and a mechanism in front"
    return ""
