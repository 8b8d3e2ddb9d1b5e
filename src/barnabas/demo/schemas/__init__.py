"""Avro schemas of the input topics: a file for each topic, or for each version of it.

One topic evolves in the middle of a run: `station-status` gets a field, with a default, so that
old readers and new ones understand old and new records. Files ending in `.refused.avsc` hold a
change that breaks readers, which the registry is asked for too.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

from barnabas.demo.topics import CHARGING_EVENTS, STATION_STATUS, STATIONS, USER_ACTIVITY

EVOLVING_TOPIC: Final = STATION_STATUS
EVOLVED_FIELD: Final = "temperature_c"
EVOLVED_FROM: Final = "published.from"
"""Property of the second schema's metadata: the event time from which on events have the field."""

_FILES: Final = {
    STATIONS: "stations",
    STATION_STATUS: "station-status.v1",
    CHARGING_EVENTS: "charging-events",
    USER_ACTIVITY: "user-activity",
}
AVRO_TOPICS: Final = tuple(_FILES)


def subject_of(topic: str) -> str:
    """Return the subject of a topic's values."""
    return f"{topic}-value"


def first_schema(topic: str) -> str:
    """Return the schema with which a topic begins; the demo's own readers keep to it."""
    return _text(_FILES[topic])


def evolved_schema() -> str:
    """Return the second version of EVOLVING_TOPIC's schema."""
    return _text(f"{EVOLVING_TOPIC}.v2")


def refused_schema() -> str:
    """Return a schema that is not a compatible third version."""
    return _text(f"{EVOLVING_TOPIC}.refused")


def _text(name: str) -> str:
    return (resources.files(__name__) / f"{name}.avsc").read_text(encoding="utf-8")
