"""Connectors of others that run in Kafka's own worker: what Maven Central has of them.

It has Debezium's source and its JDBC sink, and Iceberg's sink. It has none of those that our
S3 connectors and our JDBC source are compatible with, which Confluent publishes elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.kafka_jars import fetch_jars
from bench.settings import CACHE, ROOT


@dataclass(slots=True, frozen=True)
class Plugin:
    """A connector, the POM that names its jars, and their folder under .cache."""

    title: str
    pom: Path
    folder: str

    def path(self) -> str:
        """The worker's `plugin.path`. Raises RuntimeError if it cannot be fetched."""
        libs = CACHE / self.folder / "libs"
        if not libs.exists():
            fetch_jars(self.title, self.pom, libs)
        return str(libs.parent)


_TOOLS: Final = ROOT / "tools"
DEBEZIUM: Final = Plugin(
    "Debezium's PostgreSQL source 3.3.1", _TOOLS / "debezium" / "pom.xml", "debezium-3.3.1"
)
DEBEZIUM_JDBC: Final = Plugin(
    "Debezium's JDBC sink 3.3.1", _TOOLS / "debezium" / "jdbc.xml", "debezium-jdbc-3.3.1"
)
ICEBERG: Final = Plugin(
    "Iceberg's sink 1.10.1", _TOOLS / "iceberg" / "pom.xml", "iceberg-connect-1.10.1"
)
