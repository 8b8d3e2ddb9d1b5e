"""Creation of the topics that a source writes to, by the groups of its `topic.creation.*`.

Source: TopicCreation, TopicCreationConfig, TopicCreationGroup (Kafka 4.3, KIP-158).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from barnabas.connect.config.values import invalid, missing, names, with_prefix
from barnabas.connect.tasks.chain import Settings
from barnabas.connect.tasks.kafka_errors import as_connect_error
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.kafka.admin import Admin

CALL_TIMEOUT_SECONDS: Final = 60.0
_DEFAULT: Final = "default"
_OWN: Final = ("include", "exclude", "replication.factor", "partitions")
_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class TopicGroup:
    """Topics that are created with the same settings; -1 leaves a number to the brokers."""

    name: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    replicas: int
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)

    def has(self, topic: str) -> bool:
        """Return whether a topic belongs to it."""
        if any(compile_java(pattern).matches(topic) for pattern in self.exclude):
            return False
        return any(compile_java(pattern).matches(topic) for pattern in self.include)


def read_groups(connector: Settings, worker: Settings) -> tuple[TopicGroup, ...]:
    """Return the groups, the default one last; empty where topics are not created by the task.

    Raises ConfigError.
    """
    is_enabled = worker.get("topic.creation.enable", "true").strip().lower() == "true"
    if not is_enabled or not any(name.startswith("topic.creation.") for name in connector):
        return ()
    default = _group(_DEFAULT, connector, None)
    named = names(connector.get("topic.creation.groups", ""))
    return (*(_group(name, connector, default) for name in named if name != _DEFAULT), default)


def _group(name: str, connector: Settings, default: TopicGroup | None) -> TopicGroup:
    prefix = f"topic.creation.{name}."
    given = with_prefix(connector, prefix)
    include = tuple(names(given.get("include", ".*" if default is None else "")))
    exclude = tuple(names(given.get("exclude", "")))
    for pattern in (*include, *exclude):
        try:
            compile_java(pattern)
        except PatternError as error:
            text = f"Syntax error in regular expression: {error}"
            raise invalid(f"{prefix}include", pattern, text) from error
    return TopicGroup(
        name=name,
        include=include,
        exclude=exclude,
        replicas=_count(prefix, "replication.factor", given, default.replicas if default else None),
        partitions=_count(prefix, "partitions", given, default.partitions if default else None),
        configs={key: value for key, value in given.items() if key not in _OWN},
    )


def _count(prefix: str, name: str, given: Settings, default: int | None) -> int:
    text = given.get(name)
    if text is None:
        if default is None:
            raise missing(prefix + name)
        return default
    if not re.fullmatch(r"-1|[1-9][0-9]*", text.strip()):
        what = "must be positive, or -1 to use the broker's default"
        raise invalid(prefix + name, text, what)
    return int(text)


class TopicCreation:
    """Creates each topic before the task's first record goes there; without groups, none."""

    def __init__(
        self, groups: tuple[TopicGroup, ...] = (), admin: Callable[[], Admin] | None = None
    ) -> None:
        self._groups = groups
        self._admin = admin
        self._known: set[str] = set()

    def ensure(self, topic: str) -> None:
        """Create a topic if it is not there. Raises ConnectError."""
        if not self._groups or topic in self._known:
            return
        assert self._admin is not None
        admin = self._admin()
        if not exists(admin, topic):
            group = next(one for one in self._groups if one.has(topic) or one is self._groups[-1])
            create(admin, topic, group.partitions, group.replicas, group.configs)
            _log.info("created topic %s by the group %s", topic, group.name)
        self._known.add(topic)


def exists(admin: Admin, topic: str) -> bool:
    """Whether there is a topic; brokers do not create it for being asked. Raises ConnectError."""
    try:
        return topic in admin.describe([topic])
    except KafkaException as error:
        raise as_connect_error(f"cannot ask about topic {topic}", error) from error


def create(
    admin: Admin, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
) -> None:
    """Create a topic; another task may have done so. Raises ConnectError."""
    new = NewTopic(
        topic, num_partitions=partitions, replication_factor=replicas, config=dict(configs)
    )
    try:
        admin.create([new])
    except KafkaException as error:
        raise as_connect_error(
            f"Task failed to create new topic {topic}. Ensure that the task is authorized to "
            "create topics or that the topic exists and restart the task",
            error,
        ) from error
