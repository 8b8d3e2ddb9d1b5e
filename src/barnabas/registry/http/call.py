"""One request as the routes see it, and the result that they return for a write."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from barnabas.registry import subjects
from barnabas.registry.core.decision import Decision, View
from barnabas.registry.core.lookup import formatted
from barnabas.registry.core.settings import resolve_alias
from barnabas.registry.http.answers import Answer
from barnabas.registry.http.config import HttpConfig
from barnabas.registry.http.schema_json import EncodedSchemas
from barnabas.registry.http.target import Query, decoded, number
from barnabas.registry.large_work import is_large
from barnabas.registry.service import Service
from barnabas.registry.store.records import SchemaValue

Response = TypeVar("Response")


@dataclass(slots=True)
class Call:
    """A request with its route."""

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
        """The id of the path. Raises RegistryError 404 if it is not a number."""
        return number(decoded(self.parameters[0]), "the id")

    def subject_of_id(self) -> str:
        """The `subject` that says for whom an id is looked up; a context alone is one too."""
        name = self.query.text("subject")
        if self.context is not None:
            name = subjects.in_context(self.context, name)
        return resolve_alias(self.view, name) if name else name

    def wants_plain(self) -> bool:
        """Return whether a schema is asked for as it is stored, which most clients always do."""
        query = self.query
        return not query or not (
            query.text("format").strip()
            or query.text("referenceFormat")
            or query.texts("findTags")
            or query.flag("fetchMaxId")
        )

    def wants_parsed(self) -> bool:
        """Return whether what is asked for has to be parsed: a form of a text, or its tags."""
        return bool(self.query.text("format").strip() or self.query.texts("findTags"))

    def prefix(self, default: str) -> str:
        """The `subjectPrefix` of a list, in the context of the path."""
        if self.context is None:
            return self.query.text("subjectPrefix", default)
        return subjects.in_context(self.context, self.query.text("subjectPrefix"))


@dataclass(frozen=True, slots=True)
class LargeRead:
    """A read that parses a large schema: it runs in a thread, on a separate view."""

    read: Callable[[View], Answer]


def reading(
    call: Call, value: SchemaValue, read: Callable[[View], Answer], *, parses: bool = True
) -> Answer | LargeRead:
    """Read a stored schema at once, or in a thread where it has to be parsed and is large."""
    return LargeRead(read) if parses and is_large(call.view, value) else read(call.view)


def text_answer(call: Call, value: SchemaValue) -> Answer | LargeRead:
    """A stored schema's text alone, in the form that is asked for."""
    form = call.query.text("format")

    def read(view: View) -> Answer:
        return Answer(formatted(view, value, form).encode())

    return reading(call, value, read, parses=bool(form.strip()))


@dataclass(frozen=True, slots=True)
class Write(Generic[Response]):
    """A change: what the leader decides, and how its answer is written."""

    decide: Callable[[View], Decision[Response]]
    answer: Callable[[View, Response], Answer]
    has_form: bool = False
    """True if the answer has a text in a form that was asked for."""
    may_be_read: bool = False
    """True if an instance that does not lead answers it where the decision has no records."""
