"""The target of a request: segments of the raw path, and the query.

Segments are cut at the slashes of the raw path and decoded after that, each once: a subject may
have slashes, colons, dots and percent signs in its name. Empty segments do not count, as with
Confluent.
"""

import re
from http import HTTPStatus
from urllib.parse import parse_qs, unquote_to_bytes

from barnabas.registry import subjects
from barnabas.registry.http.answers import plain_fault

PARAMETERS_MAX = 1000
"""The number of parameters that a query may have."""

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_INT_MAX = (1 << 31) - 1


def decoded(segment: bytes) -> str:
    """The text of a segment. Raises RegistryError 400 if it is not percent-encoded UTF-8."""
    if b"%" in segment:
        if _BAD_ESCAPE.search(segment):
            raise plain_fault(HTTPStatus.BAD_REQUEST, "the path has a percent sign without digits")
        segment = unquote_to_bytes(segment)
    try:
        return segment.decode()
    except UnicodeDecodeError as fault:
        raise plain_fault(HTTPStatus.BAD_REQUEST, "the path is not UTF-8") from fault


def without_context(parts: list[bytes]) -> tuple[list[bytes], str | None]:
    """Take `contexts/<name>` off the front of a path.

    Returns what remains and the name of the context (None if the path names none). Settings of
    the context itself become those of the subject `:.name:`; the context alone stays as
    `contexts/:.name:`. Raises RegistryError 400.
    """
    context: str | None = None
    while len(parts) > 1 and parts[0] == b"contexts":
        context = _context(parts[1])
        parts = parts[2:]
    if context is None:
        return parts, None
    prefix = subjects.context_prefix(context)
    if prefix and parts in ([b"config"], [b"mode"]):
        parts = [*parts, prefix.encode()]
    elif prefix and not parts:
        parts = [b"contexts", prefix.encode()]
    return parts, context


def _context(segment: bytes) -> str:
    try:
        return subjects.context_named(decoded(segment))
    except ValueError as fault:
        raise plain_fault(HTTPStatus.BAD_REQUEST, str(fault)) from fault


class Query:
    """The parameters after the question mark; of one that comes twice the first counts."""

    __slots__ = ("_found",)

    def __init__(self, query: bytes) -> None:
        self._found: dict[str, list[str]] = {}
        if query:
            try:
                self._found = parse_qs(
                    query.decode("utf-8", "replace"),
                    keep_blank_values=True,
                    max_num_fields=PARAMETERS_MAX,
                )
            except ValueError as fault:
                raise plain_fault(
                    HTTPStatus.BAD_REQUEST, f"more than {PARAMETERS_MAX} parameters"
                ) from fault

    def __bool__(self) -> bool:
        return bool(self._found)

    def text(self, name: str, default: str = "") -> str:
        """A parameter as it is."""
        value = self._found.get(name)
        return value[0] if value else default

    def texts(self, name: str) -> list[str]:
        """All that a parameter is said to be."""
        return self._found.get(name, [])

    def flag(self, name: str) -> bool:
        """Return whether a parameter is true; all other words are false."""
        value = self._found.get(name)
        return value is not None and value[0].lower() == "true"

    def number(self, name: str, default: int) -> int:
        """A parameter of 32 bits. Raises RegistryError 404, as Confluent does."""
        value = self._found.get(name)
        if not value or not value[0].strip():
            return default
        return number(value[0], name)


def number(text: str, name: str) -> int:
    """A number of 32 bits in a path or query. Raises RegistryError 404, as Confluent does."""
    if _NUMBER.fullmatch(text):
        value = int(text)
        if -_INT_MAX - 1 <= value <= _INT_MAX:
            return value
    raise plain_fault(HTTPStatus.NOT_FOUND, f"{name} is {text[:40]!r}, not a number of 32 bits")
