"""Schemas of a registry with Confluent's interface: subjects, versions, levels, differences."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.console.services.asking import AbsentError, Kept, RefusedError
from barnabas.console.services.rest import Rest, Shapes, path
from barnabas.console.services.topics import Asked, Slice

LIST_KEPT_S: Final = 2.0
LINES_MAX: Final = 6_000
LEVELS: Final = (
    *("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE"),
    *("FULL", "FULL_TRANSITIVE", "NONE"),
)
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
_members: Final = Shapes("the schema registry").members


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """A subject in a list; `reason` says why the rest is not known."""

    name: str
    is_deleted: bool
    type: str | None = None
    version: int | None = None
    level: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version of a subject."""

    version: int
    is_deleted: bool


@dataclass(frozen=True, slots=True)
class Effective:
    """A level or mode, and whether the subject has its own; None if the registry has none."""

    value: str | None
    is_own: bool


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject with its versions, the first one first."""

    name: str
    versions: tuple[VersionRow, ...]
    level: Effective
    mode: Effective


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a subject; `referrers` are ids of schemas that refer to it."""

    version: int
    id: int
    type: str
    text: str
    references: tuple[Mapping[str, Any], ...]
    referrers: tuple[int, ...]
    metadata: Any = None
    rules: Any = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a comparison: `same`, `removed` (of the first text) or `added` (of the second)."""

    kind: str
    before: int | None
    after: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on a schema as the next version, with the reasons against it."""

    is_compatible: bool
    messages: tuple[str, ...]


class SchemaService:
    """The schemas of one registry. Methods block, and raise AwayError and RefusedError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._names = Kept(self._ask_names, LIST_KEPT_S)

    @property
    def url(self) -> str:
        """The registry's address."""
        return self._rest.url

    def close(self) -> None:
        """Let go of the registry."""
        self._rest.close()

    def find(
        self,
        asked: Asked,
        *,
        deleted: bool = False,
        allowed: Callable[[str], bool] = lambda _: True,
    ) -> Slice[SubjectRow]:
        """Subjects by their names; deleted ones too if asked for."""
        there, gone = self._names.get()
        found = [
            (name, is_deleted)
            for name, is_deleted in sorted(
                [*((name, False) for name in there), *((name, True) for name in gone if deleted)]
            )
            if asked.fits(name) and allowed(name)
        ]
        part = asked.of(found)
        rows = self._rest.each(self._row, part.rows)
        shown = [
            row if isinstance(row, SubjectRow) else SubjectRow(name, is_deleted, reason=row)
            for row, (name, is_deleted) in zip(rows, part.rows, strict=True)
        ]
        return Slice(shown, part.total, part.page)

    def _ask_names(self) -> tuple[list[str], list[str]]:
        there = _names(self._rest.ask("GET", path("subjects")))
        known = set(there)
        every = _names(self._rest.ask("GET", path("subjects", deleted="true")))
        return there, [name for name in every if name not in known]

    def _row(self, about: tuple[str, bool]) -> SubjectRow:
        name, is_deleted = about
        if is_deleted:
            return SubjectRow(name, True)
        latest = self._object("subjects", name, "versions", "latest")
        level = self._object("config", name, defaultToGlobal="true").get("compatibilityLevel")
        return SubjectRow(name, False, _type(latest), latest.get("version"), level)

    def one(self, name: str) -> Subject:
        """A subject, deleted or not."""
        where = ("subjects", name, "versions")
        every = self._rest.ask("GET", path(*where, deleted="true"))
        try:
            there = set(self._rest.ask("GET", path(*where)))
        except AbsentError:
            there = set()
        versions = tuple(VersionRow(number, number not in there) for number in every)
        return Subject(name, versions, self.level(name), self.mode(name))

    def version(self, name: str, number: int) -> Version:
        """A version, deleted or not."""
        where = ("subjects", name, "versions", str(number))
        found = self._object(*where, deleted="true")
        try:
            referrers = tuple(self._rest.ask("GET", path(*where, "referencedby")) or ())
        except RefusedError:  # a registry without references, or a deleted version
            referrers = ()
        return Version(
            found.get("version", number),
            found.get("id", -1),
            _type(found),
            pretty(found.get("schema", ""), _type(found)),
            tuple(found.get("references") or ()),
            referrers,
            found.get("metadata"),
            found.get("ruleSet"),
        )

    def difference(self, name: str, before: int, after: int) -> list[Line]:
        """The lines of two versions, side by side. Raises RefusedError for very long ones."""
        return compare(self.version(name, before).text, self.version(name, after).text)

    def level(self, name: str | None = None) -> Effective:
        """The compatibility level of a subject, or of all that have none."""
        return self._effective("config", "compatibilityLevel", name)

    def mode(self, name: str | None = None) -> Effective:
        """The mode of a subject, or of all that have none; unknown to some registries."""
        try:
            return self._effective("mode", "mode", name)
        except RefusedError:
            return Effective(None, False)

    def _effective(self, what: str, member: str, name: str | None) -> Effective:
        if name is not None:
            try:
                own = self._object(what, name).get(member)
            except AbsentError:
                own = None
            if own is not None:
                return Effective(own, True)
        return Effective(self._object(what).get(member), False)

    def _object(self, *parts: str, **query: str) -> Mapping[str, Any]:
        """The members of an answer. Raises RefusedError if it is not an object."""
        return _members(self._rest.ask("GET", path(*parts, **query)))

    def change_level(self, name: str | None, level: str | None) -> None:
        """Set a level; None removes a subject's own."""
        if level is not None and level not in LEVELS:
            raise RefusedError(f"{level} is none of {', '.join(LEVELS)}")
        self._change("config", name, None if level is None else {"compatibility": level}, {})

    def change_mode(self, name: str | None, mode: str | None, *, force: bool = False) -> None:
        """Set a mode; None removes a subject's own. `force`: even if there are schemas."""
        if mode is not None and mode not in MODES:
            raise RefusedError(f"{mode} is none of {', '.join(MODES)}")
        query = {"force": "true"} if force and mode is not None else {}
        self._change("mode", name, None if mode is None else {"mode": mode}, query)

    def _change(self, what: str, name: str | None, body: Any, query: Mapping[str, str]) -> None:
        parts = (what,) if name is None else (what, name)
        self._rest.ask("DELETE" if body is None else "PUT", path(*parts, **query), body)

    def check(self, name: str, kind: str, text: str, references: Sequence[Any] = ()) -> Checked:
        """Whether a schema fits the subject's level; a new subject has nothing to fit."""
        where = path("compatibility", "subjects", name, "versions", verbose="true")
        try:
            found = _members(self._rest.ask("POST", where, _body(kind, text, references)))
        except AbsentError:
            return Checked(True, ())
        messages = tuple(str(one) for one in found.get("messages") or ())
        return Checked(bool(found.get("is_compatible")), messages)

    def register(self, name: str, kind: str, text: str, references: Sequence[Any] = ()) -> int:
        """Register a version; returns the schema's id."""
        where = path("subjects", name, "versions")
        found = _members(self._rest.ask("POST", where, _body(kind, text, references)))
        self._names.forget()
        return int(found.get("id", -1))

    def delete(self, name: str, version: int | None = None, *, permanent: bool = False) -> Any:
        """Delete a subject or a version; for good only what is deleted already."""
        parts = (
            ("subjects", name) if version is None else ("subjects", name, "versions", str(version))
        )
        found = self._rest.ask("DELETE", path(*parts, permanent="true" if permanent else None))
        self._names.forget()
        return found


def pretty(text: str, kind: str) -> str:
    """A schema's text for people: JSON is indented, in the order that it has."""
    if kind == "PROTOBUF":
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def compare(before: str, after: str) -> list[Line]:
    """The lines of two texts. Raises RefusedError for very long ones."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > LINES_MAX:
        raise RefusedError(f"the schemas are too long to compare: over {LINES_MAX} lines")
    found: list[Line] = []
    for kind, start, stop, new_start, new_stop in difflib.SequenceMatcher(
        None, old, new
    ).get_opcodes():
        if kind == "equal":
            found += [
                Line("same", start + step + 1, new_start + step + 1, old[start + step])
                for step in range(stop - start)
            ]
            continue
        found += [Line("removed", at + 1, None, old[at]) for at in range(start, stop)]
        found += [Line("added", None, at + 1, new[at]) for at in range(new_start, new_stop)]
    return found


def _names(found: Any) -> list[str]:
    if not isinstance(found, list):
        raise RefusedError("the schema registry's list of subjects is not a list")
    return [str(name) for name in found]


def _type(found: Mapping[str, Any]) -> str:
    return str(found.get("schemaType") or "AVRO")


def _body(kind: str, text: str, references: Sequence[Any]) -> dict[str, Any]:
    if kind not in TYPES:
        raise RefusedError(f"{kind} is none of {', '.join(TYPES)}")
    body: dict[str, Any] = {"schema": text}
    if kind != "AVRO":
        body["schemaType"] = kind
    if references:
        body["references"] = list(references)
    return body
