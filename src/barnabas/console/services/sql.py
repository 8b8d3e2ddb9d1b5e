"""A ksqlDB server, as Barnabas' SQL server is one: statements, queries, streams and tables."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.console.services.asking import RefusedError
from barnabas.console.services.rest import Rest, Shapes, path
from barnabas.console.services.sql_plans import PlanStep, plan_of
from barnabas.console.services.topics import Asked, Slice

LINE_CHARS_MAX: Final = 8 << 20
"""A longer row ends its query."""
DELIMITED: Final = "application/vnd.ksqlapi.delimited.v1"
KINDS: Final = ("STREAM", "TABLE")
_RIGHTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("LIST", "SHOW", "DESCRIBE", "EXPLAIN"), "view"),
    **dict.fromkeys(("CREATE", "INSERT", "ALTER", "PAUSE", "RESUME"), "edit"),
}
_WORD: Final = re.compile(r"[A-Za-z]+")
_DROPPED: Final = re.compile(
    r"(?:DROP\s+(?:STREAM|TABLE|TYPE|CONNECTOR)(?:\s+IF\s+EXISTS)?|TERMINATE)\s+(`[^`]+`|[\w-]+)",
    re.IGNORECASE,
)
_QUERY_ID: Final = re.compile(r"\w[\w-]*", re.ASCII)
_OPERATOR: Final = re.compile(r"Operator: (\d+), stages \[([\d, ]*)\], stores \[(.*)\]")
_FORMS: Final = re.compile(
    r"As columns: stages \[([\d, ]*)\]; record by record: stages \[([\d, ]*)\]"
)
EVERYTHING: Final = "everything"
_CONNECTOR: Final = re.compile(r"\bCONNECTOR\b", re.IGNORECASE)
_VALUE: Final = re.compile(r"=(\s*)'(?:[^']|'')*(?:'|$)")
_ANSWER: Final = Shapes("the SQL server")
_members, _listed, _whole = _ANSWER.members, _ANSWER.listed, _ANSWER.whole


@dataclass(frozen=True, slots=True)
class Weighed:
    """The right that a statement needs, and the text to type before it destroys something."""

    right: str
    confirm: str | None


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A stream or table."""

    name: str
    kind: str
    topic: str
    key_format: str
    value_format: str
    is_windowed: bool


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A running query."""

    id: str
    kind: str
    state: str
    text: str
    sinks: tuple[str, ...]
    reason: str | None


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a query's plan: in which operator, and whether it runs columns or rows."""

    number: int
    operator: int
    form: str
    stores: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A query and how the server runs it; without stages where the server does not say them."""

    id: str
    state: str
    kind: str
    text: str
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    stages: tuple[Stage, ...]
    plan: tuple[PlanStep, ...]
    """Empty where the plan cannot be drawn."""
    topology: str
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicLag:
    """The records of a topic that a query has still to read."""

    topic: str
    lag: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A completed Spark micro-batch."""

    id: int
    began_ms: int
    duration_ms: int
    input_rows: int


@dataclass(frozen=True, slots=True)
class Activity:
    """The progress of a query: its lag and its last micro-batches."""

    group: str
    """Its consumer group; empty if the server does not say."""
    lag: tuple[TopicLag, ...] | None
    """None if the server does not say."""
    batches: tuple[Batch, ...] | None
    """Oldest first; None if the server reports no micro-batches, as ksqlDB, which has none."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream or table."""

    name: str
    type: str


def weigh(text: str) -> Weighed:
    """The right that a text needs. More than one statement, or a comment, needs `admin`."""
    body = text.strip().rstrip(";").strip()
    word = _WORD.match(body)
    right = _RIGHTS.get(word[0].upper(), "admin") if word and ";" not in body else "admin"
    if right != "admin":
        return Weighed(right, None)
    found = _DROPPED.fullmatch(body) or _DROPPED.match(body)
    is_one = found is not None and ";" not in body
    name = found[1].strip("`") if found is not None and is_one else EVERYTHING
    return Weighed(right, EVERYTHING if name.upper() == "ALL" else name)


def without_secrets(text: str) -> str:
    """A text without the values of connectors' settings, passwords among them."""
    return _VALUE.sub(r"=\1'[hidden]'", text) if _CONNECTOR.search(text) else text


class SqlService:
    """One server. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def close(self) -> None:
        """Let go of the server."""
        self._rest.close()

    def run(self, text: str) -> list[Mapping[str, Any]]:
        """The answers to statements."""
        found = self._rest.ask("POST", path("ksql"), {"ksql": text, "streamsProperties": {}})
        if not isinstance(found, list):
            raise RefusedError("the SQL server's answer is not a list")
        return [_members(one) for one in found]

    def sources(self, asked: Asked) -> Slice[SourceRow]:
        """Streams and tables by their names and topics."""
        answers = self.run("LIST STREAMS; LIST TABLES;")
        rows = [
            SourceRow(
                str(one.get("name")),
                str(one.get("type")),
                str(one.get("topic")),
                str(one.get("keyFormat")),
                str(one.get("valueFormat")),
                bool(one.get("isWindowed")),
            )
            for answer in answers
            for one in map(_members, _listed(answer.get("streams") or answer.get("tables")))
        ]
        fitting = [row for row in rows if asked.fits(f"{row.name} {row.topic}")]
        return asked.of(sorted(fitting, key=lambda row: row.name))

    def queries(
        self, asked: Asked, allowed: Callable[[str], bool] = lambda _: True
    ) -> Slice[QueryRow]:
        """Queries by their ids and texts."""
        rows = [
            QueryRow(
                str(one.get("id")),
                str(one.get("queryType")),
                str(one.get("state")),
                str(one.get("queryString")),
                tuple(_texts(one.get("sinks"))),
                None if one.get("message") is None else str(one["message"]),
            )
            for answer in self.run("LIST QUERIES;")
            for one in map(_members, _listed(answer.get("queries")))
        ]
        fitting = [row for row in rows if allowed(row.id) and asked.fits(f"{row.id} {row.text}")]
        return asked.of(sorted(fitting, key=lambda row: row.id))

    def explain(self, query_id: str) -> Explained:
        """Return the server's description of a query."""
        found = self._described(query_id)
        topology = str(found.get("topology") or "")
        failed = map(_members, _listed(found.get("queryErrors")))
        errors = [str(one.get("errorMessage")) for one in failed]
        if found.get("message"):
            errors.append(str(found["message"]))
        return Explained(
            query_id,
            str(found.get("state") or "UNKNOWN"),
            str(found.get("queryType") or ""),
            str(found.get("statementText") or ""),
            tuple(_texts(found.get("sources"))),
            tuple(_texts(found.get("sinks"))),
            stages_of(topology),
            plan_of(str(found.get("executionPlan") or ""), ", ".join(_texts(found.get("sinks")))),
            topology,
            tuple(errors),
        )

    def activity(self, query_id: str) -> Activity:
        """Return a query's lag by topic, and its last micro-batches."""
        found = self._described(query_id)
        group = str(found.get("consumerGroupId") or "")
        told = found.get("microBatches")
        batches = None if not isinstance(told, list) else tuple(_batch(one) for one in told)
        return Activity(group, self._lag(group, _texts(found.get("sinks"))), batches)

    def _described(self, query_id: str) -> Mapping[str, Any]:
        answer = self.run(f"EXPLAIN {_checked(query_id)};")
        return _members((answer[0] if answer else {}).get("queryDescription"))

    def _lag(self, group: str, sinks: Sequence[str]) -> tuple[TopicLag, ...] | None:
        """By topic, as the description of what the query writes has it."""
        if not sinks or "`" in sinks[0]:
            return None
        answer = self.run(f"DESCRIBE `{sinks[0]}` EXTENDED;")
        found = _members((answer[0] if answer else {}).get("sourceDescription"))
        offsets = [_members(one) for one in _listed(found.get("queryOffsetSummaries"))]
        own = [one for one in offsets if not group or one.get("groupId") == group]
        if len(own) != 1:  # of other queries that write it too, or none
            return None
        return tuple(_topic_lag(_members(topic)) for topic in _listed(own[0].get("topicSummaries")))

    def functions(self) -> list[str]:
        """The names of all functions."""
        answers = self.run("LIST FUNCTIONS;")
        listed = [_members(one) for answer in answers for one in _listed(answer.get("functions"))]
        return sorted(str(one.get("name")) for one in listed)

    def columns(self, source: str) -> list[Column]:
        """The columns of a stream or table."""
        if "`" in source:
            raise RefusedError(f"{source} is not a name of a stream or table")
        answer = self.run(f"DESCRIBE `{source}`;")
        found = _members((answer[0] if answer else {}).get("sourceDescription"))
        fields = [_members(one) for one in _listed(found.get("fields"))]
        return [Column(str(one.get("name")), _type_of(one.get("schema"))) for one in fields]

    def terminate(self, query_id: str) -> None:
        """End a query."""
        self.run(f"TERMINATE {_checked(query_id)};")

    def drop(self, kind: str, name: str) -> None:
        """Drop a stream or table; its topic stays."""
        if kind not in KINDS or "`" in name:
            raise RefusedError(f"{kind} {name} cannot be dropped here")
        self.run(f"DROP {kind} `{name}`;")

    def query(self, text: str, stopping: threading.Event) -> Iterator[Mapping[str, Any]]:
        """The rows of a query: `columns` first, then `rows`; ends with it or with the event."""
        body = {"sql": text, "properties": {}}
        left = ""
        for piece in self._rest.pieces(path("query-stream"), body, stopping, accept=DELIMITED):
            lines = (left + piece).split("\n")
            left = lines.pop()
            if len(left) > LINE_CHARS_MAX:
                raise RefusedError("a row of the query is too long to show")
            yield from _shown([line for line in lines if line.strip()])
        if left.strip() and not stopping.is_set():
            yield from _shown([left])


def _shown(lines: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    rows: list[Any] = []
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = line  # of PRINT, whose lines are texts
        if isinstance(found, dict) and "columnNames" in found:
            yield {"columns": found["columnNames"], "types": found.get("columnTypes") or []}
        elif isinstance(found, dict) and "message" in found and "error_code" in found:
            raise RefusedError(str(found["message"]))
        elif isinstance(found, list):
            rows.append(found)
        elif isinstance(found, str):
            rows.append([found])
    if rows:
        yield {"rows": rows}


def stages_of(topology: str) -> tuple[Stage, ...]:
    """The stages that a topology's text lists, with what each runs."""
    forms: dict[int, str] = {}
    if found := _FORMS.search(topology):
        forms.update(dict.fromkeys(_numbers(found[1]), "columns"))
        forms.update(dict.fromkeys(_numbers(found[2]), "rows"))
    return tuple(
        Stage(stage, int(operator), forms.get(stage, "rows"), stores.replace("'", ""))
        for operator, stages, stores in _OPERATOR.findall(topology)
        for stage in _numbers(stages)
    )


def _batch(found: Any) -> Batch:
    one = _members(found)
    members = ("batchId", "timestamp", "durationMs", "inputRows")
    return Batch(*(_whole(one.get(name)) for name in members))


def _topic_lag(found: Mapping[str, Any]) -> TopicLag:
    parts = [_members(one) for one in _listed(found.get("offsets"))]
    lags = [_whole(one.get("logEndOffset")) - _whole(one.get("consumerOffset")) for one in parts]
    return TopicLag(str(found.get("kafkaTopic")), sum(max(0, lag) for lag in lags), len(parts))


def _type_of(schema: Any) -> str:
    """A type as SQL has it: what is inside of brackets is left out."""
    return str(schema.get("type")) if isinstance(schema, dict) else ""


def _texts(found: Any) -> list[str]:
    return [str(one) for one in _listed(found)]


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def _checked(query_id: str) -> str:
    """A query's id, which statements contain unquoted."""
    if not _QUERY_ID.fullmatch(query_id):
        raise RefusedError(f"{query_id!r} is not an id of a query")
    return query_id
