"""Avro schemas reduced for the codec: full names, defined once, no logical types or properties.

The converters handle logical types and properties; the codec sees only numbers and bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from barnabas.schemas.data.errors import DataError
from barnabas.schemas.registry_client import StoredSchema

NAMED: Final = ("record", "enum", "fixed", "error")
_PRIMITIVES: Final = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)
_DEPTH_MAX: Final = 200


class AvroNames:
    """An Avro schema with all that it refers to: each named type by its full name."""

    def __init__(self, stored: StoredSchema) -> None:
        self._has_defaults = True
        self._elsewhere: set[str] = set()
        """The short names that a namespace has."""
        self.types: dict[str, dict[str, Any]] = {}
        try:
            for _, text in stored.references:
                self._resolved(json.loads(text), "", 0)
            self.root = self._resolved(json.loads(stored.text), "", 0)
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise DataError(f"Schema {stored.id} is not an Avro schema: {error}") from error

    def _resolved(self, avro: Any, namespace: str, depth: int) -> Any:
        """The schema with full names in the place of inner definitions, which are kept."""
        if depth > _DEPTH_MAX:
            raise DataError("The Avro schema is nested too deeply")
        if isinstance(avro, str):
            if avro in _PRIMITIVES:
                return avro
            full = f"{namespace}.{avro}" if namespace and "." not in avro else avro
            return full if full in self.types else avro
        if isinstance(avro, list):
            return [self._resolved(branch, namespace, depth + 1) for branch in avro]
        kind = avro["type"]
        if kind == "null":
            return kind
        if not isinstance(kind, str):
            return self._resolved(kind, namespace, depth + 1)
        avro = dict(avro)
        if kind in NAMED:
            return self._define(avro, namespace, depth)
        for inner in ("items", "values"):
            if inner in avro:
                avro[inner] = self._resolved(avro[inner], namespace, depth + 1)
        if kind not in ("array", "map"):
            known = self._resolved(kind, namespace, depth + 1)
            if known != kind or kind in self.types:
                return known
        return avro

    def _define(self, avro: dict[str, Any], namespace: str, depth: int) -> str:
        name = str(avro["name"])
        if "." not in name:
            own = avro.get("namespace", namespace)
            name = f"{own}.{name}" if own else name
        known = self.types.get(name)
        self.types[name] = avro
        own = name.rpartition(".")[0]
        if "fields" in avro:
            avro["fields"] = [
                {**field, "type": self._resolved(field["type"], own, depth + 1)}
                for field in avro["fields"]
            ]
        if known is not None and known != avro:
            raise DataError(f"Can't redefine: {name}")
        return name

    def is_recursive(self) -> bool:
        """Return whether a record contains itself. Raises DataError for one that has no end."""
        records = {name: one["fields"] for name, one in self.types.items() if "fields" in one}
        always = {
            name: [f["type"] for f in fields if isinstance(f["type"], str) and f["type"] in records]
            for name, fields in records.items()
        }
        if _has_cycle(always):
            raise DataError("A record of the Avro schema contains itself always, without end")
        return _has_cycle(
            {
                name: [one for field in fields for one in self._within(field["type"])]
                for name, fields in records.items()
            }
        )

    def _within(self, avro: Any) -> Iterator[str]:
        """The named types that a field of this type may hold itself."""
        if isinstance(avro, list):
            for branch in avro:
                yield from self._within(branch)
        elif isinstance(avro, dict):
            yield from self._within(avro.get("items", avro.get("values")))
        elif avro in self.types:
            yield avro

    def definition(self, avro: Any) -> tuple[str | None, Any]:
        """The full name of a named type and what it is; None and the schema for others."""
        if isinstance(avro, str) and avro in self.types:
            return avro, self.types[avro]
        return None, avro

    def plain(self, *, has_defaults: bool = True) -> Any:
        """The schema for the codec; only who writes by another's schema needs its defaults."""
        self._has_defaults = has_defaults
        self._elsewhere = {name.rpartition(".")[2] for name in self.types if "." in name}
        return self._plain(self.root, set())

    def _plain(self, avro: Any, defined: set[str]) -> Any:
        name, definition = self.definition(avro)
        if name is not None:
            if name in defined:
                return name
            defined.add(name)
            made = {"type": definition["type"], "name": name}
            if name in self._elsewhere:
                made["namespace"] = ""  # it is not the one of the namespace around it
            if definition["type"] == "enum":
                made["symbols"] = definition["symbols"]
            elif definition["type"] == "fixed":
                made["size"] = definition["size"]
            else:
                made["fields"] = [self._plain_field(f, defined) for f in definition["fields"]]
            return made
        if isinstance(avro, list):
            return [self._plain(branch, defined) for branch in avro]
        if isinstance(avro, str):
            return avro
        if avro["type"] == "array":
            return {"type": "array", "items": self._plain(avro["items"], defined)}
        if avro["type"] == "map":
            return {"type": "map", "values": self._plain(avro["values"], defined)}
        return avro["type"]

    def _plain_field(self, field: dict[str, Any], defined: set[str]) -> dict[str, Any]:
        made = {"name": field["name"], "type": self._plain(field["type"], defined)}
        if self._has_defaults and "default" in field:
            made["default"] = field["default"]
        return made


def _has_cycle(graph: Mapping[str, Iterable[str]]) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False
