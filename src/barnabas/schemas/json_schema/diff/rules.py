"""Rules for each kind of schema: objects, scalars, combinations and arrays.

By its content model an object is open (properties that nobody names may have any value), closed
(there may be none) or partly open (a pattern or a schema says what they may be). A writer with an
open model may have written anything under a name that the reader gives a schema to.
"""

from decimal import Context, Decimal, InvalidOperation

from barnabas.schemas.json_schema.diff.changes import Changes, Steps, inside
from barnabas.schemas.json_schema.model.kinds import (
    ArraySchema,
    CombinedSchema,
    ConstSchema,
    EmptySchema,
    EnumSchema,
    FalseSchema,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
)
from barnabas.schemas.json_schema.patterns import find
from barnabas.schemas.json_schema.text import value_key


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


# -- rules for strings, numbers, enumerations and constants


_DIVISION = Context(prec=2_000, traps=[InvalidOperation])


def compare_strings(changes: Changes, old: StringSchema, new: StringSchema) -> None:
    """Lengths and pattern."""
    changes.limit("maxLength", "MAX_LENGTH", old.max_length, new.max_length)
    changes.limit("minLength", "MIN_LENGTH", old.min_length, new.min_length)
    if old.pattern != new.pattern:
        how = "ADDED" if old.pattern is None else "REMOVED" if new.pattern is None else "CHANGED"
        changes.add(f"PATTERN_{how}", "pattern")


def compare_numbers(changes: Changes, old: NumberSchema, new: NumberSchema) -> None:
    """Limits, divisors, and integers against numbers."""
    changes.limit("maximum", "MAXIMUM", old.maximum, new.maximum)
    changes.limit("minimum", "MINIMUM", old.minimum, new.minimum)
    changes.limit(
        "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", old.exclusive_maximum, new.exclusive_maximum
    )
    changes.limit(
        "exclusiveMinimum", "EXCLUSIVE_MINIMUM", old.exclusive_minimum, new.exclusive_minimum
    )
    if old.multiple_of != new.multiple_of:
        if old.multiple_of is None:
            how = "ADDED"
        elif new.multiple_of is None:
            how = "REMOVED"
        elif _divides(old.multiple_of, new.multiple_of):
            how = "EXPANDED"
        else:
            how = "REDUCED" if _divides(new.multiple_of, old.multiple_of) else "CHANGED"
        changes.add(f"MULTIPLE_OF_{how}", "multipleOf")
    if old.is_integer != new.is_integer:
        changes.add("TYPE_EXTENDED" if old.is_integer else "TYPE_NARROWED")


def compare_enums(changes: Changes, old: EnumSchema, new: EnumSchema) -> None:
    """Values that were and are allowed."""
    if old.values != new.values:
        if old.values < new.values:
            how = "EXTENDED"
        else:
            how = "NARROWED" if new.values < old.values else "CHANGED"
        changes.add(f"ENUM_ARRAY_{how}", "enum")


def compare_constants(changes: Changes, old: ConstSchema, new: ConstSchema) -> None:
    """The one value that is allowed."""
    if old.value != new.value:
        changes.add("ENUM_ARRAY_CHANGED", "const")


def _divides(divisor: int | Decimal, number: int | Decimal) -> bool:
    """Return whether the number is a multiple. Numbers of too many digits are not multiples."""
    try:
        return not _DIVISION.remainder(Decimal(number), Decimal(divisor))
    except InvalidOperation:
        return False


# -- rules for allOf, anyOf and oneOf: each alternative looks for its match, in any order


def compare_combined(changes: Changes, old: CombinedSchema, new: CombinedSchema) -> Steps:
    """Both are combined. Changes inside those that match are harmless, else they did not match."""
    if not _may_become(old, new):
        changes.add("COMBINED_TYPE_CHANGED")
        return
    were, are = _distinct(old.parts), _distinct(new.parts)
    if len(were) < len(are) and new.criterion == "allOf":
        changes.add("PRODUCT_TYPE_EXTENDED")
    elif len(were) > len(are) and old.criterion != "allOf":
        changes.add("SUM_TYPE_NARROWED")
    fits: list[list[int]] = []
    for part in were:
        row: list[int] = []
        for index, other in enumerate(are):
            if not (yield part, other):
                row.append(index)
        fits.append(row)
    if _matching_size(fits, len(are)) < min(len(were), len(are)):
        changes.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def _may_become(old: CombinedSchema, new: CombinedSchema) -> bool:
    was_single, is_single = len(old.parts) == 1, len(new.parts) == 1
    return (
        old.criterion == new.criterion
        or new.criterion == "anyOf"
        or (was_single and (is_single or new.criterion == "oneOf"))
        or (is_single and old.criterion == "allOf")
    )


def _distinct(parts: list[Schema]) -> list[Schema]:
    kept: dict[object, Schema] = {}
    for part in parts:
        # Parts of one object have one source, and differ.
        key = (type(part), id(part) if part.is_part else value_key(part.source))
        kept.setdefault(key, part)
    return list(kept.values())


def _matching_size(fits: list[list[int]], others: int) -> int:
    """The number of schemas on the left that find one each on the right (augmenting paths, without
    recursion).
    """
    partner_of: list[int | None] = [None] * others
    size = 0
    for start in range(len(fits)):
        came_from: dict[int, int] = {}  # right to the left that reached it
        queue = [start]
        end = None
        while queue and end is None:
            left = queue.pop()
            for right in fits[left]:
                if right in came_from:
                    continue
                came_from[right] = left
                partner = partner_of[right]
                if partner is None:
                    end = right
                    break
                queue.append(partner)
        if end is None:
            continue
        size += 1
        right_now: int | None = end
        while right_now is not None:
            left = came_from[right_now]
            previous = next((r for r, p in enumerate(partner_of) if p == left), None)
            partner_of[right_now] = left
            right_now = previous
    return size


# -- rules for arrays. Items after those with their own schemas have a content model too


def compare_arrays(changes: Changes, old: ArraySchema, new: ArraySchema) -> Steps:
    """All rules for arrays."""
    yield from inside(changes, old.each, new.each, "items")
    for index in range(max(len(old.first), len(new.first))):
        path = f"items/{index}"
        if index >= len(new.first):
            yield from _compare_removed_items(changes, old.first[index], new, path)
        elif index >= len(old.first):
            yield from _compare_added_items(changes, old, new.first[index], path)
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


def _compare_removed_items(changes: Changes, was: Schema, new: ArraySchema, path: str) -> Steps:
    if _is_open_after_items(new):
        return
    covering = _covering_items(new)
    if covering is not None:
        differences = yield was, covering
        changes.add_all(differences, path)
        if differences:
            changes.add("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif not isinstance(was, FalseSchema):
        changes.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _compare_added_items(changes: Changes, old: ArraySchema, now: Schema, path: str) -> Steps:
    if _is_open_after_items(old):
        if not isinstance(now, EmptySchema):
            changes.add("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering_items(old)
    if covering is not None:
        differences = yield covering, now
        changes.add_all(differences, path)
        if differences:
            changes.add("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def _is_open_after_items(schema: ArraySchema) -> bool:
    return (
        schema.allows_rest
        and schema.rest is None
        and (schema.unevaluated is None or isinstance(schema.unevaluated, EmptySchema))
    )


def _covering_items(schema: ArraySchema) -> Schema | None:
    if schema.rest is not None:
        return schema.rest
    if schema.allows_rest and not isinstance(schema.unevaluated, FalseSchema | EmptySchema):
        return schema.unevaluated
    return None
