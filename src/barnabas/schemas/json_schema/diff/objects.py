"""Rules for objects.

By its content model an object is open (properties that nobody names may have any value), closed
(there may be none) or partly open (a pattern or a schema says what they may be). A writer with an
open model may have written anything under a name that the reader gives a schema to.
"""

from barnabas.schemas.json_schema.diff.changes import Changes, Steps, inside
from barnabas.schemas.json_schema.model.kinds import (
    EmptySchema,
    FalseSchema,
    ObjectSchema,
    Schema,
)
from barnabas.schemas.json_schema.patterns import find


def compare_objects(changes: Changes, old: ObjectSchema, new: ObjectSchema) -> Steps:
    """All rules for objects."""
    _compare_required(changes, old, new)
    for name in dict.fromkeys([*old.properties, *new.properties]):
        path = ("properties", name)
        was, now = old.properties.get(name), new.properties.get(name)
        if was is not None and now is not None:
            yield from inside(changes, was, now, *path)
        elif was is not None:
            yield from _compare_removed(changes, was, new, name)
        elif now is not None:
            yield from _compare_added(changes, old, now, new, name)
    yield from _compare_dependencies(changes, old, new)
    if old.allows_rest != new.allows_rest:
        how = "ADDED" if new.allows_rest else "REMOVED"
        changes.add(f"ADDITIONAL_PROPERTIES_{how}", "additionalProperties")
    elif old.rest is None or new.rest is None:
        if old.rest is not new.rest:
            how = "NARROWED" if old.rest is None else "EXTENDED"
            changes.add(f"ADDITIONAL_PROPERTIES_{how}", "additionalProperties")
    else:
        yield from inside(changes, old.rest, new.rest, "additionalProperties")
    yield from compare_unevaluated(
        changes, old.unevaluated, new.unevaluated, "unevaluatedProperties"
    )
    changes.limit("maxProperties", "MAX_PROPERTIES", old.max_properties, new.max_properties)
    changes.limit("minProperties", "MIN_PROPERTIES", old.min_properties, new.min_properties)


def compare_unevaluated(
    changes: Changes, old: Schema | None, new: Schema | None, keyword: str
) -> Steps:
    """unevaluatedProperties and unevaluatedItems: absent is like true, and not quite."""
    if old is None and new is None:
        return
    kind = "UNEVALUATED_PROPERTIES" if keyword == "unevaluatedProperties" else "UNEVALUATED_ITEMS"
    was_closed, is_closed = isinstance(old, FalseSchema), isinstance(new, FalseSchema)
    was_open = old is None or isinstance(old, EmptySchema)
    is_open = new is None or isinstance(new, EmptySchema)
    if was_closed != is_closed:
        changes.add(f"{kind}_REMOVED" if is_closed else f"{kind}_ADDED", keyword)
    elif was_open != is_open or old is None or new is None:
        changes.add(
            f"{kind}_NARROWED" if old is None or (was_open and not is_open) else f"{kind}_EXTENDED",
            keyword,
        )
    else:
        yield from inside(changes, old, new, keyword)


def _compare_required(changes: Changes, old: ObjectSchema, new: ObjectSchema) -> None:
    for name in old.properties:
        now = new.properties.get(name)
        if now is None or (name in old.required) == (name in new.required):
            continue
        if name in old.required:
            kind = "REQUIRED_ATTRIBUTE_REMOVED"
        elif now.has_default:
            kind = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED"
        else:
            kind = "REQUIRED_ATTRIBUTE_ADDED"
        changes.add(kind, "required", name)


def _compare_removed(changes: Changes, was: Schema, new: ObjectSchema, name: str) -> Steps:
    path = ("properties", name)
    if _is_open(new):
        return
    covering = _covering(new, name)
    if covering is not None:
        differences = yield was, covering
        changes.add_all(differences, *path)
        if differences:
            changes.add("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", *path)
    elif not isinstance(was, FalseSchema):
        changes.add("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", *path)


def _compare_added(
    changes: Changes, old: ObjectSchema, now: Schema, new: ObjectSchema, name: str
) -> Steps:
    path = ("properties", name)
    is_required = name in new.required
    if _is_open(old):
        if isinstance(now, EmptySchema):
            return
        if not is_required:
            changes.add("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", *path)
        elif now.has_default:
            changes.add("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL", *path)
        else:
            changes.add("REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", *path)
        return
    covering = _covering(old, name)
    if covering is not None:
        differences = yield covering, now
        changes.add_all(differences, *path)
        if differences:
            changes.add("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", *path)
    if is_required and not now.has_default:
        changes.add("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", *path)


def _compare_dependencies(changes: Changes, old: ObjectSchema, new: ObjectSchema) -> Steps:
    for name in dict.fromkeys([*old.needed_names, *new.needed_names]):
        were, are = old.needed_names.get(name), new.needed_names.get(name)
        if were == are or are is None:
            continue
        if were is None:
            how = "ADDED"
        elif were < are:
            how = "EXTENDED"
        else:
            how = "NARROWED" if are < were else "CHANGED"
        changes.add(f"DEPENDENCY_ARRAY_{how}", "dependencies", name)
    for name in dict.fromkeys([*old.needed_schemas, *new.needed_schemas]):
        was, now = old.needed_schemas.get(name), new.needed_schemas.get(name)
        if was is None:
            changes.add("DEPENDENCY_SCHEMA_ADDED", "dependencies", name)
        elif now is not None:
            yield from inside(changes, was, now, "dependencies", name)


def _is_open(schema: ObjectSchema) -> bool:
    return (
        schema.allows_rest
        and schema.rest is None
        and not schema.patterns
        and (schema.unevaluated is None or isinstance(schema.unevaluated, EmptySchema))
    )


def _covering(schema: ObjectSchema, name: str) -> Schema | None:
    """The schema of a partly open model for a property that it does not name."""
    for pattern, inner in schema.patterns.items():
        if find(pattern, name) is not False:
            return inner
    if schema.rest is not None:
        return schema.rest
    if schema.allows_rest and not isinstance(schema.unevaluated, FalseSchema | EmptySchema):
        return schema.unevaluated
    return None
