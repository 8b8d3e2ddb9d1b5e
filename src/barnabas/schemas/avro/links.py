"""Resolves names that are used before their definition, once the whole document is read.

Checks made without them are then repeated: those of union branches and of defaults.
"""

from collections.abc import Mapping, Sequence

from barnabas.schemas.avro.defaults import check_default
from barnabas.schemas.avro.json_text import FaultAtPlace
from barnabas.schemas.avro.model import (
    Array,
    Enum,
    Fixed,
    Map,
    Named,
    Record,
    Schema,
    Union,
    Unresolved,
)

# The path to a place, last token first: (rest of the path, token).
_Place = tuple["_Place", str | int] | None


def check_branches(branches: Sequence[Schema]) -> None:
    """Refuse a union inside a union, and two branches that no value could be told apart by."""
    seen: set[str] = set()
    for index, branch in enumerate(branches):
        if isinstance(branch, Record | Enum | Fixed):
            if isinstance(branch, Unresolved):
                continue
            name = branch.name.full
        elif branch.kind == "union":
            raise FaultAtPlace("a union cannot be a branch of a union").within(index)
        else:
            name = branch.kind
        if name in seen:
            raise FaultAtPlace(f"the union has two branches {name!r}").within(index)
        seen.add(name)


def link(root: Schema, names: Mapping[str, Named], *, check_defaults: bool) -> Schema:
    """Put definitions in the place of names, throughout a document.

    Raises SchemaFault for a name that nothing defines.
    """
    root = _target(root, names, None)
    started: set[int] = set()
    stack: list[tuple[Schema, _Place, bool]] = [(root, None, False)]
    while stack:
        schema, place, is_leaving = stack.pop()
        if isinstance(schema, Record):
            if is_leaving:
                _leave(schema, place, check_defaults)
            elif id(schema) not in started and not schema.linked:
                started.add(id(schema))
                stack.append((schema, place, True))
                outer: _Place = (place, "fields")
                for index, field in reversed(list(enumerate(schema.fields))):
                    inner: _Place = ((outer, index), "type")
                    field.type = _target(field.type, names, inner)
                    stack.append((field.type, inner, False))
        elif isinstance(schema, Union):
            for index, branch in reversed(list(enumerate(schema.branches))):
                schema.branches[index] = _target(branch, names, (place, index))
                stack.append((schema.branches[index], (place, index), False))
            _check_linked_branches(schema, place)
        elif isinstance(schema, Array):
            schema.items = _target(schema.items, names, (place, "items"))
            stack.append((schema.items, (place, "items"), False))
        elif isinstance(schema, Map):
            schema.values = _target(schema.values, names, (place, "values"))
            stack.append((schema.values, (place, "values"), False))
    return root


def _leave(record: Record, place: _Place, check_defaults: bool) -> None:
    if check_defaults:
        for index, field in enumerate(record.fields):
            try:
                check_default(field, linking=True)
            except FaultAtPlace as fault:
                raise fault.within(*_tokens(place), "fields", index)  # noqa: B904 - the same fault
    record.linked = True


def _check_linked_branches(union: Union, place: _Place) -> None:
    try:
        check_branches(union.branches)
    except FaultAtPlace as fault:
        raise fault.within(*_tokens(place))  # noqa: B904 - the same fault


def _target(schema: Schema, names: Mapping[str, Named], place: _Place) -> Schema:
    if not isinstance(schema, Unresolved):
        return schema
    target = names.get(schema.name.full)
    if target is None:
        raise FaultAtPlace(
            f"no schema is named {schema.name.full!r}:"
            " neither this text nor its references define it"
        ).within(*_tokens(place))
    return target


def _tokens(place: _Place) -> list[str | int]:
    tokens: list[str | int] = []
    while place is not None:
        place, token = place
        tokens.append(token)
    return tokens[::-1]
