"""Which topics, groups and topic settings are mirrored: those of a list of names and patterns.

Source: DefaultTopicFilter, DefaultGroupFilter, DefaultConfigPropertyFilter (Kafka 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.connect.config.values import invalid
from barnabas.java.regex import JavaPattern, compile_java
from barnabas.java.regex_characters import PatternError

TOPICS_EXCLUDED: Final = r".*[\-\.]internal, .*\.replica, __.*"
GROUPS_EXCLUDED: Final = "console-consumer-.*, connect-.*, __.*"
CONFIGS_EXCLUDED: Final = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, "
    r"unclean\.leader\.election\.enable, min\.insync\.replicas"
)


class _Lists:
    """Names that one list of patterns has and another has not."""

    INCLUDE: str = ""
    EXCLUDE: str = ""
    EXCLUDED: str = ""

    def __init__(self) -> None:
        self._include = _pattern(self.INCLUDE, ".*")
        self._exclude = _pattern(self.EXCLUDE, self.EXCLUDED)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the connector's settings. Raises ConfigError."""
        self._include = _pattern(self.INCLUDE, settings.get(self.INCLUDE, ".*"))
        self._exclude = _pattern(self.EXCLUDE, settings.get(self.EXCLUDE, self.EXCLUDED))

    def _has(self, name: str) -> bool:
        if self._include is None or not self._include.matches(name):
            return False
        return self._exclude is None or not self._exclude.matches(name)


class DefaultTopicFilter(_Lists):
    """`topics` without `topics.exclude`."""

    INCLUDE, EXCLUDE, EXCLUDED = "topics", "topics.exclude", TOPICS_EXCLUDED

    def should_replicate_topic(self, topic: str) -> bool:
        """Return whether a topic is mirrored."""
        return self._has(topic)


class DefaultGroupFilter(_Lists):
    """`groups` without `groups.exclude`."""

    INCLUDE, EXCLUDE, EXCLUDED = "groups", "groups.exclude", GROUPS_EXCLUDED

    def should_replicate_group(self, group: str) -> bool:
        """Return whether the offsets of a group are translated."""
        return self._has(group)


class DefaultConfigPropertyFilter:
    """All settings of topics without `config.properties.exclude`."""

    def __init__(self) -> None:
        self.configure({})

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the connector's settings. Raises ConfigError."""
        name = "config.properties.exclude"
        self._exclude = _pattern(name, settings.get(name, CONFIGS_EXCLUDED))
        self._uses_source = settings.get("use.defaults.from", "target") == "source"

    def should_replicate_config_property(self, name: str) -> bool:
        """Return whether a setting of topics is mirrored."""
        return self._exclude is None or not self._exclude.matches(name)

    def should_replicate_source_default(self, name: str) -> bool:
        """Return whether a default of the source is set in the target, too."""
        return self._uses_source


def _pattern(name: str, text: str) -> JavaPattern | None:
    parts: Sequence[str] = [part.strip() for part in text.split(",")]
    if not text.strip():
        return None
    try:
        return compile_java("|".join(f"(?:{part})" for part in parts))
    except PatternError as error:
        raise invalid(name, text, f"no regular expression ({error})") from error
