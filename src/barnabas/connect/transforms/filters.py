"""Filter, and the predicates: HasHeaderKey, RecordIsTombstone and TopicNameMatches.

Source: org.apache.kafka.connect.transforms (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.connect.config.definition import ConfigType, Definition, Setting
from barnabas.connect.config.validators import all_of, non_empty
from barnabas.connect.config.validators import regex as java_regex
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import Predicate, Transform
from barnabas.java.regex import compile_java


class Filter(Transform):
    """Drops every record; a predicate says which it sees."""

    def apply(self, record: ConnectRecord) -> None:
        """Drop the record."""


class HasHeaderKey(Predicate):
    """Records with a header of that name."""

    definition: ClassVar[Definition] = Definition(
        [Setting("name", ConfigType.STRING, doc="The header's name.", validator=non_empty)]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._name: str = parsed["name"]

    def test(self, record: ConnectRecord) -> bool:
        """Return whether the record has it."""
        return any(header.key == self._name for header in record.headers)


class RecordIsTombstone(Predicate):
    """Records without a value."""

    def test(self, record: ConnectRecord) -> bool:
        """Return whether the record has none."""
        return record.value is None


class TopicNameMatches(Predicate):
    """Records of topics whose names match a regular expression."""

    definition: ClassVar[Definition] = Definition(
        [
            Setting(
                "pattern",
                ConfigType.STRING,
                doc="A Java regular expression that the whole topic has to match.",
                validator=all_of(non_empty, java_regex),
            )
        ]
    )

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._pattern = compile_java(parsed["pattern"])
        self._known: dict[str, bool] = {}

    def test(self, record: ConnectRecord) -> bool:
        """Return whether the topic matches."""
        is_match = self._known.get(record.topic)
        if is_match is None:
            is_match = self._pattern.matches(record.topic)
            if len(self._known) < 1000:
                self._known[record.topic] = is_match
        return is_match
