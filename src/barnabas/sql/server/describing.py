"""Statements that change nothing: SHOW, LIST, DESCRIBE, EXPLAIN, ASSERT."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.sql.analysis.analyse import analyse
from barnabas.sql.analysis.commands import PullQueryCommand, QueryCommand
from barnabas.sql.analysis.metastore import DataSource
from barnabas.sql.engine import config
from barnabas.sql.engine.cluster import ClusterError
from barnabas.sql.engine.engine import KsqlEngine
from barnabas.sql.engine.queries import PersistentQuery
from barnabas.sql.engine.running import RunningQuery
from barnabas.sql.engine.session import Session
from barnabas.sql.errors import AnalysisError
from barnabas.sql.functions.catalog import Function
from barnabas.sql.plan.encoding import encode_plan
from barnabas.sql.plan.steps import QueryPlan
from barnabas.sql.server.assertions import Assertions
from barnabas.sql.server.details import (
    described_function,
    error_statistics,
    formatted,
    property_entities,
    statistics,
)
from barnabas.sql.server.entities import (
    Entity,
    entity,
    fields,
    push_query,
    running_query,
    schema_info,
    source_info,
    topic_info,
)
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.tree import Described, Listed, ParsedStatement, SourceKind


class Describer:
    """Answers from what the engine has. `host`: where the server is found, as `host:port`."""

    def __init__(self, engine: KsqlEngine, host: str) -> None:
        self._engine = engine
        self._host = host
        self._assertions = Assertions(engine)

    def answer(self, parsed: ParsedStatement, session: Session) -> Entity:
        """The answer to a statement; raises SqlError or ApiError."""
        statement, text = parsed.statement, parsed.text
        match statement:
            case tree.Show():
                return self._show(statement, text, session)
            case tree.Describe():
                return self._describe(statement, text)
            case tree.Explain():
                return self._explain(statement, text, session)
            case tree.AssertTopic() | tree.AssertSchema():
                return self._assertions.answer(statement, text)
        raise AnalysisError(
            f"Do not know how to execute statement: {type(statement).__name__}", statement=text
        )

    # --- lists -------------------------------------------------------------------------------

    def _show(self, statement: tree.Show, text: str, session: Session) -> Entity:
        listed = statement.listed
        if listed in (Listed.STREAMS, Listed.TABLES):
            kind = SourceKind.STREAM if listed is Listed.STREAMS else SourceKind.TABLE
            return self._sources(kind, text, extended=statement.extended)
        if listed is Listed.TOPICS:
            return self._topics(text, extended=statement.extended, all_topics=statement.show_all)
        if listed is Listed.QUERIES:
            return self._queries(text, extended=statement.extended)
        if listed is Listed.FUNCTIONS:
            return entity("function_names", text, functions=self._functions())
        if listed is Listed.PROPERTIES:
            return self._properties(text, session)
        if listed is Listed.TYPES:
            types = self._engine.metastore.types
            shown = {name: schema_info(types[name]) for name in sorted(types)}
            return entity("type_list", text, types=shown)
        variables = [{"name": n, "value": v} for n, v in sorted(session.variables.items())]
        return entity("variables", text, variables=variables)

    def _sources(self, kind: SourceKind, text: str, *, extended: bool) -> Entity:
        if extended:
            return self._described(kind, text, extended=True)
        name = kind.value.lower() + "s"
        return entity(name, text, **{name: list(map(source_info, self._of_kind(kind)))})

    def _described(self, kind: SourceKind, text: str, *, extended: bool) -> Entity:
        described = [self._source(one, extended=extended) for one in self._of_kind(kind)]
        return entity("source_descriptions", text, sourceDescriptions=described)

    def _of_kind(self, kind: SourceKind) -> list[DataSource]:
        sources = [s for s in list(self._engine.metastore.sources.values()) if s.kind is kind]
        return sorted(sources, key=lambda source: source.name)

    def _topics(self, text: str, *, extended: bool, all_topics: bool) -> Entity:
        hidden = [
            re.compile(pattern)
            for pattern in config.patterns(self._engine.settings[config.HIDDEN_TOPICS])
        ]
        topics = [
            topic
            for name, topic in sorted(self._engine.cluster.topics().items())
            if all_topics or not any(pattern.fullmatch(name) for pattern in hidden)
        ]
        if not extended:
            shown = [topic_info(topic.name, topic.replicas) for topic in topics]
            return entity("kafka_topics", text, topics=shown)
        counts = self._consumers()
        shown = [
            {
                **topic_info(topic.name, topic.replicas),
                "consumerCount": counts.get(topic.name, 0),
                "consumerGroupCount": counts.get(topic.name, 0),
            }
            for topic in topics
        ]
        return entity("kafka_topics_extended", text, topics=shown)

    def _consumers(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for running in self._engine.queries.values():
            for name in running.query.plan.sources:
                source = self._engine.metastore.source(name)
                if source is not None:
                    counts[source.topic] = counts.get(source.topic, 0) + 1
        return counts

    def sources_of(self, topics: Sequence[str]) -> list[Entity]:
        """The streams and tables over topics, described."""
        sources = sorted(self._engine.metastore.sources.items())
        return [
            self._source(source, extended=False) for _, source in sources if source.topic in topics
        ]

    def _topic_names(self) -> dict[str, str]:
        return {name: source.topic for name, source in self._engine.metastore.sources.items()}

    def _queries(self, text: str, *, extended: bool) -> Entity:
        running = list(self._engine.queries.values())
        if extended:
            described = [self._query(one) for one in running]
            return entity("query_descriptions", text, queryDescriptions=described)
        topics = self._topic_names()
        listed = [running_query(one, topics) for one in running]
        listed += [push_query(one) for one in list(self._engine.asking.push_queries.values())]
        return entity("queries", text, queries=listed)

    def _functions(self) -> list[Entity]:
        shown = []
        for function in self._engine.functions.values():
            for kind, overloads in (
                ("SCALAR", function.scalars),
                ("TABLE", function.tables),
                ("AGGREGATE", function.aggregates),
            ):
                if overloads:
                    category = function.category
                    if category == "OTHER" and kind != "SCALAR":
                        category = f"{kind} FUNCTION" if kind == "TABLE" else "AGGREGATE"
                    shown.append(
                        {"name": function.name.upper(), "type": kind, "category": category}
                    )
        return sorted(shown, key=lambda one: (one["category"], one["name"]))

    def _properties(self, text: str, session: Session) -> Entity:
        listed, changed, default = property_entities(self._engine.settings, session)
        return entity(
            "properties",
            text,
            properties=listed,
            overwrittenProperties=changed,
            defaultProperties=default,
        )

    # --- descriptions ------------------------------------------------------------------------

    def _describe(self, statement: tree.Describe, text: str) -> Entity:
        if statement.described in (Described.STREAMS, Described.TABLES):
            is_stream = statement.described is Described.STREAMS
            kind = SourceKind.STREAM if is_stream else SourceKind.TABLE
            return self._described(kind, text, extended=statement.extended)
        name = statement.name or ""
        if statement.described is Described.FUNCTION:
            return self._function(name, text)
        source = self._engine.metastore.source(name)
        if source is None:
            hint = self._engine.metastore.hint(name)
            raise AnalysisError(
                f"Could not find STREAM/TABLE '{name}' in the Metastore{hint}", statement=text
            )
        described_source = self._source(source, extended=statement.extended)
        return entity("sourceDescription", text, sourceDescription=described_source)

    def _function(self, name: str, text: str) -> Entity:
        function: Function | None = self._engine.functions.get(name.upper())
        if function is None:
            raise AnalysisError(f"Can't find any functions with the name '{name}'", statement=text)
        return entity("describe_function", text, **described_function(function))

    def _source(self, source: DataSource, *, extended: bool) -> Entity:
        metastore, queries = self._engine.metastore, self._engine.queries
        topics = self._topic_names()
        info = self._engine.cluster.topics().get(source.topic) if extended else None
        writers = [queries[q] for q in metastore.writers(source.name) if q in queries]
        readers = [queries[q] for q in metastore.readers(source.name) if q in queries]
        stats = statistics(writers, readers) if extended else []
        error_stats = error_statistics(readers) if extended else []
        return {
            "name": source.name,
            "windowType": None if source.window is None else source.window.kind.value,
            "readQueries": [running_query(one, topics) for one in readers],
            "writeQueries": [running_query(one, topics) for one in writers],
            "fields": fields(source.schema.columns),
            "type": source.kind.value,
            "timestamp": "" if source.timestamp is None else source.timestamp.name,
            "statistics": formatted(stats, "last-message"),
            "errorStats": formatted(error_stats, "last-failed"),
            "extended": extended,
            "keyFormat": source.formats.key.name.upper(),
            "valueFormat": source.formats.value.name.upper(),
            "topic": source.topic,
            "partitions": 0 if info is None else info.partitions,
            "replication": 0 if info is None else info.replicas[0],
            "statement": source.text,
            "queryOffsetSummaries": self._offsets(writers) if extended else [],
            "sourceConstraints": metastore.made_from(source.name),
            "clusterStatistics": [stat.entity(self._host) for stat in stats],
            "clusterErrorStats": [stat.entity(self._host) for stat in error_stats],
        }

    def _offsets(self, running: list[RunningQuery]) -> list[Entity]:
        read = {place for one in running for place in one.positions()}
        try:
            bounds = self._engine.cluster.bounds(sorted(read)) if read else {}
        except ClusterError:  # show what is known without the cluster
            bounds = {}
        return [_offsets(one, bounds) for one in running]

    # --- EXPLAIN -----------------------------------------------------------------------------

    def _explain(self, statement: tree.Explain, text: str, session: Session) -> Entity:
        if statement.query_id is not None:
            running = self._engine.queries.get(statement.query_id)
            if running is None:
                raise AnalysisError(
                    f"Query with id:{statement.query_id} does not exist, use SHOW QUERIES to view "
                    "the full set of queries.",
                    statement=text,
                )
            return entity("queryDescription", text, queryDescription=self._query(running))
        inner = statement.statement
        if not isinstance(inner, (tree.Query, tree.CreateAsSelect, tree.InsertInto)):
            raise AnalysisError("The provided statement does not run a ksql query", statement=text)
        own = text.split(None, 1)[1] if len(text.split(None, 1)) > 1 else text
        engine = self._engine
        topics = {name: info.partitions for name, info in engine.cluster.topics().items()}
        command = analyse(
            inner,
            engine.metastore.copy(),
            session.settings,
            engine.functions,
            engine.schemas,
            topics=topics,
            text=own,
        )
        if isinstance(command, PullQueryCommand):
            raise AnalysisError(
                "EXPLAIN of a pull query is not supported: it has no plan that runs.",
                statement=text,
            )
        if not isinstance(command, QueryCommand):
            raise AnalysisError("The provided statement does not run a ksql query", statement=text)
        described = self._plan(command.plan, own, session.overrides, None)
        return entity("queryDescription", text, queryDescription=described)

    def _query(self, running: RunningQuery) -> Entity:
        query = running.query
        return self._plan(query.plan, query.text, running.overrides, running)

    def _plan(
        self,
        plan: QueryPlan,
        text: str,
        overrides: Mapping[str, Any],
        running: RunningQuery | None,
    ) -> Entity:
        query = PersistentQuery(plan, text, "", self._engine.settings)
        state = None if running is None else running.state.value
        if plan.sink is None:
            topology = ""
        else:
            runner_query = query if running is None else running.query
            topology = self._engine.runner.describe(runner_query)
        failures = () if running is None else running.failures
        columns = plan.step.schema.value if plan.sink is None else plan.step.schema.columns
        return {
            "id": plan.query_id,
            "statementText": text,
            "windowType": None if plan.window is None else plan.window.kind.value,
            "fields": fields(columns),
            "sources": sorted(plan.sources),
            "sinks": [] if plan.sink is None else [plan.sink],
            "topology": topology,
            "executionPlan": json.dumps(json.loads(encode_plan(plan)), indent=1),
            "overriddenProperties": config.shown(overrides),
            "ksqlHostQueryStatus": {} if state is None else {self._host: state},
            "queryType": "PUSH" if plan.sink is None else "PERSISTENT",
            "queryErrors": [
                {"timestamp": f.timestamp_ms, "errorMessage": f.message, "type": f.type}
                for f in failures
            ],
            "tasksMetadata": [],
            "consumerGroupId": "" if running is None else running.query.group,
            "state": state,
            **({"message": running.message} if running is not None and running.message else {}),
            **({} if running is None else _batches(running)),
        }


def _batches(running: RunningQuery) -> Entity:
    """The last micro-batches of a query that this server runs on Spark; ksqlDB has none.

    ksqlDB's clients ignore a member that they do not know.
    """
    batches = running.batches() if running.is_here else None
    if batches is None:
        return {}
    told = [
        {
            "batchId": one.batch_id,
            "timestamp": one.began_ms,
            "durationMs": one.duration_ms,
            "inputRows": one.input_rows,
            "phasesMs": dict(one.phases_ms),
        }
        for one in batches
    ]
    return {"microBatches": told}


Bounds = Mapping[tuple[str, int], tuple[int, int]]


def _offsets(running: RunningQuery, bounds: Bounds) -> Entity:
    """Return a query's position in each of its topics; `bounds` are the partitions' ends."""
    summaries: dict[str, list[Entity]] = {}
    positions = running.positions()
    for (topic, partition), (position, known_end) in sorted(positions.items()):
        start, end = bounds.get((topic, partition), (0, known_end))
        summaries.setdefault(topic, []).append(
            {
                "partition": partition,
                "logStartOffset": start,
                "logEndOffset": max(end, position),
                "consumerOffset": position,
            }
        )
    return {
        "groupId": running.query.group,
        "topicSummaries": [
            {"kafkaTopic": topic, "offsets": offsets} for topic, offsets in summaries.items()
        ],
    }
