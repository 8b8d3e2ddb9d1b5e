"""Reading, altering and resetting the offsets of a connector (KIP-875).

A source's are in the store, a sink's are those of its consumer group. Texts are those of Kafka's
Worker and SinkUtils (Kafka 4.3).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from barnabas.base.errors import ConfigError as BaseConfigError
from barnabas.connect.config import common
from barnabas.connect.config.validation import new_connector
from barnabas.connect.connectors.base import SinkConnector, SourceConnector
from barnabas.connect.errors.requests import BadRequestError
from barnabas.connect.record import JsonMap
from barnabas.connect.tasks.clients import admin_settings
from barnabas.connect.worker.store import OffsetStore
from barnabas.java.numbers import parse_whole
from barnabas.kafka.admin import Admin, answer_of
from barnabas.kafka.bearer_login import client_access
from barnabas.kafka.group_offsets import delete_offsets
from barnabas.kafka.wire_admin import AdminError, RefusedError, WireAdmin
from barnabas.protocol.errors import ErrorCode
from barnabas.schemas.data.errors import ConnectError

TOPIC: Final = "kafka_topic"
PARTITION: Final = "kafka_partition"
OFFSET: Final = "kafka_offset"
_TIMEOUT_S: Final = 90.0
_LONG: Final = 1 << 63
_BUSY: Final = (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NON_EMPTY_GROUP)
"""The refusals to delete offsets of a group that has members."""
Pair = tuple[JsonMap, JsonMap]
Given = Sequence[tuple[JsonMap | None, JsonMap | None]]


def modify(
    store: OffsetStore,
    worker: Mapping[str, str],
    name: str,
    config: Mapping[str, str],
    offsets: Given | None,
) -> str:
    """Alter a stopped connector's offsets, None resets all; returns what to tell the user.

    Raises ConnectError.
    """
    connector = new_connector(config[common.CONNECTOR_CLASS])
    if isinstance(connector, SinkConnector):
        is_whole = _modify_sink(connector, worker, name, config, offsets)
    else:
        assert isinstance(connector, SourceConnector)
        is_whole = _modify_source(store, connector, name, config, offsets)
    done = "altered" if offsets is not None else "reset"
    if is_whole:
        return f"The offsets for this connector have been {done} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {done} successfully. "
        "However, if this connector manages offsets externally, they will need to be manually "
        f"{done} in the system that the connector uses."
    )


def _modify_source(
    store: OffsetStore,
    connector: SourceConnector,
    name: str,
    config: Mapping[str, str],
    offsets: Given | None,
) -> bool:
    wanted: list[tuple[JsonMap, JsonMap | None]]
    if offsets is None:
        wanted = [(partition, None) for partition, _ in store.offsets(name, config).all()]
    else:
        for partition, offset in offsets:
            _check_format(partition)
            _check_format(offset)
        wanted = [(partition or {}, offset) for partition, offset in offsets]
    is_whole = connector.alter_offsets(config, wanted)
    if wanted:
        store.put_offsets(name, config, wanted)
    return is_whole


def _check_format(fields: JsonMap | None) -> None:
    for name, value in (fields or {}).items():
        if isinstance(value, dict | list):
            raise ConnectError(
                "Offsets may only contain primitive types as values, but field "
                f"{name} contains {'ARRAY' if isinstance(value, list) else 'MAP'}"
            )
        if isinstance(value, int) and not -_LONG <= value < _LONG:
            raise ConnectError(
                "Offsets may only contain primitive types as values, but field "
                f"{name} contains class java.math.BigInteger"
            )


def _modify_sink(
    connector: SinkConnector,
    worker: Mapping[str, str],
    name: str,
    config: Mapping[str, str],
    offsets: Given | None,
) -> bool:
    wanted = None if offsets is None else parse_sink_offsets(offsets)
    admin, group = _admin(worker, config), group_of(name, config)
    held = _committed(admin, group, name)
    is_whole = connector.alter_offsets(config, dict.fromkeys(held) if wanted is None else wanted)
    if wanted is None:
        _delete(admin, group, name)
        return is_whole
    _check_numbers(wanted, name)  # before any is changed
    if written := {key: offset for key, offset in wanted.items() if offset is not None}:
        _alter(admin, group, name, written)
    if gone := [key for key, offset in wanted.items() if offset is None and key in held]:
        _forget(admin_settings(config, worker), group, name, gone)
    return is_whole


def _check_numbers(wanted: Mapping[tuple[str, int], int | None], name: str) -> None:
    for (topic, number), offset in wanted.items():
        if not topic or number < 0:
            raise ConnectError(f"Failed to alter consumer group offsets for connector {name}")
        if offset is not None and offset < 0:
            raise ConnectError(f"Failed to modify offsets for sink connector {name}")


def parse_sink_offsets(offsets: Given) -> dict[tuple[str, int], int | None]:
    """Return offsets per topic and partition. Raises BadRequestError."""
    parsed: dict[tuple[str, int], int | None] = {}
    for partition, offset in offsets:
        if partition is None:
            raise BadRequestError(
                "The partition for a sink connector offset cannot be null or missing"
            )
        if TOPIC not in partition or PARTITION not in partition:
            raise BadRequestError(
                "The partition for a sink connector offset must contain the keys "
                f"'{TOPIC}' and '{PARTITION}'"
            )
        if partition[TOPIC] is None:
            raise BadRequestError("Kafka topic names must be valid strings and may not be null")
        if partition[PARTITION] is None:
            raise BadRequestError("Kafka partitions must be valid numbers and may not be null")
        number = _whole(partition[PARTITION], 32, "Kafka partition", "Partition")
        key = (_text(partition[TOPIC]), number)
        if offset is None:
            parsed[key] = None
        elif OFFSET not in offset:
            raise BadRequestError(
                "The offset for a sink connector should either be null or contain the key "
                f"'{OFFSET}'"
            )
        else:
            parsed[key] = _whole(offset[OFFSET], 64, "Kafka offset", "Offset")
    return parsed


def _whole(value: Any, bits: int, what: str, subject: str) -> int:
    try:
        if isinstance(value, bool | float):
            raise ValueError("not a whole number")
        half = 1 << (bits - 1)
        return parse_whole(str(value), -half, half - 1)
    except (TypeError, ValueError):
        raise BadRequestError(
            f"Failed to parse the following {what} value in the provided offsets: "
            f"'{_text(value)}'. {subject} values for sink connectors need to be integers."
        ) from None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def group_of(name: str, config: Mapping[str, str]) -> str:
    """Return the consumer group of a sink."""
    return config.get("consumer.override.group.id") or f"connect-{name}"


def sink_offsets(worker: Mapping[str, str], name: str, config: Mapping[str, str]) -> list[Pair]:
    """Return what a sink's consumer group has committed. Raises ConnectError."""
    held = _committed(_admin(worker, config), group_of(name, config), name)
    return [
        ({PARTITION: partition, TOPIC: topic}, {OFFSET: offset})
        for (topic, partition), offset in sorted(held.items())
    ]


def _admin(worker: Mapping[str, str], config: Mapping[str, str]) -> Admin:
    return Admin(admin_settings(config, worker), _TIMEOUT_S)


def _committed(admin: Admin, group: str, name: str) -> dict[tuple[str, int], int]:
    try:
        asked = [ConsumerGroupTopicPartitions(group)]
        future = admin.client.list_consumer_group_offsets(asked, request_timeout=_TIMEOUT_S)[group]
        answer = answer_of(future)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return {}
        text = f"Failed to retrieve consumer group offsets for sink connector {name}"
        raise ConnectError(text) from error
    return {(one.topic, one.partition): one.offset for one in answer.topic_partitions or ()}


def _alter(admin: Admin, group: str, name: str, offsets: Mapping[tuple[str, int], int]) -> None:
    partitions = [
        TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()
    ]
    try:
        asked = [ConsumerGroupTopicPartitions(group, partitions)]
        changed = admin.client.alter_consumer_group_offsets(asked, request_timeout=_TIMEOUT_S)
        done = answer_of(changed[group])
        for one in done.topic_partitions or ():
            if one.error is not None:
                raise KafkaException(one.error)
    except KafkaException as error:
        _refuse(error, error.args[0].code(), name, "alter", (KafkaError.UNKNOWN_MEMBER_ID,))


def _forget(
    settings: Mapping[str, Any], group: str, name: str, places: Sequence[tuple[str, int]]
) -> None:
    try:
        access = client_access(settings, _TIMEOUT_S)
    except BaseConfigError as error:  # such as Kerberos, which only librdkafka speaks here
        raise ConnectError(
            f"Cannot delete single consumer group offsets for connector {name}: {error}. "
            "Alter them, or reset all."
        ) from error
    with contextlib.closing(WireAdmin(access)) as admin:
        try:
            delete_offsets(admin, group, places)
        except RefusedError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                _refuse(error, error.code, name, "alter", _BUSY)
        except AdminError as error:
            _refuse(error, ErrorCode.UNKNOWN_SERVER_ERROR, name, "alter", _BUSY)


def _delete(admin: Admin, group: str, name: str) -> None:
    try:
        admin.delete_group(group)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
            _refuse(error, error.args[0].code(), name, "reset", (KafkaError.NON_EMPTY_GROUP,))


def _refuse(error: Exception, code: int, name: str, verb: str, busy: Collection[int]) -> None:
    if code in busy:
        raise ConnectError(
            f"Failed to {verb} consumer group offsets for connector {name} either because its "
            "tasks haven't stopped completely yet or the connector was resumed before the request "
            f"to {verb} its offsets could be successfully completed. If the connector is in a "
            "stopped state, this operation can be safely retried. If it doesn't eventually "
            "succeed, the Connect cluster may need to be restarted to get rid of the zombie sink "
            "tasks."
        ) from error
    kind = "sink connector" if verb == "reset" else "connector"
    raise ConnectError(f"Failed to {verb} consumer group offsets for {kind} {name}") from error
