"""Identifiers that every room shares."""

import base64
import binascii
from typing import NamedTuple, NewType

Uuid = NewType("Uuid", bytes)
"""Sixteen bytes, big-endian, as Kafka's Uuid on the wire."""

ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
"""The fixed topic id of `__cluster_metadata` (KIP-500)."""
NO_NODE = -1
"""The id of no node."""


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_to_text(uuid: Uuid) -> str:
    """Kafka's text form: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def uuid_from_text(text: str) -> Uuid:
    """Parse Kafka's text form. Raises ValueError if it does not hold sixteen bytes."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(f"{text!r} is not a base64 uuid") from error
    if len(raw) != 16:
        raise ValueError(f"{text!r} holds {len(raw)} bytes; a uuid has 16")
    return Uuid(raw)
