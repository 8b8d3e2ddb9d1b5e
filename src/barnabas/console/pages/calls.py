"""Requests to the console's interface as the pages see them, and the kinds of answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from barnabas.console.access import Audit, User
from barnabas.console.pages.streams import Lines

if TYPE_CHECKING:
    from barnabas.console.services.all import Services


DIGITS_MAX: Final = 18
"""Digits of a number in a path; Python refuses to read thousands."""


class BadRequestError(Exception):
    """A request lacks something; `position` is where an expression is wrong."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True, slots=True)
class Download:
    """A file for the browser to download."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer that is sent as a stream."""

    lines: Lines


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    services: Services
    user: User
    address: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any] = field(default_factory=dict)
    masked: Sequence[str] = ()
    """Fields that this user does not see."""
    maskable: Sequence[str] = ()
    """Fields that need the right `unmasked`."""

    def text(self, name: str, default: str = "") -> str:
        """A parameter of the query."""
        return self.query.get(name, default)

    def number(self, name: str, default: int) -> int:
        """A whole number of the query. Raises BadRequestError."""
        text = self.query.get(name, "")
        if not text:
            return default
        try:
            return int(text)
        except ValueError:
            raise BadRequestError(f"{name} is not a whole number") from None

    def flag(self, name: str) -> bool:
        """Return whether a parameter of the query is true."""
        return self.query.get(name, "") in ("1", "true")

    def given(self, name: str, kind: type | tuple[type, ...] = str) -> Any:
        """A member of the body. Raises BadRequestError."""
        found = self.body.get(name)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is int):
            raise BadRequestError(f"{name} is missing, or is not what it should be")
        return found

    def confirm(self, name: str) -> None:
        """Raise BadRequestError if the body does not repeat the name of what is destroyed."""
        if self.body.get("confirm") != name:
            raise BadRequestError(f"write {name!r} to confirm")

    def do(self, action: str, target: str, work: Callable[[], Any], **details: Any) -> Any:
        """Do something, and note it in the audit log whether it succeeds or fails."""
        audit: Audit = self.services.audit
        try:
            found = work()
        except Exception as error:
            outcome = f"failed: {error}"
            audit.note(self.user.name, self.address, action, target, outcome, details)
            raise
        audit.note(self.user.name, self.address, action, target, "done", details)
        return found


def whole(text: str, what: str) -> int:
    """A number in a path. Raises BadRequestError."""
    if not text.isascii() or not text.isdigit() or len(text) > DIGITS_MAX:
        raise BadRequestError(f"{what} is a number")
    return int(text)


def is_unicode(text: str) -> bool:
    """Return whether a text has bytes: JSON may hold halves of surrogate pairs, which have none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


Handler = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A row of a page's table: the right that it needs, on what its path names.

    Names in the path that rights are about: `{topic}`, `{group}`, `{subject}`, `{connector}`,
    `{query}`. `everywhere`: the right must come from a role without patterns, as for what concerns
    the whole cluster. `is_shared`: the answer depends only on the request and the user's roles,
    so users with the same roles share it for a moment.
    """

    method: str
    path: str
    right: str
    what: str
    handler: Handler
    is_stream: bool = False
    everywhere: bool = False
    is_shared: bool = False


def shared(path: str, what: str, handler: Handler) -> Endpoint:
    """Return an endpoint that pages ask repeatedly, and whose answers users share."""
    return Endpoint("GET", path, "view", what, handler, is_shared=True)


def as_json(found: Any) -> Any:
    """Dataclasses as objects, all the way down."""
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        return {one.name: as_json(getattr(found, one.name)) for one in dataclasses.fields(found)}
    if isinstance(found, Mapping):
        return {str(name): as_json(one) for name, one in found.items()}
    if isinstance(found, list | tuple):
        return [as_json(one) for one in found]
    return found
