"""Rules for allOf, anyOf and oneOf: each alternative looks for its match, in any order."""

from barnabas.schemas.json_schema.diff.changes import Changes, Steps
from barnabas.schemas.json_schema.model.kinds import CombinedSchema, Schema
from barnabas.schemas.json_schema.text import value_key


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
