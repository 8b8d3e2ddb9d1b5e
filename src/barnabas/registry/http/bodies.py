"""Bodies of requests: JSON, read as mildly as Confluent reads it.

Unknown fields are skipped, numbers stand for texts and texts for numbers. What cannot be read is
a RegistryError 400 that names the field; a body that is not there is 422.
"""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

from barnabas.registry import errors
from barnabas.registry.contracts import Metadata, RuleSet
from barnabas.registry.core.decision import INT_MAX
from barnabas.registry.core.requests import SchemaRequest, TagChange, TagRequest
from barnabas.registry.errors import RegistryError
from barnabas.registry.http.answers import plain_fault
from barnabas.schemas.schema import Reference, TaggedEntity
from barnabas.web.bodies import parse_json

Part = TypeVar("Part")

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ENTITY_KINDS = {"sr_record": "SR_RECORD", "sr_field": "SR_FIELD"}


def _bad(message: str) -> RegistryError:
    return plain_fault(HTTPStatus.BAD_REQUEST, message)


def read_object(data: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises RegistryError 400, and 422 if it is empty."""
    body = None
    if data.strip():
        try:
            body = parse_json(data)
        except ValueError as fault:
            raise _bad(f"the body is not JSON: {fault}") from fault
    if body is None:
        raise RegistryError(errors.UNPROCESSABLE, "the body may not be null")
    if not isinstance(body, dict):
        raise _bad("the body is not a JSON object")
    if _SURROGATE.search(data):
        _check_surrogates(body)
    return body


def _check_surrogates(body: dict[str, Any]) -> None:
    """Refuse halves of surrogate pairs, which no record can hold. The schema says it by itself."""
    for name, value in body.items():
        if name == "schema":
            continue
        try:
            json.dumps({name: value}, ensure_ascii=False).encode()
        except UnicodeEncodeError as fault:
            raise _bad(f"{name!a} has half a surrogate pair") from fault


def text(body: dict[str, Any], name: str, place: str = "") -> str | None:
    """A field that is a text. Raises RegistryError 400."""
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise _bad(f"{place}{name} is not a text")


def _number(body: dict[str, Any], name: str, place: str = "") -> int | None:
    value = body.get(name)
    if value is None or value == "":
        return None
    try:
        number = int(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or isinstance(value, bool) or not -INT_MAX - 1 <= number <= INT_MAX:
        raise _bad(f"{place}{name} is not a number of 32 bits")
    return number


def flag(body: dict[str, Any], name: str) -> bool:
    """A field that is true or false; false where it is missing. Raises RegistryError 400."""
    value = body.get(name)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if value is None or isinstance(value, bool):
        return value is True
    raise _bad(f"{name} is neither true nor false")


def _list(body: dict[str, Any], name: str, place: str = "") -> list[Any]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _bad(f"{place}{name} is not a list")
    return value


def _part(body: dict[str, Any], name: str, read: Callable[[Any, str], Part]) -> Part | None:
    value = body.get(name)
    if value is None:
        return None
    try:
        return read(value, name)
    except ValueError as fault:
        raise _bad(str(fault)) from fault


def objects(body: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a list, each with its place. Raises RegistryError 400."""
    named = []
    for position, item in enumerate(_list(body, name)):
        if not isinstance(item, dict):
            raise _bad(f"{name}[{position}] is not an object")
        named.append((f"{name}[{position}].", item))
    return named


def _references(body: dict[str, Any]) -> tuple[Reference, ...]:
    references = []
    for place, item in objects(body, "references"):
        version = _number(item, "version", place)
        if version is None:
            raise RegistryError(errors.UNPROCESSABLE, f"{place}version may not be null")
        references.append(
            Reference(text(item, "name", place) or "", text(item, "subject", place) or "", version)
        )
    return tuple(references)


def _tag_changes(body: dict[str, Any], name: str) -> tuple[TagChange, ...]:
    changes = []
    for place, item in objects(body, name):
        entity = item.get("schemaEntity")
        if not isinstance(entity, dict):
            raise _bad(f"{place}schemaEntity is not an object")
        path = text(entity, "entityPath", f"{place}schemaEntity.")
        kind = _ENTITY_KINDS.get(str(entity.get("entityType")).lower())
        if path is None or kind is None:
            raise _bad(
                f"{place}schemaEntity needs an entityPath, and sr_record or sr_field as entityType"
            )
        tags = _texts(item, "tags", place)
        changes.append(TagChange(TaggedEntity(kind, path.removeprefix(".")), frozenset(tags)))
    return tuple(changes)


def _texts(body: dict[str, Any], name: str, place: str = "") -> tuple[str, ...]:
    texts = _list(body, name, place)
    if not all(isinstance(item, str) for item in texts):
        raise _bad(f"{place}{name} has something else than texts")
    return tuple(texts)


def schema_request(body: dict[str, Any]) -> SchemaRequest:
    """A schema to register, to look up or to check. Raises RegistryError 400, 422."""
    schema_type = text(body, "schemaType")
    return SchemaRequest(
        text=text(body, "schema"),
        schema_type="AVRO" if schema_type is None else schema_type,
        references=_references(body),
        metadata=_part(body, "metadata", Metadata.from_json),
        rule_set=_part(body, "ruleSet", RuleSet.from_json),
        version=_number(body, "version"),
        id=_number(body, "id"),
        tags_to_add=_tag_changes(body, "schemaTagsToAdd"),
        tags_to_remove=_tag_changes(body, "schemaTagsToRemove"),
        propagate_tags=flag(body, "propagateSchemaTags"),
    )


def tag_request(body: dict[str, Any]) -> TagRequest:
    """Changes of tags and rules. Raises RegistryError 400, and 42210 for rules at odds."""
    rule_set = _part(body, "ruleSet", RuleSet.from_json)
    to_merge = _part(body, "rulesToMerge", RuleSet.from_json)
    to_remove = _texts(body, "rulesToRemove")
    if rule_set is not None and (to_merge is not None or body.get("rulesToRemove") is not None):
        raise RegistryError(
            errors.INVALID_RULE_SET, "a ruleSet excludes rulesToMerge and rulesToRemove"
        )
    fault = None if to_merge is None else to_merge.fault()
    if fault:
        raise RegistryError(errors.INVALID_RULE_SET, f"rulesToMerge: {fault}")
    return TagRequest(
        new_version=_number(body, "newVersion"),
        tags_to_add=_tag_changes(body, "tagsToAdd"),
        tags_to_remove=_tag_changes(body, "tagsToRemove"),
        metadata=_part(body, "metadata", Metadata.from_json),
        rule_set=rule_set,
        rules_to_merge=to_merge,
        rules_to_remove=to_remove,
    )
