"""Plugins of others that are not here: why, and what takes their place."""

from __future__ import annotations

from typing import Final


def why_absent(class_name: str) -> str | None:
    """Why a plugin that users may know is not here; None of one that nobody knows."""
    why = _REFUSED.get(class_name)
    return None if why is None else f"Class {class_name} {why}"


def not_found(class_name: str) -> str:
    """Return Kafka's text for a class that nobody finds, or why it is not here."""
    return why_absent(class_name) or f"Failed to find any class that matches {class_name}"


_SCRIPTS: Final = (
    "runs scripts in a Java VM, and none is here. A predicate, or a transform of one's own in "
    "Python, takes its place."
)
_DOCUMENTS: Final = (
    "reads changes of Debezium's MongoDB connector, which is not here. MongoDB's own connector, "
    "com.mongodb.kafka.connect.MongoSourceConnector, publishes documents by itself with "
    "publish.full.document.only=true."
)
_REFUSED: Final = {
    "io.debezium.transforms.Filter": _SCRIPTS,
    "io.debezium.transforms.ContentBasedRouter": _SCRIPTS,
    "io.debezium.transforms.openlineage.OpenLineage": (
        "tells an OpenLineage server of a connector's data, and no client of it is here."
    ),
    "io.debezium.transforms.tracing.ActivateTracingSpan": (
        "needs OpenTelemetry's agent in a Java VM, and none is here."
    ),
    "io.debezium.connector.postgresql.transforms.timescaledb.TimescaleDb": (
        "asks a TimescaleDB database what its chunks are, which is not done here."
    ),
    "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState": _DOCUMENTS,
    "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter": _DOCUMENTS,
}
