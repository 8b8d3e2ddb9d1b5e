"""Reading and changing configuration through the Admin API."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.connection import Connection
from barnabas.cli.errors import CliError, ExitCode

if TYPE_CHECKING:
    from confluent_kafka.admin import ConfigResource

HIDDEN = "[hidden]"
SOURCES = {
    0: "unknown",
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "file",
    5: "default",
    8: "group",
}
"""Where a value comes from, by the protocol's number."""


def describe(connection: Connection, kind: str, name: str) -> list[dict[str, Any]]:
    """Every key of a topic, broker or group. Raises CliError."""
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
    if kind != "broker" and not name:
        raise CliError(f"a {kind} needs a name", ExitCode.USAGE)
    return ConfigResource(types[kind], name)
