"""One request as the routes see it, and what they give back for a write."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from barnabas.registry import subjects
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.settings import resolve_alias
from barnabas.registry.http.answers import Answer
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.schema_json import EncodedSchemas
from barnabas.registry.http.target import Query, decoded, number
from barnabas.registry.service import Service

Response = TypeVar("Response")


@dataclass(slots=True)
class Call:
    """A request that has found its route."""

    service: Service
    view: View
    parameters: list[bytes]
    """The segments of the path that stand for a subject, a version and so on, not decoded."""
    context: str | None
    """The context that the path begins with."""
    query: Query
    body: dict[str, Any]
    """The JSON object that was sent; empty for routes that take none."""
    config: HttpConfig
    encoded: EncodedSchemas

    def subject(self) -> str:
        """The subject of the path, in the context of the path, its alias resolved."""
        return resolve_alias(self.view, self.place())

    def place(self) -> str:
        """The subject or context whose settings the path names: aliases have their own."""
        name = decoded(self.parameters[0])
        return name if self.context is None else subjects.in_context(self.context, name)

    def text(self, position: int) -> str:
        """A parameter of the path."""
        return decoded(self.parameters[position])

    def schema_id(self) -> int:
        """The id of the path. Raises RegistryError 404 if it is no number."""
        return number(decoded(self.parameters[0]), "the id")

    def subject_of_id(self) -> str:
        """The `subject` that says for whom an id is looked up; a context alone is one too."""
        name = self.query.text("subject")
        if self.context is not None:
            name = subjects.in_context(self.context, name)
        return resolve_alias(self.view, name) if name else name

    def wants_plain(self) -> bool:
        """Whether a schema is asked for as it is stored, which most clients always do."""
        query = self.query
        return not query or not (
            query.text("format").strip()
            or query.text("referenceFormat")
            or query.texts("findTags")
            or query.flag("fetchMaxId")
        )

    def prefix(self, default: str) -> str:
        """The `subjectPrefix` of a list, in the context of the path."""
        if self.context is None:
            return self.query.text("subjectPrefix", default)
        return subjects.in_context(self.context, self.query.text("subjectPrefix"))


@dataclass(frozen=True, slots=True)
class Write(Generic[Response]):
    """A change: what the leader decides, and how its answer is written."""

    decide: Callable[[View], Decision[Response]]
    answer: Callable[[View, Response], Answer]
    may_be_read: bool = False
    """Whether an instance that does not lead answers it where the decision has no records."""
