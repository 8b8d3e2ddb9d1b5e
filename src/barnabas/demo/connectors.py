"""The demo's worker of connectors: its properties, and the connector that captures the stations.

The files are those that any user of `barnabas connect start` writes, and so are their keys.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Final

from barnabas.base.config.properties import format_properties
from barnabas.base.private_files import write_private
from barnabas.demo.access import CONNECT, Access
from barnabas.demo.broker import BARNABAS
from barnabas.demo.database.place import CAPTURE, Place
from barnabas.demo.database.stations import DATABASE_NAME, PUBLICATION, TABLE
from barnabas.demo.outside import fetch_json
from barnabas.demo.processes import ChildSpec
from barnabas.demo.topics import STATIONS
from barnabas.demo.workspace import Settings, Workspace

WORKER: Final = "connect"
"""The part's name."""
STATIONS_CONNECTOR: Final = "stations"
_STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
_AVRO: Final = "io.confluent.connect.avro.AvroConverter"
_OFFSETS: Final = "offsets"


def worker_spec(
    workspace: Workspace,
    settings: Settings,
    bootstrap: str,
    place: Place,
    access: Access | None = None,
) -> ChildSpec:
    """Write the files, and return how to start the worker. Raises OSError."""
    os.makedirs(workspace.path(WORKER), exist_ok=True)
    worker = workspace.path(WORKER, "worker.properties")
    stations = workspace.path(WORKER, f"{STATIONS_CONNECTOR}.properties")
    login = {} if access is None else access.secured.java_properties(CONNECT)
    offsets = workspace.path(WORKER, _OFFSETS)
    write(worker, worker_properties(settings, bootstrap, offsets) | login)
    write(stations, stations_properties(settings, os.path.dirname(place.password_file(CAPTURE))))
    return ChildSpec(
        WORKER,
        [*BARNABAS, "connect", "start", worker, stations],
        grace_seconds=15.0,
        advice="See the log; `barnabas connect status` tells more while it runs.",
    )


def worker_properties(settings: Settings, bootstrap: str, offsets: str) -> dict[str, str]:
    """Return what connect-standalone.properties has."""
    return {
        **common_properties(settings, bootstrap, settings.connect_url, offsets),
        # Some rows a minute: Spark would be much for them.
        "barnabas.connect.engine": "local",
    }


def common_properties(settings: Settings, bootstrap: str, url: str, offsets: str) -> dict[str, str]:
    """Return what both of the demo's workers have."""
    return {
        "bootstrap.servers": bootstrap,
        "listeners": url,
        "key.converter": _STRING,
        "value.converter": _AVRO,
        "value.converter.schema.registry.url": settings.registry_url,
        "offset.storage.file.filename": offsets,
        "offset.flush.interval.ms": "1000",
        "config.providers": "directory",
        "config.providers.directory.class": (
            "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
        ),
    }


def stations_properties(settings: Settings, passwords: str) -> dict[str, str]:
    """Return the connector that captures the stations' table: what a row is now, by its id."""
    return {
        "name": STATIONS_CONNECTOR,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "topic.prefix": "charging",
        "database.hostname": "127.0.0.1",
        "database.port": str(settings.database_port),
        "database.user": CAPTURE,
        "database.password": f"${{directory:{passwords}:{CAPTURE}.password}}",
        "database.dbname": DATABASE_NAME,
        "table.include.list": f"public.{TABLE}",
        "slot.name": "barnabas_demo",
        "publication.name": PUBLICATION,
        "publication.autocreate.mode": "disabled",
        # A new database in an old directory is read as a whole again.
        "snapshot.mode": "when_needed",
        # The schema is the demo's own, which it has registered.
        "value.converter": _AVRO,
        "value.converter.schema.registry.url": settings.registry_url,
        "value.converter.auto.register.schemas": "false",
        "value.converter.use.latest.version": "true",
        "transforms": "row,key,topic",
        "transforms.row.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.key.field": "station_id",
        "transforms.topic.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.topic.regex": ".*",
        "transforms.topic.replacement": STATIONS,
        # A registry or a cluster that is away comes again.
        "errors.retry.timeout": "60000",
        "errors.retry.delay.max.ms": "1000",
    }


def forget_offsets(workspace: Workspace) -> None:
    """Let the stations be captured as a whole again, on a cluster that has none of them."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(workspace.path(WORKER, _OFFSETS))


def connector_states(url: str) -> dict[str, str] | None:
    """Return each connector's state; FAILED where a task's is. None where no worker answers."""
    answer = fetch_json(f"{url}/connectors?expand=status")
    if answer is None:
        return None
    return {name: _state(one["status"]) for name, one in sorted(answer.items())}


def _state(status: Mapping[str, Any]) -> str:
    states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
    if len(states) == 1 and states[0] == "RUNNING":
        return "UNASSIGNED"  # its tasks are still to come
    if "FAILED" in states:
        return "FAILED"
    return next((state for state in states if state != "RUNNING"), "RUNNING")


def write(path: str, values: Mapping[str, str]) -> None:
    """Write a file of properties for its owner alone. Raises OSError."""
    write_private(path, format_properties(dict(values)))
