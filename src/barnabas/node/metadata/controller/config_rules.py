"""Rules for the configuration of each kind of resource. Source: Kafka's
ControllerConfigurationValidator, ConfigAdminManager and DynamicBrokerConfig.validate (KIP-226,
KIP-339, KIP-714, KIP-848).
"""

import re
from collections.abc import Mapping
from typing import Any

from barnabas.base.config.definitions import ConfigKey, Scope
from barnabas.base.errors import ConfigError
from barnabas.node.config.definitions import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
)
from barnabas.node.config.node_values import LISTENER_KEY
from barnabas.node.config.topic import validate_topic_overrides
from barnabas.node.metadata.controller.decision import ControllerState, Failure
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.node.metadata.topic_names import invalid_topic_name_reason
from barnabas.node.net.connection_quotas import CONNECTIONS_KEY, CREATION_RATE_KEY
from barnabas.protocol.errors import ErrorCode

_BROKER_ID_MAX = 2**31 - 1
_NEVER_ZERO = frozenset({CONNECTIONS_KEY, CREATION_RATE_KEY})
"""A file may say 0; who is to change it back could not connect. Source: ListenerConnectionQuota."""
PUSH_INTERVAL_MIN_MS = 100
PUSH_INTERVAL_MAX_MS = 3_600_000
CLIENT_SELECTORS = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def check_config_values(
    state: ControllerState, resource_type: int, name: str, values: Mapping[str, str]
) -> Failure | None:
    """Why the resource may not have `values`, all of them together, or None if it may."""
    try:
        match resource_type:
            case ConfigResourceType.TOPIC:
                return _check_topic(state, name, values)
            case ConfigResourceType.BROKER:
                return _check_broker(state, name, values)
            case ConfigResourceType.CLIENT_METRICS:
                return _check_client_metrics(name, values)
            case ConfigResourceType.GROUP:
                return _check_group(state, name, values)
            case _:
                return Failure(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    except ConfigError as error:
        return Failure(ErrorCode.INVALID_CONFIG, str(error))


def check_exists(state: ControllerState, resource_type: int, name: str) -> Failure | None:
    """Topics and brokers must be there; groups and subscriptions may come later."""
    if resource_type == ConfigResourceType.TOPIC and name not in state.image.topics.by_name:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if resource_type == ConfigResourceType.BROKER and name:
        broker_id = int(name)
        if broker_id not in state.image.brokers and broker_id not in state.image.controllers:
            return Failure(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {broker_id} found."
            )
    return None


def config_key(resource_type: int, name: str) -> ConfigKey | None:
    """The definition of a configuration of such a resource, or None for an unknown one."""
    if resource_type == ConfigResourceType.BROKER:
        match = LISTENER_KEY.fullmatch(name)
        return BROKER_KEYS.get(match[2] if match else name)
    tables: dict[int, Mapping[str, ConfigKey]] = {
        ConfigResourceType.TOPIC: TOPIC_KEYS,
        ConfigResourceType.GROUP: GROUP_KEYS,
        ConfigResourceType.CLIENT_METRICS: CLIENT_METRICS_KEYS,
    }
    return tables.get(resource_type, {}).get(name)


def _check_topic(state: ControllerState, name: str, values: Mapping[str, str]) -> Failure | None:
    if not name:
        return Failure(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    reason = invalid_topic_name_reason(name)
    if reason is not None:
        return Failure(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    validate_topic_overrides(values, state.effective.broker(state.image.configs))
    return None


def _check_broker(state: ControllerState, name: str, values: Mapping[str, str]) -> Failure | None:
    """Only what may change while a node runs; a bad value is INVALID_REQUEST (KAFKA-13609)."""
    if name and not (name.isdecimal() and int(name) <= _BROKER_ID_MAX):
        return Failure(
            ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
        )
    current = state.image.configs.for_resource(ConfigResourceType.BROKER, name)
    changed = {key: value for key, value in values.items() if current.get(key) != value}
    refused = []
    single = []
    for key_name in changed:
        key = config_key(ConfigResourceType.BROKER, key_name)
        scope = Scope.READ_ONLY if key is None else key.scope
        if scope is Scope.READ_ONLY:
            refused.append(key_name)
        elif not name and (scope is Scope.PER_BROKER or LISTENER_KEY.fullmatch(key_name)):
            single.append(key_name)
    if refused:
        return Failure(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs dynamically: {', '.join(sorted(refused))}",
        )
    if single:
        return Failure(
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs at default cluster level, they belong to single brokers: "
            f"{', '.join(sorted(single))}",
        )
    try:
        for key_name, value in changed.items():
            key = config_key(ConfigResourceType.BROKER, key_name)
            if key is not None and key.parse(value) == 0 and key.name in _NEVER_ZERO:
                return Failure(ErrorCode.INVALID_REQUEST, f"Invalid {key.name} {value}")
        if name in ("", str(state.node_id)):
            state.config.with_dynamic(
                {**state.effective.dynamic_default(state.image.configs), **values}
            )
    except ConfigError as error:
        return Failure(ErrorCode.INVALID_REQUEST, str(error))
    return None


def _check_group(state: ControllerState, name: str, values: Mapping[str, str]) -> Failure | None:
    if not name:
        return Failure(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    typed = _check_known(GROUP_KEYS, values, "group")
    broker = state.effective.broker(state.image.configs)
    for key, value in typed.items():
        kind, _, rest = key.partition(".")
        for bound, exceeds in (("min", int.__lt__), ("max", int.__gt__)):
            # `streams.num.standby.replicas` is limited by `group.streams.max.standby.replicas`.
            limit_key = f"group.{kind}.{bound}.{rest.removeprefix('num.')}"
            if limit_key in BROKER_KEYS and exceeds(value, broker.get_int(limit_key)):
                raise ConfigError(key, f"{value} is beyond {limit_key}={broker.get_int(limit_key)}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = (
            typed.get(f"{kind}.{what}", broker.get(f"group.{kind}.{what}"))
            for what in ("session.timeout.ms", "heartbeat.interval.ms")
        )
        if session <= heartbeat:
            raise ConfigError(
                f"{kind}.session.timeout.ms",
                f"{session} must exceed {kind}.heartbeat.interval.ms={heartbeat}",
            )
    return None


def _check_client_metrics(name: str, values: Mapping[str, str]) -> Failure | None:
    if not name:
        return Failure(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    typed = _check_known(CLIENT_METRICS_KEYS, values, "client metrics")
    interval_ms = typed.get("interval.ms", PUSH_INTERVAL_MIN_MS)
    if not PUSH_INTERVAL_MIN_MS <= interval_ms <= PUSH_INTERVAL_MAX_MS:
        return Failure(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between "
            f"{PUSH_INTERVAL_MIN_MS} and {PUSH_INTERVAL_MAX_MS}",
        )
    for entry in typed.get("match", []):
        selector, equals, pattern = entry.partition("=")
        if not equals or selector.strip() not in CLIENT_SELECTORS or not _compiles(pattern.strip()):
            return Failure(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}")
    return None


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _check_known(keys: Mapping[str, ConfigKey], values: Mapping[str, str], what: str) -> Any:
    """The typed values. Raises ConfigError for an unknown key or an unusable value."""
    for name in values:
        if name not in keys:
            raise ConfigError(name, f"is not a {what} key")
    return {name: keys[name].parse(value) for name, value in values.items()}
