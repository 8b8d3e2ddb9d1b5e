"""Schemas as JSON, in Confluent's shapes, and the encoded answers that are kept."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from barnabas.registry import subjects
from barnabas.registry.core.content import parsed
from barnabas.registry.core.decision import View
from barnabas.registry.core.lookup import formatted, schema_json
from barnabas.registry.http.answers import json_bytes
from barnabas.registry.store.records import SchemaValue
from barnabas.schemas.schema import TaggedEntity

ENCODED_BYTES_MAX = 32 << 20
"""The number of bytes of encoded answers that are cached; the oldest go first."""

_BY_ID_FIELDS = (
    "subject",
    "version",
    "guid",
    "schemaType",
    "schema",
    "references",
    "metadata",
    "ruleSet",
    "schemaTags",
    "maxId",
    "ts",
    "deleted",
)
_LAST_FIELDS: Sequence[str] = ("ts", "deleted")
_REGISTERED_FIELDS = (
    "id",
    "version",
    "guid",
    "schemaType",
    "references",
    "metadata",
    "ruleSet",
    "schema",
    "ts",
    "deleted",
)


def version_json(
    view: View,
    value: SchemaValue,
    *,
    form: str = "",
    qualifies: bool = False,
    tags: Collection[str] = (),
) -> dict[str, Any]:
    """A version of a subject: its text in a form, its references qualified, its tags listed.

    Raises RegistryError 42201, 422.
    """
    body = schema_json(value)
    if form.strip():
        body["schema"] = formatted(view, value, form)
    if qualifies and subjects.context_of(value.subject) != subjects.DEFAULT_CONTEXT:
        for reference in body.get("references", ()):
            reference["subject"] = subjects.qualified_from(value.subject, reference["subject"])
    if tags:
        body = _with_tags(body, parsed(view, value).tags(), tags)
    return body


def _with_tags(
    body: dict[str, Any], tags: Mapping[TaggedEntity, frozenset[str]], wanted: Collection[str]
) -> dict[str, Any]:
    listed = [
        {
            "schemaEntity": {"entityPath": entity.name, "entityType": entity.kind.lower()},
            "tags": sorted(names),
        }
        for entity, names in tags.items()
        if "*" in wanted or not names.isdisjoint(wanted)
    ]
    if not listed:
        return body
    last = {name: body.pop(name) for name in _LAST_FIELDS if name in body}
    return {**body, "schemaTags": listed, **last}


def by_id_json(body: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A version as `/schemas/ids` shows it: all but its id."""
    body = {**body, **more}
    return {name: body[name] for name in _BY_ID_FIELDS if name in body}


def registered_json(view: View, value: SchemaValue, form: str = "") -> dict[str, Any]:
    """A registration's answer for the version that it made or found."""
    body = version_json(view, value, form=form)
    if value.timestamp_ms is None:
        del body["deleted"]
    return {name: body[name] for name in _REGISTERED_FIELDS if name in body}


class EncodedSchemas:
    """Answers of the two reads that clients make most, encoded once for each stored version.

    Entries of the state are never changed, only replaced: an answer holds for as long as the
    state has the very entry that it was made of.
    """

    __slots__ = ("_by_id", "_bytes", "_versions")

    def __init__(self) -> None:
        self._versions: dict[tuple[str, int], tuple[SchemaValue, bytes]] = {}
        self._by_id: dict[tuple[str, int], tuple[SchemaValue, bytes]] = {}
        self._bytes = 0

    def version(self, value: SchemaValue) -> bytes:
        """The answer of `/subjects/{subject}/versions/{version}`."""
        encoded = self._versions.get((value.subject, value.version))
        if encoded is not None and encoded[0] is value:
            return encoded[1]
        return self._keep(self._versions, value, json_bytes(schema_json(value)))

    def by_id(self, value: SchemaValue) -> bytes:
        """The answer of `/schemas/ids/{id}`."""
        encoded = self._by_id.get((value.subject, value.version))
        if encoded is not None and encoded[0] is value:
            return encoded[1]
        return self._keep(self._by_id, value, json_bytes(by_id_json(schema_json(value))))

    def _keep(
        self,
        table: dict[tuple[str, int], tuple[SchemaValue, bytes]],
        value: SchemaValue,
        encoded: bytes,
    ) -> bytes:
        if len(encoded) > ENCODED_BYTES_MAX // 8:
            return encoded
        key = (value.subject, value.version)
        self._forget(table, key)
        while self._bytes + len(encoded) > ENCODED_BYTES_MAX:
            fuller = max(self._versions, self._by_id, key=len)
            self._forget(fuller, next(iter(fuller)))
        table[key] = (value, encoded)
        self._bytes += len(encoded)
        return encoded

    def _forget(
        self, table: dict[tuple[str, int], tuple[SchemaValue, bytes]], key: tuple[str, int]
    ) -> None:
        old = table.pop(key, None)
        if old is not None:
            self._bytes -= len(old[1])
