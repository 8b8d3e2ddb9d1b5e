"""Runs one case in memory: statements through the analysis, records through the driver."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from barnabas.pipeline.sql.analysis.analyse import analyse
from barnabas.pipeline.sql.analysis.commands import (
    Command,
    InsertValuesCommand,
    QueryCommand,
    apply,
)
from barnabas.pipeline.sql.analysis.metastore import DataSource, MetaStore
from barnabas.pipeline.sql.engine.inserted import inserted_row
from barnabas.pipeline.sql.errors import SqlError
from barnabas.pipeline.sql.formats.format import FormatError, topic_of
from barnabas.pipeline.sql.formats.registration import register_columns
from barnabas.pipeline.sql.formats.windowed import windowed_deserializer, windowed_serializer
from barnabas.pipeline.sql.functions.catalog import Function
from barnabas.pipeline.sql.plan.steps import FormatChoice, QueryPlan
from barnabas.pipeline.sql.runtime.compiler import PlanCompiler
from barnabas.pipeline.sql.runtime.driver import Driver
from barnabas.pipeline.sql.runtime.records import WindowBounds
from barnabas.pipeline.sql.runtime.topics import TopicRecord
from barnabas.pipeline.sql.schema import Part
from barnabas.pipeline.sql.syntax.parser import parse
from barnabas.pipeline.sql.syntax.tree import (
    CreateSource,
    CreateType,
    SetProperty,
    Statement,
    UnsetProperty,
    WindowKind,
)
from ksql_cases.cases import Case
from ksql_cases.compare import equal
from ksql_cases.topics import Side, window_of
from support.sql_schema_store import MemorySchemaStore

PARTITIONS = 4
"""How many a topic has in ksqlDB's own runner, unless a case says otherwise."""


class CaseFailedError(Exception):
    """The case does not end as it should; the message says how."""


@dataclass
class World:
    """The state that statements of a case build up."""

    functions: Mapping[str, Function]
    properties: dict[str, Any]
    schemas: MemorySchemaStore = field(default_factory=MemorySchemaStore)
    metastore: MetaStore = field(default_factory=MetaStore)
    topics: dict[str, int] = field(default_factory=dict)
    plans: dict[str, QueryPlan] = field(default_factory=dict)
    inserted: list[tuple[str, TopicRecord]] = field(default_factory=list)
    declared: dict[str, DataSource] = field(default_factory=dict)
    """By topic the first source over it, though it may have been dropped since."""
    log: list[str] = field(default_factory=list)

    def add_topics(self, case: Case) -> None:
        """What the case says of topics: partitions, and schemas that are in the registry.

        Schemas of columns that statements declare come first, as ksqlDB's own runner has it: cases
        count on the ids that follow.
        """
        self._add_declared(case)
        for topic in case.content.get("topics", []):
            given = {"name": topic} if isinstance(topic, str) else topic
            self.topics[given["name"]] = int(given.get("partitions", PARTITIONS))
            for part in ("key", "value"):
                self._add_schema(given, part)

    def _add_declared(self, case: Case) -> None:
        given = {t["name"] for t in case.content.get("topics", []) if isinstance(t, dict)}
        trial = World(self.functions, dict(self.properties))
        with suppress(SqlError):
            for parsed in parse("\n".join(case.statements)):
                if isinstance(parsed.statement, CreateSource | CreateType):
                    with suppress(SqlError, FormatError):
                        trial._statement(parsed.statement, parsed.text)
        for subject, ids in trial.schemas.subjects.items():
            if topic_of(subject) not in given:
                schema = trial.schemas.by_id(ids[-1])
                self.schemas.add(subject, schema.type, schema.text)

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
            self._statement(parsed.statement, parsed.text)

    def _statement(self, statement: Statement, text: str) -> None:
        if isinstance(statement, SetProperty):
            self.properties[statement.name] = statement.value
            return
        if isinstance(statement, UnsetProperty):
            self.properties.pop(statement.name, None)
            return
        if isinstance(statement, CreateSource):  # every topic that a case names is there
            name = str(statement.properties.get("KAFKA_TOPIC", statement.name))
            self.topics.setdefault(name, int(statement.properties.get("PARTITIONS") or PARTITIONS))
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

    def _remember(self, command: Command) -> None:
        if isinstance(command, QueryCommand):
            if command.replaces is not None:
                self.plans.pop(command.replaces, None)
            self.plans[command.plan.query_id] = command.plan
            if command.ddl is not None:
                wish = command.ddl.topic
                like = self.topics.get(wish.like or "", PARTITIONS)
                self.topics.setdefault(wish.name, wish.partitions or like)
        for source in self.metastore.sources.values():
            self.topics.setdefault(source.topic, PARTITIONS)
            if source.topic not in self.declared:
                self.declared[source.topic] = source
                self._register(source, is_sink=isinstance(command, QueryCommand))

    def _register(self, source: DataSource, *, is_sink: bool) -> None:
        """Put the schemas of a new source into the registry."""
        for choice, columns, part in (
            (source.formats.key, source.schema.key, "key"),
            (source.formats.value, source.schema.value, "value"),
        ):
            register_columns(
                choice.name,
                choice.properties,
                columns,
                f"{source.topic}-{part}",
                self.schemas,
                wrapping=choice.wraps_single,
                is_sink=is_sink,
            )

    def _insert(self, command: InsertValuesCommand) -> None:
        source = command.source
        key, value, timestamp_ms = inserted_row(command, self.functions)
        side_key, side_value = self.sides(source.topic)
        record = TopicRecord(
            side_key.encode_values(key),
            None if value is None else side_value.encode_values(value),
            0 if timestamp_ms is None else timestamp_ms,
        )
        self.inserted.append((source.topic, record))

    def sides(self, topic: str) -> tuple[Side, Side]:
        """How the keys and values of a topic are written."""
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

    def record(self, spec: Mapping[str, Any]) -> tuple[str, TopicRecord]:
        """A record that a case puts in."""
        topic = spec["topic"]
        key_side, value_side = self.sides(topic)
        key = key_side.encode(spec.get("key"))
        window = window_of(spec.get("window"))
        if window is not None:
            is_session = spec["window"]["type"].upper() == "SESSION"
            key = windowed_serializer(
                lambda _: key_side.encode(spec.get("key")), session=is_session
            )(None, window)
        headers = tuple(
            (header["KEY"], _header_value(header["VALUE"])) for header in spec.get("headers") or ()
        )
        record = TopicRecord(
            key, value_side.encode(spec.get("value")), int(spec.get("timestamp") or 0), headers
        )
        return topic, record


def run(case: Case, functions: Mapping[str, Function]) -> None:
    """Run a case. Raises CaseFailedError, or whatever went wrong."""
    world = World(functions, dict(case.content.get("properties", {})))
    if case.error is not None:
        _run_to_error(case, world)
        return
    driver = _piped(case, world)
    _check_outputs(case, world, driver)
    _check_sources(case, world)


def _piped(case: Case, world: World) -> Driver:
    world.add_topics(case)
    world.run("\n".join(case.statements))
    driver = Driver(
        list(world.plans.values()),
        PlanCompiler(world.functions, world.properties),
        schemas=world.schemas,
        log=lambda message, _row, cause: world.log.append(f"{message}: {cause!r}"),
    )
    for topic, record in world.inserted:
        driver.pipe(topic, record)
    for spec in case.content.get("inputs", []):
        driver.pipe(*world.record(spec))
    return driver


def _run_to_error(case: Case, world: World) -> None:
    try:
        _piped(case, world)
    except Exception as error:  # any error may be the expected one: its text counts
        message = error.with_statement() if isinstance(error, SqlError) else str(error)
        if (case.error or "") not in message:
            kind = type(error).__name__
            raise CaseFailedError(
                f"expected error {case.error!r}, got {kind} {message!r}"
            ) from error
        return
    raise CaseFailedError(f"expected error {case.error!r}, got none")


def _check_outputs(case: Case, world: World, driver: Driver) -> None:
    expected: dict[str, list[Any]] = {}
    for spec in case.content.get("outputs", []):
        expected.setdefault(spec["topic"], []).append(spec)
    given = {spec["topic"] for spec in case.content.get("inputs", [])}
    given |= {topic for topic, _ in world.inserted}
    for topic, records in driver.topics.items():
        if topic not in expected and topic not in given and not expected:
            raise CaseFailedError(f"{len(records)} records in {topic}, none expected")
    for topic, specs in expected.items():
        records = driver.topics.get(topic, [])
        seen = [shown(world, topic, record) for record in records]
        for index, spec in enumerate(specs):
            if index >= len(seen):
                raise CaseFailedError(f"{topic}[{index}]: expected {_brief(spec)}, got nothing")
            problem = difference(seen[index], spec)
            if problem:
                raise CaseFailedError(f"{topic}[{index}]: {problem}")
        if len(seen) > len(specs):
            raise CaseFailedError(f"{topic}: one more than expected: {seen[len(specs)]}")


@dataclass(frozen=True)
class Shown:
    """A record that came out."""

    key: Any
    value: Any
    timestamp_ms: int
    window: WindowBounds | None
    headers: tuple[tuple[str, bytes | None], ...]


def shown(world: World, topic: str, record: TopicRecord) -> Shown:
    key_side, value_side = world.sides(topic)
    source = world.declared.get(topic)
    window = None
    if source is not None and source.window is not None:
        decode = windowed_deserializer(
            lambda data: (key_side.decode(data),),
            size_ms=source.window.size_ms,
            session=source.window.kind is WindowKind.SESSION,
        )
        found = decode(record.key)
        key, window = (None, None) if found is None or found[0] is None else (found[0][0], found[1])
    else:
        key = key_side.decode(record.key)
    value = value_side.decode(record.value)
    return Shown(key, value, record.timestamp_ms, window, record.headers)


def difference(shown: Shown, spec: Mapping[str, Any]) -> str:
    if not equal(shown.key, spec.get("key")):
        return f"expected key {spec.get('key')!r}, got {shown.key!r}"
    if not equal(shown.value, spec.get("value")):
        return f"expected value {spec.get('value')!r}, got {shown.value!r}"
    timestamp = spec.get("timestamp")
    if timestamp is not None and int(timestamp) != shown.timestamp_ms:
        return f"expected timestamp {timestamp}, got {shown.timestamp_ms}"
    window = window_of(spec.get("window"))
    if window is not None and window != shown.window:
        return f"expected window {window}, got {shown.window}"
    headers = spec.get("headers")
    if headers is not None:
        wanted = tuple((h["KEY"], _header_value(h["VALUE"])) for h in headers)
        if wanted != shown.headers:
            return f"expected headers {wanted}, got {shown.headers}"
    return ""


def _brief(spec: Mapping[str, Any]) -> str:
    return f"{spec.get('key')!r} {spec.get('value')!r} at {spec.get('timestamp')}"


def _check_sources(case: Case, world: World) -> None:
    for expected in case.content.get("post", {}).get("sources", []):
        source = world.metastore.source(expected["name"])
        if source is None:
            raise CaseFailedError(f"there is no source {expected['name']}")
        kind = expected.get("type")
        if kind is not None and source.kind.value != kind.upper():
            raise CaseFailedError(f"{source.name} is a {source.kind.value}")
        schema = expected.get("schema")
        if schema is not None and _plain(str(source.schema)) != _plain(schema):
            raise CaseFailedError(
                f"{source.name} has the schema {source.schema}, expected {schema}"
            )


def _plain(schema: str) -> str:
    """A schema's text without what may be written in several ways."""
    plain = " ".join(schema.replace("`", "").replace("PRIMARY KEY", "KEY").upper().split())
    for other, name in (("VARCHAR", "STRING"), ("INTEGER", "INT"), (", ", ","), (" ,", ",")):
        plain = plain.replace(other, name)
    return plain.replace("< ", "<").replace(" >", ">").replace("( ", "(").replace(" )", ")")


def _header_value(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _schema_text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)
