"""AlterConfigs (API 33, versions 0-2) and IncrementalAlterConfigs (44, 0-1; KIP-339).

Each resource changes as a whole or not at all. Broker loggers are no metadata: the broker that
gets the request sets them itself (`node/broker/apis/alter_configs.py`).
Source: Kafka's ConfigurationControlManager; KIP-966 for what min.insync.replicas entails.
"""

from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.base.config.values import ConfigType
from barnabas.node.config.node_values import CORDONED_KEY
from barnabas.node.metadata.controller.config_rules import (
    check_config_values,
    check_exists,
    config_key,
)
from barnabas.node.metadata.controller.decision import ControllerState, Decision, Failure, R
from barnabas.node.metadata.controller.elections import unclean_election_records
from barnabas.node.metadata.controller.leadership import MIN_ISR, UNCLEAN_ELECTION
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.node.metadata.records import MetadataRecord
from barnabas.node.metadata.replay import ImageDelta
from barnabas.protocol.apis import API_OF
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import ELR_VERSION
from barnabas.protocol.messages import configs as configs_messages
from barnabas.protocol.messages.metadata_records import ClearElrRecord, ConfigRecord


class Operation(IntEnum):
    """The operation of an entry of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Resource(NamedTuple):
    """The resource whose configuration changes."""

    type: int
    name: str


def alter_configs(
    state: ControllerState,
    request: configs_messages.IncrementalAlterConfigsRequest | configs_messages.AlterConfigsRequest,
) -> Decision[Any]:
    """Decide each resource of the request. AlterConfigs unsets the keys that it does not name."""
    decision: Decision[Any] = Decision(API_OF[type(request)].response())
    outcomes: list[tuple[Resource, ErrorCode, str | None]] = []
    times_named = Counter(_resource(resource) for resource in request.resources)
    for resource in request.resources:
        key = _resource(resource)
        times = times_named.pop(key, 0)
        if times == 0:
            continue
        current = state.image.configs.for_resource(*key)
        changes = changes_of(current, resource) if times == 1 else _duplicate()
        records = changes if isinstance(changes, Failure) else _decide(state, key, changes)
        if isinstance(records, Failure):
            outcomes.append((key, records.code, records.message))
        else:
            decision.records += records
            outcomes.append((key, ErrorCode.NONE, None))
    if request.validate_only:
        decision.records.clear()
    else:
        _elect_where_now_allowed(state, decision)
    decision.response.responses = [
        configs_messages.AlterConfigsResourceResponse(
            error_code=code,
            error_message=message,
            resource_type=key.type,
            resource_name=key.name,
        )
        for key, code, message in outcomes
    ]
    return decision


def _elect_where_now_allowed(state: ControllerState, decision: Decision[R]) -> None:
    """A topic that may now lose data to have a leader need not wait for one any longer."""
    if not any(
        isinstance(record.message, ConfigRecord) and record.message.name == UNCLEAN_ELECTION
        for record in decision.records
    ):
        return
    delta = ImageDelta(state.image)
    for record in decision.records:
        if isinstance(record.message, ConfigRecord):
            delta.replay(record.message)
    configs = delta.image(state.image.offset, state.image.epoch).configs
    elections = unclean_election_records(state, configs)
    if elections:
        decision.records += elections
        decision.is_atomic = False


def changed_config_records(
    state: ControllerState, key: Resource, changes: Mapping[str, str | None]
) -> list[MetadataRecord]:
    """The records that make `changes` (None removes), and what follows from them."""
    current = state.image.configs.for_resource(*key)
    records = []
    for name, value in changes.items():
        # Brokers reload what is set again: a key store whose file changed (KAFKA-14136).
        if current.get(name) != value or key.type == ConfigResourceType.BROKER:
            records.append(_config_record(key, name, value))
            if name == MIN_ISR and state.image.features.get(ELR_VERSION, 0) >= 1:
                # Eligible leaders were reckoned with the other minimum.
                topic = key.name if key.type == ConfigResourceType.TOPIC else ""
                records.append(MetadataRecord(ClearElrRecord(topic_name=topic)))
    return records


def elr_safety_records(state: ControllerState) -> list[MetadataRecord]:
    """The changes needed before eligible leader replicas are kept: one minimum for all brokers.

    The cluster's default is written down, and those of single brokers are dropped (KIP-966).
    """
    default = Resource(ConfigResourceType.BROKER, "")
    records = []
    if MIN_ISR not in state.image.configs.for_resource(*default):
        records.append(_config_record(default, MIN_ISR, str(state.config.get_int(MIN_ISR))))
    for name in state.image.configs.names(ConfigResourceType.BROKER):
        resource = Resource(ConfigResourceType.BROKER, name)
        if name and MIN_ISR in state.image.configs.for_resource(*resource):
            records.append(_config_record(resource, MIN_ISR, None))
    return records


def _resource(
    resource: configs_messages.AlterConfigsResource
    | configs_messages.AlterConfigsAlterConfigsResource,
) -> Resource:
    return Resource(resource.resource_type, resource.resource_name)


def _duplicate() -> Failure:
    return Failure(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def _decide(
    state: ControllerState, key: Resource, changes: Mapping[str, str | None]
) -> list[MetadataRecord] | Failure:
    values = dict(state.image.configs.for_resource(*key))
    for name, value in changes.items():
        if value is None:
            values.pop(name, None)
        else:
            values[name] = value
    failure = (
        check_config_values(state, key.type, key.name, values)
        or check_exists(state, key.type, key.name)
        or _check_min_isr(state, key, changes)
        or _check_cordoned(state, key, changes)
    )
    return failure or changed_config_records(state, key, changes)


def _check_min_isr(
    state: ControllerState, key: Resource, changes: Mapping[str, str | None]
) -> Failure | None:
    """With eligible leader replicas every broker must go by the same minimum (KIP-966)."""
    if (
        key.type != ConfigResourceType.BROKER
        or MIN_ISR not in changes
        or state.image.features.get(ELR_VERSION, 0) < 1
    ):
        return None
    if key.name:
        return Failure(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.",
        )
    if changes[MIN_ISR] is None:
        return Failure(
            ErrorCode.INVALID_CONFIG,
            f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.",
        )
    return None


def _check_cordoned(
    state: ControllerState, key: Resource, changes: Mapping[str, str | None]
) -> Failure | None:
    """Values that older controllers could not keep are refused (KIP-1066)."""
    if (
        key.type != ConfigResourceType.BROKER
        or CORDONED_KEY not in changes
        or state.image.metadata_version.has_cordoned_log_dirs
    ):
        return None
    return Failure(
        ErrorCode.INVALID_CONFIG,
        f"The {CORDONED_KEY} configuration value cannot be set because it requires "
        "metadata.version >= 4.3-IV0.",
    )


def changes_of(
    current: Mapping[str, str],
    resource: configs_messages.AlterConfigsResource
    | configs_messages.AlterConfigsAlterConfigsResource,
) -> dict[str, str | None] | Failure:
    """The changes that an entry of either request makes to `current`; None removes a value."""
    if isinstance(resource, configs_messages.AlterConfigsAlterConfigsResource):
        return _replacement(current, resource)
    return _apply_operations(current, resource)


def _apply_operations(
    current: Mapping[str, str], resource: configs_messages.AlterConfigsResource
) -> dict[str, str | None] | Failure:
    names = [config.name for config in resource.configs]
    failure = _check_entries(
        names,
        [
            config.name
            for config in resource.configs
            if config.value is None and config.config_operation != Operation.DELETE
        ],
    )
    if failure is not None:
        return failure
    changes: dict[str, str | None] = {}
    for config in resource.configs:
        value = config.value or ""
        match config.config_operation:
            case Operation.SET:
                changes[config.name] = value
            case Operation.DELETE:
                changes[config.name] = None
            case Operation.APPEND | Operation.SUBTRACT as operation:
                definition = config_key(resource.resource_type, config.name)
                if definition is None or definition.type is not ConfigType.LIST:
                    return Failure(
                        ErrorCode.INVALID_CONFIG,
                        f"Can't {Operation(operation).name} to key {config.name} because its type "
                        "is not LIST.",
                    )
                text = current.get(config.name)
                if text is None:
                    text = definition.default_text or ""
                changes[config.name] = _change_list(text, value, operation == Operation.APPEND)
            case unknown:
                return Failure(ErrorCode.INVALID_REQUEST, f"Unknown operations type {unknown}")
    return changes


def _change_list(text: str, value: str, is_append: bool) -> str:
    parts = [part for part in text.split(",") if part]
    for item in value.split(","):
        if is_append and item not in parts:
            parts.append(item)
        elif not is_append and item in parts:
            parts.remove(item)
    return ",".join(parts)


def _replacement(
    current: Mapping[str, str], resource: configs_messages.AlterConfigsAlterConfigsResource
) -> dict[str, str | None] | Failure:
    names = [config.name for config in resource.configs]
    failure = _check_entries(
        names, [config.name for config in resource.configs if config.value is None]
    )
    if failure is not None:
        return failure
    changes: dict[str, str | None] = {config.name: config.value for config in resource.configs}
    for name in current:
        changes.setdefault(name, None)
    return changes


def _check_entries(names: list[str], without_value: list[str]) -> Failure | None:
    if len(set(names)) != len(names):
        return Failure(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if without_value:
        return Failure(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(without_value)}"
        )
    return None


def _config_record(key: Resource, name: str, value: str | None) -> MetadataRecord:
    return MetadataRecord(
        ConfigRecord(resource_type=key.type, resource_name=key.name, name=name, value=value)
    )
