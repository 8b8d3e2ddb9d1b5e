"""Comparing two schemas, pair by pair of the schemas inside them.

A pair is compared once. If it is met again during its own comparison (schemas that refer to
themselves), it is assumed to be compatible. If it turns out to be incompatible, conclusions from
that assumption may be wrong: so the comparison is repeated with the known incompatible pairs, until
no new one is found.
"""

from collections.abc import Iterator
from typing import cast

from barnabas.schemas.json_schema.diff.changes import (
    HARMFUL_LENIENT,
    HARMFUL_STRICT,
    Change,
    Changes,
    Steps,
    describe,
    inside,
)
from barnabas.schemas.json_schema.diff.rules import (
    compare_arrays,
    compare_combined,
    compare_constants,
    compare_enums,
    compare_numbers,
    compare_objects,
    compare_strings,
)
from barnabas.schemas.json_schema.model.kinds import (
    ArraySchema,
    CombinedSchema,
    ConstSchema,
    EmptySchema,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NumberSchema,
    ObjectSchema,
    ReferenceSchema,
    Schema,
    StringSchema,
)
from barnabas.schemas.json_schema.model.reader import Reader
from barnabas.schemas.schema import Incompatibility

PAIRS_MAX = 100_000
"""Comparisons of one request, a second or less. A comparison that needs more is refused."""

_Key = tuple[int, int]
_TOO_LARGE: Change = ("COMPARISON_TOO_LARGE", ())


class _TooLargeError(Exception):
    pass


def compare(old: Reader, new: Reader, *, lenient: bool = False) -> list[Incompatibility]:
    """Why the new schema does not read what the old one wrote."""
    comparison = _Comparison(old, new, HARMFUL_LENIENT if lenient else HARMFUL_STRICT)
    try:
        changes = comparison.changes()
    except _TooLargeError:
        changes = (_TOO_LARGE,)
    return [_told(change) for change in dict.fromkeys(changes)]


def _told(change: Change) -> Incompatibility:
    kind, steps = change
    path = "#/" + "/".join(steps)
    return Incompatibility(kind=kind, path=path, description=describe(kind, path))


class _Comparison:
    def __init__(self, old: Reader, new: Reader, harmful: frozenset[str]) -> None:
        self._readers = old, new
        self._harmful = harmful
        self._pairs_left = PAIRS_MAX
        self._known: dict[_Key, tuple[Change, ...]] = {}
        self._incompatible: dict[_Key, tuple[Change, ...]] = {}
        self._was_optimistic = False

    def changes(self) -> tuple[Change, ...]:
        """The changes of the whole."""
        root = self._readers[0].root(), self._readers[1].root()
        while True:
            self._known, self._was_optimistic = {}, False
            differences = self._run(*root)
            incompatible = {key: changes for key, changes in self._known.items() if changes}
            if not self._was_optimistic or incompatible.keys() == self._incompatible.keys():
                return differences
            self._incompatible = incompatible

    def _run(self, old: Schema, new: Schema) -> tuple[Change, ...]:
        """Drive the rules of a pair and of all pairs inside it, on a stack of our own."""
        stack: list[tuple[_Key, Changes, Iterator[tuple[Schema, Schema]]]] = []
        under_way: set[_Key] = set()
        answer = self._enter(old, new, stack, under_way)
        while stack:
            key, changes, steps = stack[-1]
            try:
                # A generator that has not begun takes None alone.
                pair = cast(Steps, steps).send(cast("tuple[Change, ...]", answer))
            except StopIteration:
                stack.pop()
                under_way.discard(key)
                answer = self._known[key] = tuple(changes.found)
            else:
                answer = self._enter(*pair, stack, under_way)
        return answer or ()

    def _enter(
        self,
        old: Schema,
        new: Schema,
        stack: list[tuple[_Key, Changes, Iterator[tuple[Schema, Schema]]]],
        under_way: set[_Key],
    ) -> tuple[Change, ...] | None:
        """The changes of a pair if they are known; else None, and the pair's rules on the stack."""
        self._pairs_left -= 1
        if self._pairs_left < 0:
            raise _TooLargeError
        old, new = _target(old), _target(new)
        key = id(old), id(new)
        known = self._known.get(key)
        if known is not None:
            return known
        if key in under_way:
            known = self._incompatible.get(key)
            if known is not None:
                return known
            self._was_optimistic = True
            return ()
        under_way.add(key)
        changes = Changes(self._harmful)
        stack.append((key, changes, _compare_types(changes, old, new)))
        return None


def _target(schema: Schema) -> Schema:
    return schema.target() if isinstance(schema, ReferenceSchema) else schema


def _compare_types(changes: Changes, old: Schema, new: Schema) -> Steps:
    if isinstance(new, CombinedSchema) and not isinstance(old, CombinedSchema):
        if len(new.parts) == 1 or new.criterion != "allOf":
            for part in new.parts:
                if not (yield old, part):
                    return
    elif (
        isinstance(old, CombinedSchema)
        and not isinstance(new, CombinedSchema)
        and (len(old.parts) == 1 or old.criterion == "allOf")
    ):
        for part in old.parts:
            if not (yield part, new):
                return
    if type(old) is not type(new):
        if not (
            isinstance(old, FalseSchema)
            or isinstance(new, EmptySchema)
            or (old.is_connect_bytes and new.is_connect_bytes)
        ):
            changes.add("TYPE_CHANGED")
    else:
        yield from _compare_alike(changes, old, new)


def _compare_alike(changes: Changes, old: Schema, new: Schema) -> Steps:
    if isinstance(old, ObjectSchema) and isinstance(new, ObjectSchema):
        yield from compare_objects(changes, old, new)
    elif isinstance(old, ArraySchema) and isinstance(new, ArraySchema):
        yield from compare_arrays(changes, old, new)
    elif isinstance(old, CombinedSchema) and isinstance(new, CombinedSchema):
        yield from compare_combined(changes, old, new)
    elif isinstance(old, NotSchema) and isinstance(new, NotSchema):
        backwards = Changes(changes.harmful)
        yield from inside(backwards, new.inner, old.inner)
        if backwards.found:
            changes.add("NOT_TYPE_EXTENDED", "not")
    elif isinstance(old, StringSchema) and isinstance(new, StringSchema):
        compare_strings(changes, old, new)
    elif isinstance(old, NumberSchema) and isinstance(new, NumberSchema):
        compare_numbers(changes, old, new)
    elif isinstance(old, EnumSchema) and isinstance(new, EnumSchema):
        compare_enums(changes, old, new)
    elif isinstance(old, ConstSchema) and isinstance(new, ConstSchema):
        compare_constants(changes, old, new)
    elif (
        isinstance(old, ReferenceSchema)
        and isinstance(new, ReferenceSchema)
        and old.text != new.text
    ):
        changes.add("TYPE_CHANGED")  # both lead nowhere
