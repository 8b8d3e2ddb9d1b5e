"""Reads of one schema: by subject and version, by id, by content, by metadata."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from barnabas.registry import errors, subjects
from barnabas.registry.contracts import merged_metadata, merged_rule_set
from barnabas.registry.core.content import Content, can_stand_for, parsed, read_content
from barnabas.registry.core.decision import INT_MAX, View
from barnabas.registry.core.modes import IMPORTING, mode_in_scope
from barnabas.registry.core.requests import SchemaRequest
from barnabas.registry.core.settings import config_in_scope
from barnabas.registry.errors import RegistryError
from barnabas.registry.store.records import ConfigValue, SchemaValue

LOOKBACK_MAX = 50
"""The number of a subject's latest versions that are compared with a schema by meaning.

Older ones are found by the hash of their content only, which finds all that this registry wrote.
"""


def version_number(version: str | int) -> int:
    """Read a version: 1 and up, or -1 for 'latest' and '-1'. Raises RegistryError 42202."""
    if isinstance(version, str):
        text = version.strip()
        if text.lower() == "latest":
            return -1
        if not text.removeprefix("-").removeprefix("+").isascii():
            raise errors.invalid_version(version)
        try:
            number = int(text) if "_" not in text else 0
        except ValueError as fault:
            raise errors.invalid_version(version) from fault
    else:
        number = version
    if number != -1 and not 0 < number <= INT_MAX:
        raise errors.invalid_version(version)
    return number


def guid(schema: SchemaValue) -> str:
    """The name of a schema's content, the same in every registry: a UUID out of its hash."""
    return str(uuid.UUID(bytes=schema.content_hash()))


def schema_json(schema: SchemaValue) -> dict[str, Any]:
    """A version as JSON, with Confluent's fields in its order; empty ones are left out."""
    body: dict[str, Any] = {
        "subject": schema.subject,
        "version": schema.version,
        "id": schema.id,
        "guid": guid(schema),
        "schemaType": schema.schema_type,
    }
    if schema.references:
        body["references"] = [
            {"name": ref.name, "subject": ref.subject, "version": ref.version}
            for ref in schema.references
        ]
    if schema.metadata is not None:
        body["metadata"] = schema.metadata.to_json()
    if schema.rule_set is not None:
        body["ruleSet"] = schema.rule_set.to_json()
    body["schema"] = schema.text
    if schema.timestamp_ms is not None:
        body["ts"] = schema.timestamp_ms
    body["deleted"] = schema.deleted
    return body


def get_version(
    view: View, subject: str, version: str | int, *, deleted: bool = False
) -> SchemaValue:
    """A version of a subject; one without a context is sought in all of them, its own first.

    Raises RegistryError 40401, 40402, 42202.
    """
    name = subjects.normal(subject)
    number = version_number(version)
    for place in _in_all_contexts(view, name):
        stored = _find(view, place, number, deleted)
        if stored is not None:
            return stored
    raise missing_version(view, name, number, deleted)


def own_version(view: View, subject: str, number: int, *, deleted: bool = False) -> SchemaValue:
    """A version of exactly this subject; -1 is the latest live one. Raises 40401, 40402."""
    version = _find(view, subject, number, deleted)
    if version is None:
        raise missing_version(view, subject, number, deleted)
    return version


def missing_version(view: View, subject: str, number: int, deleted: bool) -> RegistryError:
    """The error for a version that a subject does not have."""
    if view.state.has_subjects(subject, "all" if deleted else "live"):
        return errors.version_not_found(number)
    return errors.subject_not_found(subject)


def _find(view: View, subject: str, number: int, deleted: bool) -> SchemaValue | None:
    if number == -1:
        return view.state.latest(subject)
    version = view.state.version(subject, number)
    return None if version is None or (version.deleted and not deleted) else version


def _in_all_contexts(view: View, subject: str) -> Iterator[str]:
    yield subject
    if subjects.context_of(subject) == subjects.DEFAULT_CONTEXT:
        for context in view.state.contexts():
            if context != subjects.DEFAULT_CONTEXT:
                yield subjects.context_prefix(context) + subject


def look_up(
    view: View,
    subject: str,
    request: SchemaRequest,
    *,
    normalize: bool = False,
    deleted: bool = False,
) -> SchemaValue:
    """The version of a subject that has a schema. Raises RegistryError 40401, 40403, 42201.

    A subject without a context is sought in all of them, its own first.
    """
    name = subjects.normal(subject)
    for place in _in_all_contexts(view, name):
        try:
            version = _look_up_in(view, place, request, normalize, deleted)
        except RegistryError:
            if place == name:
                raise
            continue
        if version is not None:
            return version
    raise _without_schema(view, name, deleted)


def _without_schema(view: View, name: str, deleted: bool) -> RegistryError:
    if view.state.has_subjects(name, "all" if deleted else "live"):
        return errors.schema_not_found()
    return errors.subject_not_found(name)


def _look_up_in(
    view: View, subject: str, request: SchemaRequest, normalize: bool, deleted: bool
) -> SchemaValue | None:
    config = config_in_scope(view, subject)
    normal = normalizes(view, subject, config, normalize)
    content = read_content(view, subject, request, normalize=normal, is_new=False)
    if content is None:
        return None
    version = find_content(view, subject, content, deleted=deleted)
    previous = view.state.latest(subject)
    if version is not None or previous is None:
        return version
    completed = with_contracts(content, config, previous)
    if completed == content:
        return None
    return find_content(view, subject, completed, deleted=deleted)


def normalizes(view: View, subject: str, config: ConfigValue, asked: bool) -> bool:
    """Whether schemas are normalised: on request or by configuration, but never in an import."""
    wanted = asked or config.normalize is True
    return wanted and mode_in_scope(view, subject) not in IMPORTING


def with_contracts(content: Content, config: ConfigValue, previous: SchemaValue | None) -> Content:
    """Content with the metadata and rules that it gets from configuration and the last version."""
    metadata, rule_set = content.metadata, content.rule_set
    if previous is not None:
        metadata = previous.metadata if metadata is None else metadata
        rule_set = previous.rule_set if rule_set is None else rule_set
    metadata = merged_metadata(
        merged_metadata(config.default_metadata, metadata), config.override_metadata
    )
    rule_set = merged_rule_set(
        merged_rule_set(config.default_rule_set, rule_set), config.override_rule_set
    )
    return replace(content, metadata=metadata, rule_set=rule_set)


def find_content(
    view: View, subject: str, content: Content, *, deleted: bool = False, latest_only: bool = False
) -> SchemaValue | None:
    """The version of exactly this subject that has a content, or one that can stand for it."""
    if latest_only:
        latest = view.state.latest(subject)
        return latest if latest is not None and can_stand_for(view, content, latest) else None
    by_hash = find_by_hash(view, subject, content, deleted=deleted)
    if by_hash is not None:
        return by_hash
    versions = view.state.versions(subject, "all" if deleted else "live")
    for value in reversed(versions[-LOOKBACK_MAX:]):
        if can_stand_for(view, content, value):
            return value
    return None


def find_by_hash(
    view: View, subject: str, content: Content, *, deleted: bool = False
) -> SchemaValue | None:
    """The highest version of exactly this subject that has a content; a live one if there is."""
    context = subjects.context_of(subject)
    versions = [
        value
        for schema_id in view.state.ids_of(context, content.hash())
        for value in view.state.by_id(context, schema_id)
        if value.subject == subject
        and value.schema_type == content.schema_type
        and (deleted or not value.deleted)
    ]
    return max(versions, key=lambda value: (not value.deleted, value.version), default=None)


def latest_with_metadata(
    view: View, subject: str, properties: Mapping[str, str], *, deleted: bool = False
) -> SchemaValue:
    """The highest version whose metadata has these properties. Raises 40401, 40403."""
    name = subjects.normal(subject)
    wanted = properties.items()
    for value in reversed(view.state.versions(name, "all" if deleted else "live")):
        if value.metadata is not None and wanted <= value.metadata.properties.items():
            return value
    raise _without_schema(view, name, deleted)


def get_by_id(view: View, schema_id: int, subject: str | None = None) -> SchemaValue:
    """The schema of an id, soft-deleted too; `subject` names a context or a subject in one.

    A subject without a context is sought in all of them; if none has it under this id, the
    schema of the id in the default context is meant. Raises RegistryError 40403.
    """
    wanted = subjects.parse(subject or "")
    for place in _in_all_contexts(view, str(wanted)) if wanted.subject else ():
        for value in view.state.by_id(subjects.context_of(place), schema_id):
            if value.subject == place:
                return value
    if not wanted.subject or wanted.context == subjects.DEFAULT_CONTEXT:
        version = view.state.any_by_id(wanted.context, schema_id)
        if version is not None:
            return version
    raise errors.schema_not_found(schema_id)


@dataclass(frozen=True, slots=True, order=True)
class ContextId:
    """An id and the context in which it is valid."""

    context: str
    id: int


def ids_of_guid(view: View, text: str) -> list[ContextId]:
    """The ids that a guid has in all contexts, sorted; none if it is not known."""
    try:
        content_hash = uuid.UUID(text).bytes
    except ValueError:
        return []
    return [
        ContextId(context, ids[-1])
        for context in sorted(view.state.contexts())
        if (ids := view.state.ids_of(context, content_hash))
    ]


def get_by_guid(view: View, text: str) -> SchemaValue:
    """The schema of a guid, in any context. Raises RegistryError 40403."""
    for place in ids_of_guid(view, text):
        version = view.state.any_by_id(place.context, place.id)
        if version is not None:
            return version
    raise errors.schema_not_found(text)


def formatted(view: View, schema: SchemaValue, form: str) -> str:
    """The text of a stored schema in a form; as it is stored for ''. Raises RegistryError 422xx."""
    if not form.strip():
        return schema.text
    try:
        return parsed(view, schema).formatted(form.strip())
    except ValueError as fault:
        raise RegistryError(
            errors.UNPROCESSABLE, f"{schema.schema_type} schemas have no form {form!r}"
        ) from fault
