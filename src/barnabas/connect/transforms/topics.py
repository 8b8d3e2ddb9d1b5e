"""Transforms that change the topic: RegexRouter and TimestampRouter.

Source: org.apache.kafka.connect.transforms (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from barnabas.connect.config.definition import (
    ConfigType,
    Definition,
    Importance,
    Setting,
)
from barnabas.connect.config.validators import regex as java_regex
from barnabas.connect.record import ConnectRecord
from barnabas.connect.transforms.base import Transform
from barnabas.java.regex import compile_java, expand
from barnabas.java.regex_characters import JavaError
from barnabas.java.time.simple_date import SimpleDateFormat
from barnabas.schemas.data.errors import (
    ConnectError,
    DataError,
    IllegalArgumentError,
    IndexOutOfBoundsError,
)


class Rewriter:
    """Java's `matches`, then `replaceFirst`; the last topics are remembered."""

    def __init__(self, regex: str, replacement: str) -> None:
        self._pattern = compile_java(regex)
        self._replacement = replacement
        self._known: dict[str, str | None] = {}

    def __call__(self, text: str) -> str | None:
        """The text with what matches replaced; None where it does not match as a whole.

        Raises IllegalArgumentError for a replacement that cannot be.
        """
        if text in self._known:
            return self._known[text]
        result = self._rewritten(text)
        if len(self._known) < 1000:
            self._known[text] = result
        return result

    def _rewritten(self, text: str) -> str | None:
        if not self._pattern.matches(text):
            return None
        match = self._pattern.over(text)(0)
        assert match is not None
        try:
            new = expand(self._replacement, match, self._pattern)
        except JavaError as error:
            kind: type[ConnectError] = IllegalArgumentError
            if str(error).startswith("No group ") and "name" not in str(error):
                kind = IndexOutOfBoundsError
            raise kind(str(error)) from error
        return text[: match.start()] + new + text[match.end() :]


class RegexRouter(Transform):
    """Replaces what of a topic's name matches a regular expression."""

    definition: ClassVar[Definition] = Definition([
        Setting("regex", ConfigType.STRING, importance=Importance.HIGH,
                doc="A Java regular expression that the whole topic has to match.",
                validator=java_regex),
        Setting("replacement", ConfigType.STRING, importance=Importance.HIGH,
                doc="Replacement of the match; $1 is its first group."),
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._rewrite = Rewriter(parsed["regex"], parsed["replacement"])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record for its new topic. Raises ConnectError."""
        topic = self._rewrite(record.topic)
        if topic is None:
            return record
        copy = record.copied()
        copy.topic = topic
        return copy


class TimestampRouter(Transform):
    """Makes the topic of the old one and the record's time."""

    definition: ClassVar[Definition] = Definition([
        Setting("topic.format", ConfigType.STRING, default="${topic}-${timestamp}",
                importance=Importance.HIGH,
                doc="The new topic, in which ${topic} and ${timestamp} are replaced."),
        Setting("timestamp.format", ConfigType.STRING, default="yyyyMMdd",
                importance=Importance.HIGH,
                doc="Format of the time, for Java's SimpleDateFormat, in UTC."),
    ])  # fmt: skip

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._topic: str = parsed["topic.format"]
        self._pattern: str = parsed["timestamp.format"]
        self._format: SimpleDateFormat | None = None

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """Return the record for its new topic. Raises DataError if it has no time."""
        if record.timestamp_ms is None:
            raise DataError(f"Timestamp missing on record: {record}")
        if self._format is None:
            # As in Kafka, a pattern that is wrong fails with the first record.
            try:
                self._format = SimpleDateFormat(self._pattern)
            except ValueError as error:
                raise IllegalArgumentError(str(error)) from error
        copy = record.copied()
        copy.topic = self._topic.replace("${topic}", record.topic).replace(
            "${timestamp}", self._format.format(record.timestamp_ms)
        )
        return copy
