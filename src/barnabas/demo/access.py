"""The logins of the demo's clients if its cluster is secured.

Each part has its own user with exactly the rights that it needs. A process finds its
user's properties in the file that an environment variable names: passwords are in no command line.
"""

from __future__ import annotations

import os
from typing import Any, Final

from barnabas.app.secured import ADMIN, Right, Secured, Security, open_secured
from barnabas.base.config.properties import format_properties, parse_properties
from barnabas.base.private_files import write_private
from barnabas.demo.contract import TOPIC_PARTITIONS
from barnabas.demo.topics import (
    CONSUMER_GROUPS,
    ICEBERG_GROUP,
    INPUT_TOPICS,
    OUTPUT_TOPICS,
    STATIONS,
    USER_ACTIVITY,
)
from barnabas.protocol.acls import CLUSTER_NAME, Operation, PatternType, ResourceType

CONFIG_VARIABLE: Final = "BARNABAS_DEMO_CLIENT_CONFIG"
GENERATORS, REGISTRY, SQL_SERVER, DASHBOARD = "generators", "registry", "sql-server", "dashboard"
CONNECT, CONSOLE = "connect", "console"
USERS: Final = (ADMIN, GENERATORS, REGISTRY, SQL_SERVER, DASHBOARD, CONNECT, CONSOLE)
PIPELINE_NAMES: Final = (
    "pipeline-results-",
    "barnabas-sink-",
    "spark-kafka-source-",
    "barnabas-sql-",
)
"""The prefixes of the groups and transactional ids of the SQL server and of Spark."""
PREFIXED: Final = PatternType.PREFIXED
_READS: Final = (Operation.READ, Operation.DESCRIBE)
_SEES: Final = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
_WRITES: Final = (Operation.WRITE, Operation.CREATE, Operation.DESCRIBE)


def client_config(bootstrap: str) -> dict[str, Any]:
    """The settings with which every confluent-kafka client in this process connects."""
    path = os.environ.get(CONFIG_VARIABLE)
    if not path:
        return {"bootstrap.servers": bootstrap}
    with open(path, encoding="utf-8") as file:
        return {**parse_properties(file.read()), "bootstrap.servers": bootstrap}


class Access:
    """The users of a demo's secure cluster."""

    def __init__(self, directory: str, service_id: str) -> None:
        """Find or make them. Raises ModuleNotFoundError, OSError, ValueError."""
        self.secured: Secured = open_secured(
            directory, Security.SCRAM, USERS, tuple(rights(service_id))
        )

    def environment(self, user: str) -> dict[str, str]:
        """For a process that connects as `user`."""
        return {CONFIG_VARIABLE: self._file(f"{user}.librdkafka.properties")}

    def write_files(self, bootstrap: str) -> None:
        """Write what the parts read. Raises OSError."""
        self.secured.write_client_files(bootstrap)
        registry = self.secured.java_properties(REGISTRY)  # not as admin
        _write(self.registry_file, {f"kafkastore.{key}": registry[key] for key in registry})
        _write(self.sql_file, self.secured.java_properties(SQL_SERVER))

    @property
    def registry_file(self) -> str:
        """Properties of the schema registry."""
        return self._file("schema-registry.properties")

    @property
    def sql_file(self) -> str:
        """Properties of the SQL server."""
        return self._file("sql-server.ksql.properties")

    @property
    def console_file(self) -> str:
        """Settings of the console's clients."""
        return self._file(f"{CONSOLE}.properties")

    def _file(self, name: str) -> str:
        return os.path.join(self.secured.directory, name)


def rights(service_id: str) -> list[Right]:
    """The ACLs of each part."""
    topics, group = ResourceType.TOPIC, ResourceType.GROUP
    inputs = (STATIONS, *INPUT_TOPICS)
    granted = [
        *(Right(GENERATORS, topics, name, _WRITES) for name in TOPIC_PARTITIONS),
        Right(CONNECT, topics, STATIONS, _WRITES),
        Right(CONNECT, topics, USER_ACTIVITY, _READS),
        Right(CONNECT, group, ICEBERG_GROUP, _READS),
        Right(REGISTRY, topics, "_schemas"),
        Right(REGISTRY, group, "schema-registry"),
        Right(REGISTRY, ResourceType.TRANSACTIONAL_ID, "schema-registry", pattern=PREFIXED),
        *(Right(SQL_SERVER, topics, name, _READS) for name in inputs),
        *(Right(SQL_SERVER, topics, name) for name in OUTPUT_TOPICS),
        *(Right(DASHBOARD, topics, name, _READS) for name in (*inputs, *OUTPUT_TOPICS)),
        Right(DASHBOARD, group, "dashboard", _READS, PREFIXED),
        *(Right(DASHBOARD, group, name, _READS) for name in (*CONSUMER_GROUPS, ICEBERG_GROUP)),
        *(Right(SQL_SERVER, group, name, _READS) for name in CONSUMER_GROUPS),
        *(
            Right(CONSOLE, topics, name, (Operation.READ, *_SEES))
            for name in (*inputs, *OUTPUT_TOPICS, "_schemas")
        ),
        *(
            Right(CONSOLE, group, name, (Operation.DESCRIBE,))
            for name in (*CONSUMER_GROUPS, ICEBERG_GROUP, "schema-registry")
        ),
        Right(CONSOLE, group, "dashboard", (Operation.DESCRIBE,), PREFIXED),
        Right(CONSOLE, ResourceType.CLUSTER, CLUSTER_NAME, _SEES),
        Right(SQL_SERVER, ResourceType.CLUSTER, CLUSTER_NAME, (Operation.DESCRIBE,)),
        Right(DASHBOARD, ResourceType.CLUSTER, CLUSTER_NAME, (Operation.DESCRIBE,)),
    ]
    return granted + [
        Right(SQL_SERVER, kind, name, pattern=PREFIXED)
        for kind in (topics, group, ResourceType.TRANSACTIONAL_ID)
        for name in (f"_confluent-ksql-{service_id}", service_id, *PIPELINE_NAMES)
    ]


def _write(path: str, values: dict[str, str]) -> None:
    write_private(path, format_properties(values))
