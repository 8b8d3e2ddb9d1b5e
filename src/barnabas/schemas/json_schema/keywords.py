"""The requirements of each draft's metaschema on the keywords, as tables.

A validator that runs the metaschema takes many times as long as the rest of parsing (those of the
newest drafts are spread over eight documents with dynamic references to one another). A test
compares these tables with the metaschemas: both refuse the same schemas.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from barnabas.schemas.json_schema.dialect import Draft
from barnabas.schemas.json_schema.patterns import fault_of
from barnabas.schemas.json_schema.text import is_integer, is_number, value_key
from barnabas.schemas.schema import SchemaFault

_Path = tuple[str, ...]
_Check = Callable[["_Checker", Any, _Path], None]

_TYPES = frozenset(["array", "boolean", "integer", "null", "number", "object", "string"])
_ANCHOR_2019 = re.compile(r"^[A-Za-z][-A-Za-z0-9.:_]*$")
_ANCHOR_2020 = re.compile(r"^[A-Za-z_][-A-Za-z0-9._]*$")
_ID_WITHOUT_FRAGMENT = re.compile(r"^[^#]*#?$")


def check(document: Any, draft: Draft) -> None:
    """Check a document by its draft. Raises SchemaFault, which names the place."""
    checker = _Checker(draft)
    checker.check(document, ())


def pointer(path: _Path) -> str:
    """A path as it is written in messages: `#/properties/a~1b`."""
    return "#" + "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


class _Checker:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.table = _table(draft)

    def check(self, schema: Any, path: _Path) -> None:
        if isinstance(schema, bool):
            if self.draft is Draft.DRAFT_4:
                _fail(path, "must be an object: draft 4 has no boolean schemas")
            return
        if not isinstance(schema, dict):
            _fail(path, "must be a schema: an object or a boolean")
        table = self.table
        for keyword, value in schema.items():
            rule = table.get(keyword)
            if rule is not None:
                rule(self, value, (*path, keyword))
        if self.draft is Draft.DRAFT_4:
            for limit, needed in (
                ("exclusiveMaximum", "maximum"),
                ("exclusiveMinimum", "minimum"),
            ):
                if limit in schema and needed not in schema:
                    _fail((*path, limit), f"needs {needed} beside it")


def _fail(path: _Path, what: str) -> None:
    raise SchemaFault(f"{pointer(path)} {what}")


def _schema(checker: _Checker, value: Any, path: _Path) -> None:
    checker.check(value, path)


def _schema_or_boolean(checker: _Checker, value: Any, path: _Path) -> None:
    if not isinstance(value, bool):
        checker.check(value, path)


def _schemas(checker: _Checker, value: Any, path: _Path) -> None:
    if not isinstance(value, list) or not value:
        _fail(path, "must be a list of schemas, at least one")
    for index, item in enumerate(value):
        checker.check(item, (*path, str(index)))


def _schema_or_schemas(checker: _Checker, value: Any, path: _Path) -> None:
    if isinstance(value, list):
        _schemas(checker, value, path)
    else:
        checker.check(value, path)


def _members(checker: _Checker, value: Any, path: _Path) -> None:
    _object(checker, value, path)
    for name, item in value.items():
        checker.check(item, (*path, name))


def _pattern_members(checker: _Checker, value: Any, path: _Path) -> None:
    _members(checker, value, path)
    for name in value:
        _pattern(checker, name, (*path, name))


def _dependencies(checker: _Checker, value: Any, path: _Path) -> None:
    _object(checker, value, path)
    for name, item in value.items():
        if isinstance(item, list):
            _names(checker, item, (*path, name))
        else:
            checker.check(item, (*path, name))


def _name_lists(checker: _Checker, value: Any, path: _Path) -> None:
    _object(checker, value, path)
    for name, item in value.items():
        _names(checker, item, (*path, name))


def _names(checker: _Checker, value: Any, path: _Path) -> None:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        _fail(path, "must be a list of strings")
    if len(set(value)) != len(value):
        _fail(path, "has a string twice")
    if checker.draft is Draft.DRAFT_4 and not value:
        _fail(path, "must not be empty in draft 4")


def _type(checker: _Checker, value: Any, path: _Path) -> None:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in _TYPES:
            _fail(path, f"has no type of JSON Schema: {str(name)[:40]!r}")
    if not names or len(set(names)) != len(names):
        _fail(path, "must have at least one type, and none twice")


def _string(checker: _Checker, value: Any, path: _Path) -> None:
    if not isinstance(value, str):
        _fail(path, "must be a string")


def _matching(pattern: re.Pattern[str]) -> _Check:
    def rule(checker: _Checker, value: Any, path: _Path) -> None:
        _string(checker, value, path)
        if not pattern.match(value):
            _fail(path, f"may not be {value[:80]!r}")

    return rule


def _pattern(checker: _Checker, value: Any, path: _Path) -> None:
    _string(checker, value, path)
    fault = fault_of(value)
    if fault is not None:
        _fail(path, f"is not a regular expression: it {fault}")


def _boolean(checker: _Checker, value: Any, path: _Path) -> None:
    if not isinstance(value, bool):
        _fail(path, "must be true or false")


def _number(checker: _Checker, value: Any, path: _Path) -> None:
    if not is_number(value):
        _fail(path, "must be a number")


def _positive(checker: _Checker, value: Any, path: _Path) -> None:
    if not is_number(value) or value <= 0:
        _fail(path, "must be a number greater than 0")


def _count(checker: _Checker, value: Any, path: _Path) -> None:
    is_whole = is_integer(value)
    if checker.draft is Draft.DRAFT_4:
        is_whole = is_whole and isinstance(value, int)  # 1.0 is none there
    if not is_whole or value < 0:
        _fail(path, "must be a whole number, 0 or greater")


def _array(checker: _Checker, value: Any, path: _Path) -> None:
    if not isinstance(value, list):
        _fail(path, "must be a list")


def _distinct(checker: _Checker, value: Any, path: _Path) -> None:
    if not isinstance(value, list) or not value:
        _fail(path, "must be a list, of at least one value")
    if len({value_key(item) for item in value}) != len(value):
        _fail(path, "has a value twice")


def _object(checker: _Checker, value: Any, path: _Path) -> None:
    if not isinstance(value, dict):
        _fail(path, "must be an object")


def _vocabulary(checker: _Checker, value: Any, path: _Path) -> None:
    _object(checker, value, path)
    for name, item in value.items():
        _boolean(checker, item, (*path, name))


_IN_ALL: dict[str, _Check] = {
    "$ref": _string,
    "$schema": _string,
    "title": _string,
    "description": _string,
    "multipleOf": _positive,
    "maximum": _number,
    "minimum": _number,
    "maxLength": _count,
    "minLength": _count,
    "pattern": _pattern,
    "maxItems": _count,
    "minItems": _count,
    "uniqueItems": _boolean,
    "maxProperties": _count,
    "minProperties": _count,
    "required": _names,
    "properties": _members,
    "patternProperties": _pattern_members,
    "additionalProperties": _schema,
    "definitions": _members,
    "type": _type,
    "allOf": _schemas,
    "anyOf": _schemas,
    "oneOf": _schemas,
    "not": _schema,
    "format": _string,
    "items": _schema_or_schemas,
    "additionalItems": _schema,
    "dependencies": _dependencies,
}
_FROM_DRAFT_6: dict[str, _Check] = {
    "$id": _string,
    "exclusiveMaximum": _number,
    "exclusiveMinimum": _number,
    "contains": _schema,
    "propertyNames": _schema,
    "examples": _array,
    "enum": _array,
}
_FROM_DRAFT_7: dict[str, _Check] = {
    "$comment": _string,
    "readOnly": _boolean,
    "if": _schema,
    "then": _schema,
    "else": _schema,
    "contentMediaType": _string,
    "contentEncoding": _string,
}
_FROM_2019_09: dict[str, _Check] = {
    "$id": _matching(_ID_WITHOUT_FRAGMENT),
    "$anchor": _matching(_ANCHOR_2019),
    "$recursiveRef": _string,
    "$recursiveAnchor": _boolean,
    "$vocabulary": _vocabulary,
    "$defs": _members,
    "deprecated": _boolean,
    "writeOnly": _boolean,
    "maxContains": _count,
    "minContains": _count,
    "unevaluatedItems": _schema,
    "unevaluatedProperties": _schema,
    "dependentSchemas": _members,
    "dependentRequired": _name_lists,
    "contentSchema": _schema,
}


@cache
def _table(draft: Draft) -> dict[str, _Check]:
    table = dict(_IN_ALL)
    if draft is Draft.DRAFT_4:
        return table | {
            "id": _string,
            "enum": _distinct,
            "exclusiveMaximum": _boolean,
            "exclusiveMinimum": _boolean,
            "additionalProperties": _schema_or_boolean,
            "additionalItems": _schema_or_boolean,
        }
    table |= _FROM_DRAFT_6
    if draft is Draft.DRAFT_6:
        return table
    table |= _FROM_DRAFT_7
    if not draft.is_modern:
        return table
    table |= _FROM_2019_09
    if draft is Draft.DRAFT_2020_12:
        del table["additionalItems"]
        anchor = _matching(_ANCHOR_2020)
        table |= {
            "$anchor": anchor,
            "$dynamicAnchor": anchor,
            "$dynamicRef": _string,
            "$recursiveAnchor": anchor,
            "$recursiveRef": _matching(re.compile("")),
            "items": _schema,
            "prefixItems": _schemas,
        }
    return table
