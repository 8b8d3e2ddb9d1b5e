"""A ksqlDB server, as Barnabas' SQL server is one: statements, queries, streams and tables."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.console.services.asking import RefusedError
from barnabas.console.services.rest import Rest, path
from barnabas.console.services.topics import Slice, sliced

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


@dataclass(frozen=True, slots=True)
class Weighed:
    """The right that a statement needs, and what to write before it destroys something."""

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
    """A query that runs."""

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
    topology: str
    errors: tuple[str, ...]


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

    def sources(self, search: str = "", page: int = 0, size: int = 50) -> Slice[SourceRow]:
        """Streams and tables whose names or topics contain all words of `search`."""
        words = search.lower().split()
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
            for one in map(_members, answer.get("streams") or answer.get("tables") or ())
        ]
        fitting = [
            row for row in rows if all(w in f"{row.name} {row.topic}".lower() for w in words)
        ]
        return sliced(sorted(fitting, key=lambda row: row.name), page, size)

    def queries(
        self,
        search: str = "",
        page: int = 0,
        size: int = 50,
        allowed: Callable[[str], bool] = lambda _: True,
    ) -> Slice[QueryRow]:
        """Queries whose ids or texts contain all words of `search`."""
        words = search.lower().split()
        rows = [
            QueryRow(
                str(one.get("id")),
                str(one.get("queryType")),
                str(one.get("state")),
                str(one.get("queryString")),
                tuple(map(str, one.get("sinks") or ())),
                None if one.get("message") is None else str(one["message"]),
            )
            for answer in self.run("LIST QUERIES;")
            for one in map(_members, answer.get("queries") or ())
        ]
        fitting = [
            row
            for row in rows
            if allowed(row.id) and all(word in f"{row.id} {row.text}".lower() for word in words)
        ]
        return sliced(sorted(fitting, key=lambda row: row.id), page, size)

    def explain(self, query_id: str) -> Explained:
        """How the server runs a query."""
        answer = self.run(f"EXPLAIN {_checked(query_id)};")
        found = _members((answer[0] if answer else {}).get("queryDescription"))
        topology = str(found.get("topology") or "")
        errors = [str(_members(one).get("errorMessage")) for one in found.get("queryErrors") or ()]
        if found.get("message"):
            errors.append(str(found["message"]))
        return Explained(
            query_id,
            str(found.get("state") or "UNKNOWN"),
            str(found.get("queryType") or ""),
            str(found.get("statementText") or ""),
            tuple(map(str, found.get("sources") or ())),
            tuple(map(str, found.get("sinks") or ())),
            stages_of(topology),
            topology,
            tuple(errors),
        )

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


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]


def _checked(query_id: str) -> str:
    """A query's id, which statements contain unquoted."""
    if not _QUERY_ID.fullmatch(query_id):
        raise RefusedError(f"{query_id!r} is not an id of a query")
    return query_id


def _members(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise RefusedError("the SQL server answers with what is not an object")
    return found
