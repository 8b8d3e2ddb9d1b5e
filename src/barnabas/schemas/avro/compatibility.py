"""Compatibility of a reader's Avro schema with a writer's, by the rules of Java's
SchemaCompatibility.

The rules are the specification's schema resolution with Java's habits: types match by unqualified
name or by an alias of the reader, bytes and strings read each other, and an enum's own default does
not count as the default of a field of that enum.

Paths are JSON pointers into the reader, except below unions, where they start again, as Java's do.
Kinds and details are Java's words: users' tools know them.

A check is a generator that asks for the checks it depends on, so a stack of Python's is no limit.
"""

from collections.abc import Generator, Iterator

from barnabas.schemas.avro.model import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Schema,
    Union,
)
from barnabas.schemas.schema import Incompatibility

INCOMPATIBILITIES_MAX = 1000
# Two rings of records of coprime lengths make a pair of each two: a few kilobytes, for hours.
CHECKS_MAX = 1_000_000
PATH_TOKENS_MAX = 1000

# The path to a place, last token first: (rest of the path, token).
_Place = tuple["_Place", str | int] | None
_Faults = list[Incompatibility]
# Asks for the faults of (reader, writer, place).
_Check = Generator[tuple[Schema, Schema, _Place], _Faults, _Faults]
_Pair = tuple[int, int]

# By the writer's kind: the other kinds that read it.
_READ_BY = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "bytes": ("string",),
    "string": ("bytes",),
}


class _NoAnswerError(Exception):
    """The two cannot be compared, and why."""

    def __init__(self, fault: Incompatibility) -> None:
        self.fault = fault


def _ambiguous_aliases(field: Field, record: Record, place: _Place) -> Incompatibility:
    path = _path(place)
    return Incompatibility(
        "AMBIGUOUS_ALIASES",
        path,
        f"The name and aliases of field '{field.name}' at path '{path}' in the reader schema match"
        f" several fields of '{record.name.full}' in the writer schema",
        field.name,
    )


def incompatibilities(reader: Schema, writer: Schema) -> list[Incompatibility]:
    """All reasons why the reader cannot read; at most INCOMPATIBILITIES_MAX."""
    try:
        return _run(reader, writer)
    except _NoAnswerError as error:
        return [error.fault]


def _run(reader: Schema, writer: Schema) -> list[Incompatibility]:
    # Pairs by identity: an empty list while the check is under way, since what is not proven
    # incompatible is compatible. All cycles pass through pairs of records.
    known: dict[_Pair, _Faults] = {}
    stack: list[tuple[_Check, _Pair | None]] = [(_ask(reader, writer), None)]
    answer: _Faults | None = None
    while True:
        check, pair = stack[-1]
        try:
            asked = next(check) if answer is None else check.send(answer)
        except StopIteration as done:
            answer = done.value
            stack.pop()
            if pair is not None:
                known[pair] = done.value
            if not stack:
                faults: _Faults = done.value
                return faults
            continue
        pair = _pair(asked[0], asked[1])
        answer = None if pair is None else known.get(pair)
        if answer is None:
            if pair is not None:
                known[pair] = []
                if len(known) > CHECKS_MAX:
                    raise _NoAnswerError(_TOO_LARGE)
            stack.append((_check(*asked), pair))


def _ask(reader: Schema, writer: Schema) -> _Check:
    return (yield reader, writer, None)


def _pair(reader: Schema, writer: Schema) -> _Pair | None:
    # A bare primitive is one object for all its uses, each with its own path.
    if isinstance(reader, Primitive) or isinstance(writer, Primitive):
        return None
    return id(reader), id(writer)


def _check(reader: Schema, writer: Schema, place: _Place) -> _Check:
    faults: _Faults = []
    if isinstance(reader, Record) and isinstance(writer, Record):
        faults += _name_faults(reader, writer, place)
        _merge(faults, (yield from _check_fields(reader, writer, (place, "fields"))))
    elif isinstance(writer, Union):
        if isinstance(reader, Union):
            return (yield from _check_unions(reader, writer, place))
        for index, branch in enumerate(writer.branches):
            _merge(faults, (yield reader, branch, (place, index)))
    elif isinstance(reader, Union):
        for branch in _branches_that_may_read(reader, writer):
            if not (yield branch, writer, None):
                return []
        faults.append(_missing_branch(writer, place))
    elif isinstance(reader, Array) and isinstance(writer, Array):
        return (yield reader.items, writer.items, (place, "items"))
    elif isinstance(reader, Map) and isinstance(writer, Map):
        return (yield reader.values, writer.values, (place, "values"))
    else:
        faults.extend(_leaf_faults(reader, writer, place))
    return faults


def _branches_that_may_read(reader: Union, writer: Schema) -> list[Schema]:
    """The branches that kind and name allow: a handful, where a union has thousands."""
    if not reader.index:
        for branch in reader.branches:
            for key in _keys_as_reader(branch):
                reader.index.setdefault(key, []).append(branch)
    if isinstance(writer, Record | Enum | Fixed):
        keys = [f"{writer.kind}:{writer.name.simple}", f"{writer.kind}={writer.name.full}"]
    else:
        keys = [writer.kind, *_READ_BY.get(writer.kind, ())]
    branches = (branch for key in keys for branch in reader.index.get(key, ()))
    return list({id(branch): branch for branch in branches}.values())


def _keys_as_reader(branch: Schema) -> list[str]:
    if not isinstance(branch, Record | Enum | Fixed):
        return [branch.kind]
    aliases = (alias.alias_of(branch.name) for alias in branch.aliases)
    return [f"{branch.kind}:{branch.name.simple}", *(f"{branch.kind}={a}" for a in aliases)]


def _merge(faults: _Faults, more: _Faults) -> None:
    # The faults of a type are told at each of its uses, which can double from type to type.
    faults.extend(more[: INCOMPATIBILITIES_MAX - len(faults)])


def _check_fields(reader: Record, writer: Record, place: _Place) -> _Check:
    faults: _Faults = []
    for index, field in enumerate(reader.fields):
        inner: _Place = (place, index)
        written = _written_field(field, writer, inner)
        if written is not None:
            if _is_plainly_same(field.type, written.type):
                continue
            _merge(faults, (yield field.type, written.type, (inner, "type")))
        elif not field.has_default:
            if isinstance(field.type, Enum) and field.type.default is not None:
                _merge(faults, (yield field.type, writer, (inner, "type")))
            else:
                _merge(faults, [_missing_default(field, inner)])
    return faults


def _is_plainly_same(reader: Schema, writer: Schema) -> bool:
    if isinstance(reader, Primitive):
        return reader.kind == writer.kind
    return (
        isinstance(reader, Union)
        and isinstance(writer, Union)
        and reader.is_plain
        and reader.branches == writer.branches
    )


def _written_field(field: Field, writer: Record, place: _Place) -> Field | None:
    field_written = writer.field_by_name.get(field.name)
    for alias in field.aliases:
        by_alias = writer.field_by_name.get(alias)
        if by_alias is None:
            continue
        if field_written is not None:
            raise _NoAnswerError(_ambiguous_aliases(field, writer, place))
        field_written = by_alias
    return field_written


def _check_unions(reader: Union, writer: Union, place: _Place) -> _Check:
    faults: _Faults = []
    for index, branch in enumerate(writer.branches):
        if (yield reader, branch, None):
            faults.append(_missing_branch(branch, (place, index)))
    return faults


def _leaf_faults(reader: Schema, writer: Schema, place: _Place) -> Iterator[Incompatibility]:
    if isinstance(reader, Fixed) and isinstance(writer, Fixed):
        yield from _name_faults(reader, writer, place)
        if reader.size != writer.size:
            yield _size_mismatch(reader, writer, (place, "size"))
    elif isinstance(reader, Enum) and isinstance(writer, Enum):
        yield from _name_faults(reader, writer, place)
        missing = set(writer.symbols).difference(reader.symbols)
        if missing and reader.default is None:
            yield _missing_symbols(missing, (place, "symbols"))
    elif reader.kind != writer.kind and reader.kind not in _READ_BY.get(writer.kind, ()):
        yield _type_mismatch(reader, writer, place)


def _name_faults(
    reader: Record | Enum | Fixed, writer: Record | Enum | Fixed, place: _Place
) -> list[Incompatibility]:
    if reader.name.simple == writer.name.simple or any(
        alias.alias_of(reader.name) == writer.name.full for alias in reader.aliases
    ):
        return []
    path = _path((place, "name"))
    return [
        Incompatibility(
            "NAME_MISMATCH",
            path,
            f"The reader schema is named '{reader.name.full}', the writer schema"
            f" '{writer.name.full}' (path '{path}')",
            f"expected: {writer.name.full}",
        )
    ]


def _type_mismatch(reader: Schema, writer: Schema, place: _Place) -> Incompatibility:
    path = _path(place)
    return Incompatibility(
        "TYPE_MISMATCH",
        path,
        f"The type {reader.kind} at path '{path}' in the reader schema cannot read the type"
        f" {writer.kind} of the writer schema",
        f"reader type: {reader.kind.upper()} not compatible with writer type:"
        f" {writer.kind.upper()}",
    )


def _missing_branch(writer: Schema, place: _Place) -> Incompatibility:
    path = _path(place)
    return Incompatibility(
        "MISSING_UNION_BRANCH",
        path,
        f"No branch of the union at path '{path}' in the reader schema reads the type"
        f" {writer.kind} of the writer schema",
        f"reader union lacking writer type: {writer.kind.upper()}",
    )


def _missing_default(field: Field, place: _Place) -> Incompatibility:
    path = _path(place)
    return Incompatibility(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        path,
        f"The field '{field.name}' at path '{path}' in the reader schema has no default value and"
        " is missing in the writer schema",
        field.name,
    )


def _missing_symbols(missing: set[str], place: _Place) -> Incompatibility:
    path = _path(place)
    symbols = f"[{', '.join(sorted(missing))}]"
    return Incompatibility(
        "MISSING_ENUM_SYMBOLS",
        path,
        f"The enum symbols {symbols} of the writer schema are missing at path '{path}' in the"
        " reader schema",
        symbols,
    )


def _size_mismatch(reader: Fixed, writer: Fixed, place: _Place) -> Incompatibility:
    path = _path(place)
    return Incompatibility(
        "FIXED_SIZE_MISMATCH",
        path,
        f"The size of '{reader.name.full}' at path '{path}' is {reader.size} bytes in the reader"
        f" schema and {writer.size} in the writer schema",
        f"expected: {writer.size}, found: {reader.size}",
    )


def _path(place: _Place) -> str:
    tokens: list[str] = []
    while place is not None:
        place, token = place
        tokens.append(str(token))
        if len(tokens) == PATH_TOKENS_MAX:
            tokens.append("…")
            break
    return "/" + "/".join(reversed(tokens))


_TOO_LARGE = Incompatibility(
    "TOO_LARGE",
    "/",
    f"The schemas are too large to compare: they need more than {CHECKS_MAX} comparisons of types",
)
