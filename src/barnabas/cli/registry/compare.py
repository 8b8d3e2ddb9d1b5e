"""Compatibility of two stored schemas, in both directions.

With the extra `registry` both ways are computed here. Without it the registry is asked, which
judges by the subject's own level only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.cli.registry.client import Registry
from barnabas.cli.registry.schema import Reason, get_version, read_reasons

if TYPE_CHECKING:
    from barnabas.schemas.schema import ResolvedReference

Stored = Mapping[str, Any]
"""A version as the registry tells it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The compatibility of the newer schema with the older one at a level."""

    level: str
    reasons: list[Reason]

    @property
    def is_compatible(self) -> bool:
        """True if there is no reason against it."""
        return not self.reasons


def compare(registry: Registry, old: Stored, new: Stored) -> list[Verdict]:
    """Verdicts on two versions. Raises CliError where the registry does not answer."""
    if old["schemaType"] != new["schemaType"]:
        reason = Reason(f"the type changes from {old['schemaType']} to {new['schemaType']}")
        return [Verdict(level, [reason]) for level in ("BACKWARD", "FORWARD")]
    return _compare_here(registry, old, new) or [_ask(registry, old, new)]


def _compare_here(registry: Registry, old: Stored, new: Stored) -> list[Verdict] | None:
    """None where the extra is missing, or a text is one that only its registry can read."""
    try:
        from barnabas.schemas.formats import all_formats
        from barnabas.schemas.schema import SchemaFault
    except ImportError:
        return None
    formats = all_formats()
    try:
        parsed = [
            formats.parse(one["schemaType"], one["schema"], resolved_references(registry, one))
            for one in (old, new)
        ]
    except SchemaFault:
        return None
    before, after = parsed
    found = {
        "BACKWARD": after.incompatibilities(before),
        "FORWARD": before.incompatibilities(after),
    }
    verdicts = []
    for level, incompatibilities in found.items():
        reasons = []
        for one in incompatibilities:
            at = f" (at '{one.path}')" if one.path and one.path not in one.description else ""
            reasons.append(Reason(one.description + at, one.kind, one.details or None))
        verdicts.append(Verdict(level, reasons))
    return verdicts


def resolved_references(registry: Registry, schema: Stored) -> list["ResolvedReference"]:
    """All that a schema refers to, what others need first, each name once."""
    from barnabas.registry.subjects import qualified_from
    from barnabas.schemas.schema import Reference, ResolvedReference

    resolved: dict[str, ResolvedReference] = {}

    def add(parent: Stored) -> None:
        for one in parent.get("references") or ():
            if one["name"] in resolved:
                continue
            subject = qualified_from(parent.get("subject", ""), one["subject"])
            target = get_version(registry, subject, one["version"], deleted=True)
            add(target)
            inner = tuple(
                Reference(item["name"], item["subject"], item["version"])
                for item in target.get("references") or ()
            )
            resolved[one["name"]] = ResolvedReference(
                one["name"], subject, one["version"], target["schema"], inner
            )

    add(schema)
    return list(resolved.values())


def _ask(registry: Registry, old: Stored, new: Stored) -> Verdict:
    subject = old["subject"]
    body = {name: new[name] for name in ("schemaType", "schema", "references") if name in new}
    path = ("compatibility", "subjects", subject, "versions", old["version"])
    answer = registry.ask("POST", path, {"verbose": True}, body)
    level = registry.get("config", subject, defaultToGlobal=True)["compatibilityLevel"]
    if answer["is_compatible"]:
        return Verdict(level, [])
    reasons = read_reasons(answer.get("messages") or ())
    return Verdict(level, reasons or [Reason("is not compatible")])
