"""Rules for arrays. Items after those with their own schemas have a content model too."""

from barnabas.schemas.json_schema.diff.changes import Changes, Steps, inside
from barnabas.schemas.json_schema.diff.objects import compare_unevaluated
from barnabas.schemas.json_schema.model.kinds import (
    ArraySchema,
    EmptySchema,
    FalseSchema,
    Schema,
)


def compare_arrays(changes: Changes, old: ArraySchema, new: ArraySchema) -> Steps:
    """All rules for arrays."""
    yield from inside(changes, old.each, new.each, "items")
    for index in range(max(len(old.first), len(new.first))):
        path = f"items/{index}"
        if index >= len(new.first):
            yield from _compare_removed(changes, old.first[index], new, path)
        elif index >= len(old.first):
            yield from _compare_added(changes, old, new.first[index], path)
        else:
            yield from inside(changes, old.first[index], new.first[index], path)
    if old.allows_rest != new.allows_rest:
        how = "ADDED" if new.allows_rest else "REMOVED"
        changes.add(f"ADDITIONAL_ITEMS_{how}", "additionalItems")
    elif old.rest is None or new.rest is None:
        if old.rest is not new.rest:
            how = "NARROWED" if old.rest is None else "EXTENDED"
            changes.add(f"ADDITIONAL_ITEMS_{how}", "additionalItems")
    else:
        yield from inside(changes, old.rest, new.rest, "additionalItems")
    yield from compare_unevaluated(changes, old.unevaluated, new.unevaluated, "unevaluatedItems")
    changes.limit("maxItems", "MAX_ITEMS", old.max_items, new.max_items)
    changes.limit("minItems", "MIN_ITEMS", old.min_items, new.min_items)
    if new.unique_items and not old.unique_items:
        changes.add("UNIQUE_ITEMS_ADDED", "uniqueItems")
    changes.limit("maxContains", "MAX_CONTAINS", old.max_contains, new.max_contains)
    changes.limit("minContains", "MIN_CONTAINS", old.min_contains, new.min_contains)


def _compare_removed(changes: Changes, was: Schema, new: ArraySchema, path: str) -> Steps:
    if _is_open(new):
        return
    covering = _covering(new)
    if covering is not None:
        differences = yield was, covering
        changes.add_all(differences, path)
        if differences:
            changes.add("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif not isinstance(was, FalseSchema):
        changes.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _compare_added(changes: Changes, old: ArraySchema, now: Schema, path: str) -> Steps:
    if _is_open(old):
        if not isinstance(now, EmptySchema):
            changes.add("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering(old)
    if covering is not None:
        differences = yield covering, now
        changes.add_all(differences, path)
        if differences:
            changes.add("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def _is_open(schema: ArraySchema) -> bool:
    return (
        schema.allows_rest
        and schema.rest is None
        and (schema.unevaluated is None or isinstance(schema.unevaluated, EmptySchema))
    )


def _covering(schema: ArraySchema) -> Schema | None:
    if schema.rest is not None:
        return schema.rest
    if schema.allows_rest and not isinstance(schema.unevaluated, FalseSchema | EmptySchema):
        return schema.unevaluated
    return None
