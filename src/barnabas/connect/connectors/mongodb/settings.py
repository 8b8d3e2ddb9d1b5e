"""The settings of MongoDB's connectors, under the names of MongoDB's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.config import validators
from barnabas.connect.config.definition import (
    NO_DEFAULT,
    ConfigType,
    Definition,
    Importance,
    Unsupported,
    group,
)
from barnabas.connect.config.values import Password, invalid, with_prefix
from barnabas.java.regex import compile_java
from barnabas.java.regex_characters import PatternError
from barnabas.schemas.data.errors import ConfigError

_T = ConfigType
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
OVERRIDE: Final = "topic.override."
_REGEX: Final = validators.optional(validators.regex)


def _is_json_list(name: str, value: Any) -> None:
    try:
        parsed = json.loads(value) if value else []
    except ValueError as error:
        raise invalid(name, value, f"it is not JSON: {error}") from None
    if not isinstance(parsed, list):
        raise invalid(name, value, "it must be a list in JSON")


def _is_topic_map(name: str, value: Any) -> None:
    try:
        topic_map(str(value or ""))
    except ConfigError as error:
        raise invalid(name, value, str(error)) from None


_CONNECTION: Final = group("Connection",
    ("connection.uri", _T.PASSWORD, "mongodb://localhost:27017", _HIGH,
     "MongoDB's connection string, with user and password."),
    ("server.api.version", _T.STRING, "", _LOW, "The version of the server's stable API to ask."),
    ("server.api.deprecation.errors", _T.BOOLEAN, False, _LOW, "Reject deprecated commands."),
    ("server.api.strict", _T.BOOLEAN, False, _LOW, "Reject commands outside that version."),
)  # fmt: skip
_FORMATS: Final = validators.one_of_any_case("json", "bson", "schema")
_TOLERANCE: Final = group("Errors",
    ("errors.tolerance", _T.STRING, "none", _MEDIUM, "none or all.",
     validators.one_of_any_case("none", "all")),
    ("errors.log.enable", _T.BOOLEAN, False, _MEDIUM, "Log tolerated errors."),
    ("mongo.errors.tolerance", _T.STRING, "", _MEDIUM, "Wins over errors.tolerance."),
    ("mongo.errors.log.enable", _T.BOOLEAN, False, _MEDIUM, "Wins over errors.log.enable."),
    ("mongo.errors.deadletterqueue.topic.name", _T.STRING, "", _MEDIUM,
     "Topic for changes that the source cannot convert, as text."),
)  # fmt: skip

SOURCE: Final = Definition((
    *_CONNECTION,
    *group("Source",
        ("database", _T.STRING, "", _MEDIUM, "The database to watch; all if empty."),
        ("collection", _T.STRING, "", _MEDIUM, "The collection to watch; all if empty."),
        ("pipeline", _T.STRING, "[]", _MEDIUM, "Stages for the change stream, as JSON.",
         _is_json_list),
        ("batch.size", _T.INT, 0, _MEDIUM, "Of the cursor.", validators.at_least(0)),
        ("publish.full.document.only", _T.BOOLEAN, False, _HIGH, "Documents, not changes."),
        ("publish.full.document.only.tombstone.on.delete", _T.BOOLEAN, False, _HIGH,
         "Then write deletes as records without a value."),
        ("change.stream.document.key.as.key", _T.BOOLEAN, True, _HIGH,
         "Use the document's key; otherwise the change's."),
        ("change.stream.full.document", _T.STRING, "", _HIGH, "As updateLookup."),
        ("change.stream.full.document.before.change", _T.STRING, "", _HIGH, "As required."),
        ("change.stream.show.expanded.events", _T.BOOLEAN, False, _LOW, "From MongoDB 6 on."),
        ("collation", _T.STRING, "", _HIGH, "A collation as JSON."),
        ("output.format.key", _T.STRING, "json", _HIGH, "json, bson or schema.", _FORMATS),
        ("output.format.value", _T.STRING, "json", _HIGH, "json, bson or schema.", _FORMATS),
        ("output.json.formatter", _T.STRING,
         "com.mongodb.kafka.connect.source.json.formatter.DefaultJson", _MEDIUM,
         "DefaultJson, ExtendedJson or SimplifiedJson."),
        ("output.schema.key", _T.STRING, "", _MEDIUM, "An Avro schema for keys."),
        ("output.schema.value", _T.STRING, "", _MEDIUM, "An Avro schema for values."),
        ("output.schema.infer.value", _T.BOOLEAN, False, _MEDIUM, "By each document."),
        ("offset.partition.name", _T.STRING, "", _MEDIUM, "Of stored offsets."),
    ),
    *group("Topics",
        ("topic.prefix", _T.STRING, "", _LOW, "Before the names of topics."),
        ("topic.suffix", _T.STRING, "", _LOW, "Behind the names of topics."),
        ("topic.separator", _T.STRING, ".", _LOW, "Between the parts of names."),
        ("topic.namespace.map", _T.STRING, "", _HIGH,
         "JSON: topics by database, database.collection, * or /regular expression.", _is_topic_map),
        ("topic.mapper", _T.STRING, "", _HIGH, "Taken: there is one."),
    ),
    *group("Startup",
        ("startup.mode", _T.STRING, "", _MEDIUM,
         "latest, timestamp or copy_existing; by default latest.",
         validators.one_of_any_case("", "latest", "timestamp", "copy_existing")),
        ("startup.mode.timestamp.start.at.operation.time", _T.STRING, "", _MEDIUM,
         "Seconds since 1970, a moment of ISO-8601, or a timestamp as extended JSON."),
        ("startup.mode.copy.existing.pipeline", _T.STRING, "[]", _MEDIUM,
         "Stages for what is copied, as JSON.", _is_json_list),
        ("startup.mode.copy.existing.namespace.regex", _T.STRING, "", _MEDIUM,
         "Which database.collection to copy.", _REGEX),
        ("startup.mode.copy.existing.max.threads", _T.INT, 1, _MEDIUM, "Taken; one copies."),
        ("startup.mode.copy.existing.queue.size", _T.INT, 16000, _MEDIUM,
         "Taken; nothing is queued."),
        ("startup.mode.copy.existing.allow.disk.use", _T.BOOLEAN, True, _MEDIUM, "To sort."),
        ("copy.existing", _T.BOOLEAN, False, _LOW, "The old name of startup.mode=copy_existing."),
        ("copy.existing.pipeline", _T.STRING, "[]", _LOW, "An old name.", _is_json_list),
        ("copy.existing.namespace.regex", _T.STRING, "", _LOW, "An old name.", _REGEX),
        ("copy.existing.allow.disk.use", _T.BOOLEAN, True, _LOW, "An old name."),
        ("copy.existing.max.threads", _T.INT, 1, _LOW, "Taken; one copies."),
        ("copy.existing.queue.size", _T.INT, 16000, _LOW, "Taken; nothing is queued."),
    ),
    *group("Polling",
        ("poll.max.batch.size", _T.INT, 1000, _LOW, "Changes of a micro-batch at most."),
        ("poll.await.time.ms", _T.LONG, 5000, _LOW, "Time that the server waits for changes."),
        ("heartbeat.interval.ms", _T.LONG, 0, _MEDIUM, "0: no heartbeats."),
        ("heartbeat.topic.name", _T.STRING, "__mongodb_heartbeats", _MEDIUM, "Their topic."),
    ),
    *_TOLERANCE,
    *group("Errors",
        ("errors.deadletterqueue.topic.name", _T.STRING, "", _MEDIUM,
         "Topic for such changes if mongo.errors.deadletterqueue.topic.name is not set."),
    ),
))  # fmt: skip

_SINK: Final = "com.mongodb.kafka.connect.sink."
SINK: Final = Definition((
    *_CONNECTION,
    *group("Namespaces",
        ("database", _T.STRING, NO_DEFAULT, _HIGH, "To write to.", validators.non_empty),
        ("collection", _T.STRING, "", _HIGH, "To write to; by default named as the topic."),
        ("namespace.mapper", _T.STRING, f"{_SINK}namespace.mapping.DefaultNamespaceMapper", _HIGH,
         "DefaultNamespaceMapper or FieldPathNamespaceMapper."),
        ("namespace.mapper.key.database.field", _T.STRING, "", _HIGH, "The field."),
        ("namespace.mapper.key.collection.field", _T.STRING, "", _HIGH, "The field."),
        ("namespace.mapper.value.database.field", _T.STRING, "", _HIGH, "The field."),
        ("namespace.mapper.value.collection.field", _T.STRING, "", _HIGH, "The field."),
        ("namespace.mapper.error.if.invalid", _T.BOOLEAN, False, _HIGH, "Or the default."),
    ),
    *group("Documents",
        ("document.id.strategy", _T.STRING, f"{_SINK}processor.id.strategy.BsonOidStrategy", _HIGH,
         "The class that makes _id."),
        ("document.id.strategy.overwrite.existing", _T.BOOLEAN, False, _HIGH, "An _id."),
        ("document.id.strategy.uuid.format", _T.STRING, "string", _HIGH, "string or binary."),
        *(
            (f"document.id.strategy.partial.{part}.projection.{what}", _T.STRING, "", _LOW, doc)
            for part in ("key", "value")
            for what, doc in (("type", "allowlist or blocklist."), ("list", "Fields."))
        ),
        ("delete.on.null.values", _T.BOOLEAN, False, _MEDIUM, "Delete on tombstones."),
        ("writemodel.strategy", _T.STRING, f"{_SINK}writemodel.strategy.DefaultWriteModelStrategy",
         _LOW, "The class that says how documents are written."),
        ("delete.writemodel.strategy", _T.STRING, "", _LOW, "The same for deletes."),
        ("post.processor.chain", _T.LIST, f"{_SINK}processor.DocumentIdAdder", _LOW,
         "The processors of each document."),
        *(
            (f"{part}.projection.{what}", _T.STRING, default, _LOW, doc)
            for part in ("key", "value")
            for what, default, doc in (
                ("type", "none", "none, allowlist or blocklist."), ("list", "", "Fields."),
            )
        ),
        ("field.renamer.mapping", _T.STRING, "[]", _LOW, "New names.", _is_json_list),
        ("field.renamer.regexp", _T.STRING, "[]", _LOW, "New names.", _is_json_list),
        ("change.data.capture.handler", _T.STRING, "", _LOW, "The class that reads changes."),
    ),
    *group("Writing",
        ("max.batch.size", _T.INT, 0, _MEDIUM, "Writes at once; 0: all."),
        ("bulk.write.ordered", _T.BOOLEAN, True, _MEDIUM, "Write documents in order."),
        ("rate.limiting.timeout", _T.INT, 0, _LOW, "Milliseconds to rest."),
        ("rate.limiting.every.n", _T.INT, 0, _LOW, "Batches between rests."),
        ("max.num.retries", _T.INT, 1, _LOW, "Taken: the engine tries again with back-off."),
        ("retries.defer.timeout", _T.INT, 5000, _LOW, "Taken: the engine's pauses hold."),
    ),
    *_TOLERANCE,
))  # fmt: skip


_ELSEWHERE: Final = (
    Unsupported(
        r"connection\.ssl\..*", instead="connection.uri names files in PEM, as tlsCAFile=…"
    ),
    Unsupported(r"mongo\.custom\.auth\..*", ("", "false")),
    Unsupported(r"csfle\..*", ("", "false")),
)
SOURCE_UNSUPPORTED: Final = (
    *_ELSEWHERE,
    Unsupported(
        r"topic\.mapper",
        ("", "com.mongodb.kafka.connect.source.topic.mapping.DefaultTopicMapper"),
        "topic.namespace.map and transforms choose topics",
    ),
)
_FOR_TOPIC: Final = r"(topic\.override\..*\.)?"
SINK_UNSUPPORTED: Final = (
    *_ELSEWHERE,
    Unsupported(rf"{_FOR_TOPIC}timeseries\..*", instead="make the collection yourself"),
    Unsupported(rf"{_FOR_TOPIC}field\.value\.transformer.*", instead="use a transform"),
    Unsupported(
        rf"{_FOR_TOPIC}change\.data\.capture\.handler\.remove\.null\.values", ("", "false")
    ),
)
"""Further settings of MongoDB's connectors, which are not supported."""


def secret(value: Any) -> str:
    """The text of a setting that may be hidden."""
    return str(value.value if isinstance(value, Password) else value or "")


def short(class_name: Any) -> str:
    """The last part of a class's name."""
    return str(class_name or "").rpartition(".")[2]


def no_class(name: str, class_name: str) -> ConfigError:
    """Return the error for a setting that names a class of MongoDB's that there is not."""
    return invalid(name, class_name, "there is no such class")


def is_tolerant(values: Mapping[str, Any]) -> bool:
    """Return whether single documents may fail."""
    return str(values["mongo.errors.tolerance"] or values["errors.tolerance"]).lower() == "all"


# The topics that changes of collections are written to.


def topic_map(text: str) -> dict[str, str]:
    """Return what `topic.namespace.map` says. Raises ConfigError."""
    try:
        names = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise ConfigError(f"it is not JSON: {error}") from error
    if not isinstance(names, dict) or not all(isinstance(one, str) for one in names.values()):
        raise ConfigError("it must be an object of texts in JSON")
    for name in names:
        if name.startswith("/"):
            try:
                compile_java(name[1:])
            except PatternError as error:
                raise ConfigError(f"{name}: {error}") from error
    return names


class TopicNames:
    """Names topics. Source: MongoDB's DefaultTopicMapper."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._separator = str(values["topic.separator"])
        self._prefix = str(values["topic.prefix"] or "")
        self._suffix = str(values["topic.suffix"] or "")
        self._map = topic_map(str(values["topic.namespace.map"] or ""))
        self._found: dict[tuple[str, str], str] = {}

    def topic(self, database: str, collection: str) -> str:
        """The topic of a namespace; the collection may be empty."""
        topic = self._found.get((database, collection))
        if topic is None:
            parts = (self._prefix, self._mapped(database, collection), self._suffix)
            topic = self._separator.join(part for part in parts if part)
            self._found[database, collection] = topic
        return topic

    def _mapped(self, database: str, collection: str) -> str:
        namespace = f"{database}.{collection}" if collection else database
        if namespace in self._map:
            return self._map[namespace]
        sep = self._separator
        behind = f"{sep}{collection}" if collection else ""
        if database in self._map:
            return self._map[database] + behind
        for pattern, name in self._map.items():
            if pattern.startswith("/") and compile_java(pattern[1:]).matches(namespace):
                filled = name.replace("{db}", database).replace("{coll}", collection)
                return filled.replace("{sep}", sep).replace("{sep_coll}", behind)
        return self._map.get("*", database + behind)


# Settings for single topics: `topic.override.<topic>.<setting>`.


def overridden(settings: Mapping[str, str]) -> list[str]:
    """The topics that have settings of their own."""
    topics = {}
    for rest in with_prefix(settings, OVERRIDE):
        for setting in SINK.settings:
            if rest.endswith(f".{setting}"):
                topics[rest.removesuffix(f".{setting}")] = True
                break
    return list(topics)


def for_topic(settings: Mapping[str, str], topic: str) -> dict[str, str]:
    """The settings that hold for a topic."""
    return {**settings, **with_prefix(settings, f"{OVERRIDE}{topic}.")}
