"""The world of a test's statements: sources, topics, schemas and plans, all in memory."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.schemas.memory_registry import MemoryRegistry
from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import Command, InsertValuesCommand, QueryCommand, apply
from barnabas.sql.analysis.metastore import DataSource, MetaStore
from barnabas.sql.engine.applying import register_schemas
from barnabas.sql.engine.inserting import inserted_row
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.steps import FormatChoice, QueryPlan, WindowInfo
from barnabas.sql.runtime.topics import TopicRecord
from barnabas.sql.schema import Part
from barnabas.sql.syntax.parser import parse
from barnabas.sql.syntax.tree import (
    CreateSource,
    DefineVariable,
    ParsedStatement,
    SetProperty,
    UndefineVariable,
    UnsetProperty,
)
from barnabas.sql.syntax.variables import substitute
from barnabas.sql.testing.sides import Side, window_of, with_window


@dataclass
class World:
    """The state that statements build up. `now_ms` is the time of rows that INSERT writes."""

    functions: Mapping[str, Function]
    properties: dict[str, Any]
    schemas: MemoryRegistry = field(default_factory=MemoryRegistry)
    metastore: MetaStore = field(default_factory=MetaStore)
    topics: dict[str, int] = field(default_factory=dict)
    plans: dict[str, QueryPlan] = field(default_factory=dict)
    inserted: list[tuple[str, TopicRecord]] = field(default_factory=list)
    declared: dict[str, DataSource] = field(default_factory=dict)
    """By topic the first source over it, as it is now or was when it was dropped."""
    log: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    now_ms: int = 0
    partitions: int = 4
    """The default number of a topic's partitions; 4 in ksqlDB's own runner."""

    def add_topics(self, topics: Sequence[Any]) -> None:
        """Add a test's topics: their partitions, and schemas that are in the registry."""
        for topic in topics:
            given = {"name": topic} if isinstance(topic, str) else topic
            self.topics[given["name"]] = int(given.get("partitions", self.partitions))
            for part in ("key", "value"):
                self._add_schema(given, part)

    def _add_schema(self, topic: Mapping[str, Any], part: str) -> None:
        schema = topic.get(f"{part}Schema")
        format_name = topic.get(f"{part}Format", topic.get("format", "AVRO"))
        kinds = {"AVRO": "AVRO", "JSON_SR": "JSON", "JSON": "JSON", "PROTOBUF": "PROTOBUF"}
        if schema is None or format_name not in kinds:
            return
        text = schema if format_name == "PROTOBUF" else json.dumps(schema)
        references = tuple(
            (reference["name"], _schema_text(reference["schema"]))
            for reference in topic.get(f"{part}SchemaReferences", [])
        )
        subject = f"{topic['name']}-{part}"
        schema_id = topic.get(f"{part}SchemaId")
        self.schemas.add(subject, kinds[format_name], text, references, schema_id)

    def run(self, text: str) -> None:
        """Every statement of a text, one after the other. Raises SqlError."""
        for parsed in parse(text):
            self.statement(parsed)

    def statement(self, parsed: ParsedStatement) -> Command | None:
        """Do one statement: its command, if it has one. Raises SqlError."""
        text = substitute(parsed.text, self.variables)
        if text != parsed.text:
            (parsed,) = parse(text)
        statement = parsed.statement
        match statement:
            case SetProperty(name, value):
                self.properties[name] = value
                return None
            case UnsetProperty(name):
                self.properties.pop(name, None)
                return None
            case DefineVariable(name, value):
                self.variables[name] = value
                return None
            case UndefineVariable(name):
                self.variables.pop(name, None)
                return None
        if isinstance(statement, CreateSource):  # every topic that a test names is there
            name = str(statement.properties.get("KAFKA_TOPIC", statement.name))
            self.topics.setdefault(
                name, int(statement.properties.get("PARTITIONS") or self.partitions)
            )
        command = analyse(
            statement,
            self.metastore,
            self.properties,
            self.functions,
            self.schemas,
            topics=self.topics,
            text=text,
        )
        apply(command, self.metastore, text)
        self._remember(command)
        if isinstance(command, InsertValuesCommand):
            self._insert(command)
        return command

    def _remember(self, command: Command) -> None:
        if isinstance(command, QueryCommand):
            if command.replaces is not None:
                self.plans.pop(command.replaces, None)
            self.plans[command.plan.query_id] = command.plan
            if command.ddl is not None:
                wish = command.ddl.topic
                like = self.topics.get(wish.like or "", self.partitions)
                self.topics.setdefault(wish.name, wish.partitions or like)
        for source in self.metastore.sources.values():
            self.topics.setdefault(source.topic, self.partitions)
            known = self.declared.get(source.topic)
            if known is not None and (known.name != source.name or known == source):
                continue
            self.declared[source.topic] = source
            if known is None or known.schema != source.schema:
                register_schemas(source, self.schemas, is_sink=isinstance(command, QueryCommand))

    def _insert(self, command: InsertValuesCommand) -> None:
        source = command.source
        key, value, timestamp_ms = inserted_row(command, self.functions)
        side_key, side_value = self.sides(source.topic)
        record = TopicRecord(
            side_key.encode_values(key),
            None if value is None else side_value.encode_values(value),
            self.now_ms if timestamp_ms is None else timestamp_ms,
        )
        self.inserted.append((source.topic, record))

    def sides(self, topic: str) -> tuple[Side, Side]:
        """Return the formats of a topic's keys and values."""
        source = self.declared.get(topic)
        if source is None:
            text = FormatChoice("DELIMITED")
            return (
                Side(topic, Part.KEY, text, (), self.schemas),
                Side(topic, Part.VALUE, text, (), self.schemas),
            )
        key, value = source.schema.key, source.schema.value
        return (
            Side(topic, Part.KEY, source.formats.key, key, self.schemas),
            Side(topic, Part.VALUE, source.formats.value, value, self.schemas),
        )

    def window(self, topic: str) -> WindowInfo | None:
        """The window of a topic's keys, where they have any."""
        source = self.declared.get(topic)
        return None if source is None else source.window

    def record(self, spec: Mapping[str, Any]) -> tuple[str, TopicRecord]:
        """A record that a test puts in."""
        topic = spec["topic"]
        key_side, value_side = self.sides(topic)
        key = key_side.encode(spec.get("key"))
        window = window_of(spec.get("window"))
        if window is not None:
            is_session = spec["window"]["type"].upper() == "SESSION"
            key = with_window(key, window, is_session=is_session)
        headers = tuple(
            (header["KEY"], header_value(header["VALUE"])) for header in spec.get("headers") or ()
        )
        record = TopicRecord(
            key, value_side.encode(spec.get("value")), int(spec.get("timestamp") or 0), headers
        )
        return topic, record


def header_value(text: str | None) -> bytes | None:
    """The value of a header, from base64."""
    return None if text is None else base64.b64decode(text)


def _schema_text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)
