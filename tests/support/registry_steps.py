"""Steps and cases of the registry's REST interface, in the small format of `registry_format`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from support.registry_format import text

Step = tuple[str, str] | tuple[str, str, Any]


@dataclass
class Case:
    """Steps that all succeed, one request, its code and its body (or a part of it)."""

    name: str
    request: Step
    code: int = 200
    body: Any = None
    before: Sequence[Step] = ()
    has: dict[str, Any] = field(default_factory=dict)
    """Fields of the answer."""
    lacks: Sequence[str] = ()
    """Fields that the answer does not have."""


def add(subject: str, *fields: str, **more: Any) -> Step:
    """A registration; what is not of the schema's text goes in `more`."""
    return ("POST", f"/subjects/{subject}/versions", {"schema": text(*fields), **more})


def schema(*fields: str, **more: Any) -> dict[str, Any]:
    return {"schema": text(*fields), **more}


A = text("a")
GUID = "6b9ff1fc-4b62-57e6-bb3c-8a6dd4ea3b4a"
NONE: Step = ("PUT", "/config", {"compatibility": "NONE"})
TWO = (NONE, add("s", "a"), add("s", "b"))
THREE = (*TWO, add("s", "c"))
GONE = (*TWO, ("DELETE", "/subjects/s"))
REFERENCE = {"name": "base", "subject": "base", "version": 1}
REFERRING = {"schema": text("b", uses=["base"]), "references": [REFERENCE]}
REFERRED = (
    add("base", "a"),
    ("POST", "/subjects/s/versions", REFERRING),
)
IMPORT: Step = ("PUT", "/mode", {"mode": "IMPORT"})
ENTITY = {"schemaEntity": {"entityPath": ".a", "entityType": "sr_field"}, "tags": ["PII"]}
TAGGED = {"schemaEntity": {"entityPath": "a", "entityType": "sr_field"}, "tags": ["PII"]}
TAGS = text("a", tags={"a": ["PII"]})
RULES = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL"}]}
