"""Effects of commands: on queries (those of TERMINATE, and those that end with a source), and on
the topics and schemas that a source needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.schemas.errors import FormatError
from barnabas.schemas.registry_client import SchemaStore
from barnabas.sql.analysis import commands
from barnabas.sql.analysis.commands import (
    AlterSourceCommand,
    Command,
    CreateSourceCommand,
    CreateTypeCommand,
    DropSourceCommand,
    DropTypeCommand,
    QueryCommand,
    TopicWish,
)
from barnabas.sql.analysis.metastore import DataSource, MetaStore
from barnabas.sql.engine.cluster import Cluster, ClusterError, NewTopic, TopicInfo
from barnabas.sql.engine.command_log import ControlCommand, StoredCommand
from barnabas.sql.engine.config import SINK_PARTITIONS, SINK_REPLICAS
from barnabas.sql.errors import AnalysisError
from barnabas.sql.formats.catalog import format_named, is_wrapped
from barnabas.sql.formats.format import topic_of
from barnabas.sql.formats.registry_wire import asked_id
from barnabas.sql.names import backquoted
from barnabas.sql.schema import Column, Part
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.tree import Statement


def controls(statement: tree.ControlQuery, metastore: MetaStore) -> list[ControlCommand]:
    """Return the commands of TERMINATE, PAUSE or RESUME, one per query. Raises AnalysisError."""
    if statement.query_id is None:
        return [ControlCommand(statement.control, name) for name in metastore.queries]
    if statement.query_id not in metastore.queries:
        raise AnalysisError(f"Unknown queryId: {statement.query_id}")
    return [ControlCommand(statement.control, statement.query_id)]


def apply_to(
    metastore: MetaStore,
    command: Command,
    text: str,
    terminate: Callable[[str], None] = lambda query_id: None,
) -> str:
    """`commands.apply`; a source that is dropped takes the query with it that made it.

    Raises AnalysisError, also if other queries use that source.
    """
    if isinstance(command, DropSourceCommand):
        for query_id in _makers(command.name, metastore):
            del metastore.queries[query_id]
            terminate(query_id)
    return commands.apply(command, metastore, text)


def _makers(name: str, metastore: MetaStore) -> list[str]:
    """The queries that made a source; raises AnalysisError if others read it or write into it."""
    made = [q for q in metastore.writers(name) if q.startswith(("CSAS_", "CTAS_"))]
    writers = [q for q in metastore.writers(name) if q not in made]
    readers = metastore.readers(name)
    if readers or writers:
        raise AnalysisError(
            f"Cannot drop {name}.\n"
            f"The following queries read from this source: [{', '.join(readers)}].\n"
            f"The following queries write into this source: [{', '.join(writers)}].\n"
            f"You need to terminate them before dropping {name}."
        )
    return made


def wishes(command: Command) -> list[CreateSourceCommand]:
    """Return the topics that the command creates."""
    if isinstance(command, CreateSourceCommand):
        return [command]
    if isinstance(command, QueryCommand) and command.ddl is not None:
        return [command.ddl]
    return []


def command_id(command: StoredCommand) -> str:
    """The id of a command, which is its key in the log."""
    match command:
        case CreateSourceCommand():
            return f"{command.source.kind.value.lower()}/{backquoted(command.source.name)}/create"
        case QueryCommand():
            if command.ddl is not None:
                return command_id(command.ddl)
            return f"stream/{backquoted(command.plan.sink or '')}/create"
        case DropSourceCommand():
            return f"{command.kind.value.lower()}/{backquoted(command.name)}/drop"
        case AlterSourceCommand():
            return f"{command.kind.value.lower()}/{backquoted(command.name)}/alter"
        case CreateTypeCommand():
            return f"type/{command.name}/create"
        case DropTypeCommand():
            return f"type/{command.name}/drop"
        case ControlCommand():
            return f"{command.control.value.lower()}/{command.query_id}/execute"


def statement_id(statement: Statement) -> str:
    """The id of the command that the statement would be, if there were something to do."""
    match statement:
        case tree.CreateSource() | tree.CreateAsSelect():
            return f"{statement.kind.value.lower()}/{backquoted(statement.name)}/create"
        case tree.DropSource():
            return f"{statement.kind.value.lower()}/{backquoted(statement.name)}/drop"
        case tree.CreateType():
            return f"type/{statement.name}/create"
        case tree.DropType():
            return f"type/{statement.name}/drop"
    return ""


# -- the topics and schemas that commands bring with them


_TOMBSTONES = "delete.retention.ms"


def new_topic(
    wish: TopicWish, topics: Mapping[str, TopicInfo], settings: Mapping[str, Any]
) -> NewTopic:
    """The topic that a wish asks for; raises AnalysisError if nobody says how it is to be."""
    like = topics.get(wish.like) if wish.like is not None else None
    partitions = wish.partitions or settings.get(SINK_PARTITIONS)
    replicas = wish.replicas or settings.get(SINK_REPLICAS)
    if partitions is None:
        if like is None:
            raise AnalysisError(
                f"Topic '{wish.name}' does not exist. If you want to create a new topic for the "
                "stream/table please re-run the statement providing the required 'PARTITIONS' "
                "configuration in the WITH clause (and optionally 'REPLICAS')."
            )
        partitions = like.partitions
    if replicas is None and like is not None:
        replicas = like.replicas[0]
    config = {"cleanup.policy": wish.cleanup_policy}
    if wish.retention_ms is not None:
        config["retention.ms"] = str(wish.retention_ms)
    if "compact" in wish.cleanup_policy and "delete" in wish.cleanup_policy:
        config.setdefault(_TOMBSTONES, config.get("retention.ms", "86400000"))
    return NewTopic(wish.name, int(partitions), None if replicas is None else int(replicas), config)


def check_existing(wish: TopicWish, topic: TopicInfo) -> None:
    """Raise AnalysisError if a topic that is there is not what a statement asks for."""
    problems = []
    if wish.partitions is not None and wish.partitions != topic.partitions:
        problems.append(f"partitions: {topic.partitions} (was {wish.partitions})")
    if wish.replicas is not None and wish.replicas > topic.replicas[0]:
        problems.append(f"replicas: {topic.replicas[0]} (was {wish.replicas})")
    if problems:
        raise AnalysisError(
            f"A Kafka topic with the name '{wish.name}' already exists, with different "
            f"partition/replica configuration than required. KSQL expects {wish.partitions} "
            f"partitions (topic has {topic.partitions}), and {wish.replicas or topic.replicas[0]} "
            f"replication factor (topic has {topic.replicas[0]})."
        )


def make_topic(
    wish: TopicWish, cluster: Cluster, settings: Mapping[str, Any], *, is_sink: bool
) -> None:
    """Make the topic unless it is there. Raises AnalysisError."""
    topics = cluster.topics()
    topic = topics.get(wish.name)
    if topic is not None:
        if is_sink:
            check_existing(wish, topic)
        return
    try:
        cluster.create_topic(new_topic(wish, topics, settings))
    except ClusterError as error:
        raise AnalysisError(
            f"Failed to guarantee existence of topic {wish.name}: {error}"
        ) from error


def register_schemas(source: DataSource, store: SchemaStore | None, *, is_sink: bool) -> None:
    """Register the schemas of a source's key and value, as `register_columns` does.

    Raises AnalysisError.
    """
    for part, choice, columns in (
        (Part.KEY, source.formats.key, source.schema.key),
        (Part.VALUE, source.formats.value, source.schema.value),
    ):
        register_columns(
            choice.name,
            choice.properties,
            columns,
            f"{source.topic}-{part.value.lower()}",
            store,
            wrapping=choice.wraps_single,
            is_sink=is_sink,
        )


# -- schemas that statements leave in the registry, as ksqlDB registers them for new sources


def register_columns(
    format_name: str,
    properties: Mapping[str, str],
    columns: Sequence[Column],
    subject: str,
    store: SchemaStore | None,
    *,
    wrapping: bool | None,
    is_sink: bool,
) -> int | None:
    """Register the schema of a key's or value's columns; the id, or None.

    `wrapping`: what `catalog.key_wrapping` or `value_wrapping` says. `is_sink`: a query writes the
    topic; the schema of one that is only read counts if the registry has none for it.
    A schema that the statement names by its id is registered as it stands, unless it refers to
    others: what was registered with them is left as it is.
    Raises AnalysisError, also if the registry does not answer.
    """
    format_ = format_named(format_name)
    if format_.schemas is None or not columns:
        return None
    topic = topic_of(subject)
    if store is None:
        raise AnalysisError(
            f"Cannot create topic '{topic}' with format {format_.name} without configuring "
            "'ksql.schema.registry.url'"
        )
    try:
        schema_id = asked_id(properties)
        if schema_id is not None:
            return _register_named(schema_id, subject, store)
        if not is_sink and (known := store.latest(subject)) is not None:
            return known.id
        text = format_.schemas.text(columns, properties, wraps=is_wrapped(format_, wrapping))
        return store.register(subject, format_.schemas.schema_type, text)
    except FormatError as error:
        raise AnalysisError(f"Could not register schema for topic {topic}: {error}") from error


def _register_named(schema_id: int, subject: str, store: SchemaStore) -> int:
    latest = store.latest(subject)
    if latest is not None and latest.id == schema_id:
        return schema_id
    schema = store.by_id(schema_id)
    if schema.references:
        return schema_id
    registered = store.register(subject, schema.type, schema.text)
    if registered != schema_id:
        raise AnalysisError(
            f"Schema id registered is {registered} which is different from provided {schema_id}.\n"
            f"Topic: {topic_of(subject)}\nSubject: {subject}\nSchema: {schema.text}"
        )
    return registered
