"""Reading and changing configuration through the Admin API."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.connection import Connection
from barnabas.node.config.node_config import HIDDEN

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigResource

BROKER_DEFAULTS = "defaults"
"""In place of a broker's id: what holds for brokers that have no value of their own."""
SOURCES = {
    0: "unknown",
    1: "topic",
    2: "broker",
    3: "broker defaults",
    4: "file",
    5: "default",
    8: "group",
}
"""Where a value comes from, by the protocol's number."""


def describe(connection: Connection, kind: str, name: str) -> list[dict[str, Any]]:
    """Every key of a topic, broker or group; of broker `defaults` those set. Raises CliError."""
    if kind == "broker" and name == BROKER_DEFAULTS:
        return _describe_defaults(connection)
    resource = _resource(kind, name)
    futures = connection.admin.describe_configs([resource], request_timeout=connection.timeout_s)
    entries = connection.wait(futures[resource], f"{kind} {name}".strip())
    return [
        {
            "key": entry.name,
            "value": HIDDEN if entry.is_sensitive else entry.value,
            "source": SOURCES.get(int(entry.source), str(entry.source)),
            "read_only": bool(entry.is_read_only),
            "synonyms": [
                f"{synonym.name}={HIDDEN if entry.is_sensitive else synonym.value}"
                for synonym in entry.synonyms.values()
            ],
        }
        for _, entry in sorted(entries.items())
    ]


def _describe_defaults(connection: Connection) -> list[dict[str, Any]]:
    from barnabas.cli import broker_defaults

    return [
        {
            "key": entry.name,
            "value": HIDDEN if entry.is_sensitive else entry.value,
            "source": SOURCES.get(entry.config_source, str(entry.config_source)),
            "read_only": entry.read_only,
            "synonyms": [
                f"{synonym.name}={HIDDEN if entry.is_sensitive else synonym.value}"
                for synonym in entry.synonyms
            ],
        }
        for entry in sorted(broker_defaults.describe(connection), key=lambda entry: entry.name)
    ]


def overrides(connection: Connection, kind: str, name: str) -> dict[str, str]:
    """The keys that were set on a topic or group itself."""
    rows = describe(connection, kind, name)
    return {row["key"]: row["value"] for row in rows if row["source"] == kind}


def alter(
    connection: Connection,
    kind: str,
    name: str,
    values: Mapping[str, str],
    unset: Sequence[str] = (),
) -> None:
    """Set and unset keys, leaving the others as they are. Raises CliError."""
    if kind == "broker" and name == BROKER_DEFAULTS:
        from barnabas.cli import broker_defaults

        broker_defaults.alter(connection, values, unset)
        return
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    changes = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in values.items()
    ]
    changes += [
        ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in unset
    ]
    resource = _resource(kind, name)
    resource.incremental_configs = changes
    futures = connection.admin.incremental_alter_configs(
        [resource], request_timeout=connection.timeout_s
    )
    connection.wait(futures[resource], f"{kind} {name}".strip())


def _resource(kind: str, name: str) -> "ConfigResource":
    from confluent_kafka.admin import ConfigResource, ResourceType

    types = {
        "topic": ResourceType.TOPIC,
        "broker": ResourceType.BROKER,
        "group": ResourceType.GROUP,
    }
    return ConfigResource(types[kind], name)
