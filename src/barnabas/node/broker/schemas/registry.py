"""The questions that a schema registry is asked.

An interface, so that nothing that decides knows of HTTP.
"""

from typing import NamedTuple, Protocol

from barnabas.node.log.config import TOPIC_NAME_STRATEGY

RECORD_NAME_STRATEGY = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
TOPIC_RECORD_NAME_STRATEGY = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"


class Claim(NamedTuple):
    """The claim that the schema of a key or value is registered under its subject."""

    identity: bytes
    """As `wire_format.py` finds it."""
    strategy: str
    """The strategy that names the subject."""
    topic: str
    is_key: bool

    def subject(self, record_name: str | None) -> str | None:
        """The subject; None where it needs the name of a record, and the schema is of none."""
        if self.strategy == TOPIC_NAME_STRATEGY:
            return f"{self.topic}-{'key' if self.is_key else 'value'}"
        if record_name is None or self.strategy == RECORD_NAME_STRATEGY:
            return record_name
        return f"{self.topic}-{record_name}"

    @property
    def needs_record_name(self) -> bool:
        """True if the subject is named after the schema's record."""
        return self.strategy != TOPIC_NAME_STRATEGY


class NoAnswerError(Exception):
    """The registry gave no usable answer. The text holds no credentials."""


class Registry(Protocol):
    """A registry, or several instances of one."""

    async def holds(self, claim: Claim) -> bool:
        """Return whether `claim` is true. Raises NoAnswerError."""
