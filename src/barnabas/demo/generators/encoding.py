"""Avro in the registry's framing, with the serialiser that users have: confluent-kafka's.

Nothing here knows when a schema evolves; it registers and encodes.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, Final

from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.demo.schemas import (
    AVRO_TOPICS,
    EVOLVED_FROM,
    EVOLVING_TOPIC,
    evolved_schema,
    first_schema,
    refused_schema,
    subject_of,
)

_CLIENT_SETTINGS: Final = {
    "timeout": 10,
    # About half a minute: the registry may be starting again.
    "max.retries": 30,
    "retries.wait.ms": 100,
    "retries.max.wait.ms": 1000,
}
_CONFLICT: Final = 409


class NotRefusedError(Exception):
    """The registry has taken a schema that breaks readers."""


class AvroEncoder:
    """Encodes the values of the input topics, each with the newest schema that it has."""

    def __init__(self, registry_url: str) -> None:
        self._open = ExitStack()
        settings = {"url": registry_url, **_CLIENT_SETTINGS}
        self._client = self._open.enter_context(SchemaRegistryClient(settings))
        self._contexts = {
            topic: SerializationContext(topic, MessageField.VALUE) for topic in AVRO_TOPICS
        }
        self._serializers: dict[str, AvroSerializer] = {}
        self.evolved = False

    def close(self) -> None:
        """Close the connection."""
        self._open.close()

    def register(self) -> None:
        """Register the first schema of each topic, or find it registered.

        Raises SchemaRegistryError where the registry refuses, and the client's own error of
        transport where it does not answer for half a minute.
        """
        for topic in AVRO_TOPICS:
            self._use(topic, Schema(first_schema(topic), "AVRO"))

    def evolve(self, from_ms: int) -> str:
        """Go on with the second schema of EVOLVING_TOPIC, then try a change that breaks readers.

        `from_ms` is the event time from which on events have the new field. The registry keeps it
        with the schema. Returns why the registry refused the other change, as it names such a
        fault. Raises as `register` does, and NotRefusedError.
        """
        since = datetime.fromtimestamp(from_ms / 1000, UTC).isoformat()
        properties = MetadataProperties({EVOLVED_FROM: since})
        metadata = Metadata(tags=None, properties=properties, sensitive=None)
        self._use(EVOLVING_TOPIC, Schema(evolved_schema(), "AVRO", metadata=metadata))
        self.evolved = True
        subject = subject_of(EVOLVING_TOPIC)
        try:
            self._client.register_schema(subject, Schema(refused_schema(), "AVRO"))
        except SchemaRegistryError as error:
            if error.http_status_code != _CONFLICT:
                raise
            match = re.search(r"errorType:\W*(\w+)", error.error_message)
            return match[1] if match else error.error_message
        raise NotRefusedError(f"the registry took an incompatible schema of {subject}")

    def encode(self, topic: str, value: dict[str, Any]) -> bytes:
        """Return a value as it is published."""
        encoded = self._serializers[topic](value, self._contexts[topic])
        assert encoded is not None
        return encoded

    def _use(self, topic: str, schema: Schema) -> None:
        # Now, not with the first record: from here on encoding asks nobody.
        self._client.register_schema(subject_of(topic), schema)
        self._serializers[topic] = AvroSerializer(
            self._client, schema, conf={"subject.name.strategy": topic_subject_name_strategy}
        )
