"""Paths of the REST interface: which method of which handler answers what.

Names in paths are percent-encoded and may contain any character: so paths are split before they are
decoded. A slash at the end does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote


@dataclass(slots=True)
class Request:
    """A handler's view of a request. `names` are those of the path, decoded."""

    method: str
    path: str
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    query: Mapping[str, list[str]] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    base_url: str = ""

    def flag(self, name: str) -> bool:
        """Whether a parameter is true; false where it is not given, as Java's Boolean.valueOf."""
        values = self.query.get(name)
        return values is not None and values[0].lower() == "true"

    @property
    def may_forward(self) -> bool | None:
        """The value of `forward`; None if a client sent the request, not a worker."""
        return self.flag("forward") if "forward" in self.query else None


@dataclass(slots=True, frozen=True)
class Answer:
    """A handler's result: JSON, or nothing if `status` says that there is no content."""

    status: int = 200
    body: Any = None
    location: str | None = None
    raw: bytes | None = None
    """JSON of another worker, or what is of `content_type`."""
    content_type: str = "application/json"


class Handler(Protocol):
    """Answers a request. Blocks; raises errors of `errors.requests` and ConnectError."""

    def __call__(self, request: Request, /) -> Answer: ...


class Route(NamedTuple):
    """One way to ask. `pattern` is as `/connectors/{}/tasks`; `{#}` is a whole number."""

    method: str
    pattern: str
    handler: Callable[[Request], Answer]


def names_of(parameters: Iterable[bytes]) -> tuple[str, ...]:
    """Return the names in a path, decoded."""
    return tuple(unquote(part.decode("latin-1")) for part in parameters)


def parse_query(text: str) -> dict[str, list[str]]:
    """Return the parameters; one without a value is empty."""
    return parse_qs(text, keep_blank_values=True)
