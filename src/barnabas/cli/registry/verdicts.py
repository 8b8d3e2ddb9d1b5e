"""A registry's reasons why two schemas are incompatible, as lines for people."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_REASON = re.compile(
    r"""\{errorType:\s*(['"])(?P<kind>\w+)\1,\s*description:\s*(['"])(?P<text>.*?)\3"""
    r"""(?:,\s*additionalInfo:\s*(['"])(?P<details>.*)\5)?\}""",
    re.DOTALL,
)
_VERSION = re.compile(r"\{oldSchemaVersion:\s*(\d+)\}")
_ABOUT = re.compile(r"\{(oldSchema|validateFields|compatibility):")


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a schema is refused. The message says the place in the schema."""

    message: str
    kind: str | None = None
    """Confluent's word for it, None where the schema itself is at fault."""
    details: str | None = None
    version: int | None = None
    """The earlier version that it is at odds with."""

    def line(self) -> str:
        """For people."""
        text = " ".join(self.message.split())
        against = f" (version {self.version})" if self.version is not None else ""
        return f"{self.kind}: {text}{against}" if self.kind else text + against

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "kind": self.kind,
            "message": self.message,
            "details": self.details,
            "version": self.version,
        }


def read_reasons(messages: Iterable[str]) -> list[Reason]:
    """The reasons among the `messages` of a verbose check: the old schema is not shown again."""
    found: list[tuple[str, str | None, str | None]] = []
    version = None
    for message in messages:
        about_version = _VERSION.fullmatch(message)
        if about_version:
            version = int(about_version[1])
        elif not _ABOUT.match(message):
            match = _REASON.fullmatch(message)
            if match is None:
                found.append((message, None, None))
            else:
                found.append((match["text"], match["kind"], match["details"] or None))
    return [Reason(text, kind, details, version) for text, kind, details in found]
