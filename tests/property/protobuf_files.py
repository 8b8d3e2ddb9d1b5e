"""Files of .proto texts for property tests: any tree that can be printed."""

from hypothesis import strategies as st

from barnabas.schemas.protobuf.nodes import (
    FIELD_NUMBER_MAX,
    SCALARS,
    Aggregate,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Import,
    Message,
    Method,
    OneOf,
    Option,
    Reserved,
    Service,
    Span,
    Value,
    Word,
)

# Words of the grammar are names too, but for those that begin another statement.
identifiers = st.sampled_from(["a", "b", "C", "D_e", "_f9", "string", "map", "to", "max", "stream"])
full_names = st.lists(identifiers, min_size=1, max_size=3).map(".".join)
types = st.sampled_from(sorted(SCALARS)) | st.sampled_from(["A", ".a.B", "a.b.C"])
numbers = st.integers(1, FIELD_NUMBER_MAX)
words = st.sampled_from(
    ["0", "-1", "0x1F", "1.5", "-2e10", ".5", "inf", "-inf", "nan", "true", "FAST"]
).map(Word)
# Characters of all kinds, and bytes that are not UTF-8.
strings = st.text(max_size=8) | st.binary(max_size=8).map(
    lambda raw: raw.decode("utf-8", "surrogateescape")
)


def tuples(strategy: st.SearchStrategy, most: int = 3) -> st.SearchStrategy:
    return st.lists(strategy, max_size=most).map(tuple)


def _aggregates(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    keys = identifiers | full_names.map(lambda name: f"[{name}]")
    return st.dictionaries(keys, values, max_size=3).map(
        lambda entries: Aggregate(tuple(entries.items()))
    )


values: st.SearchStrategy[Value] = st.recursive(
    words | strings, lambda inner: tuples(inner) | _aggregates(inner), max_leaves=6
)
parts = st.builds(
    lambda first, rest: (first, *rest) if first[0] == "(" or rest[:1] else (first,),
    full_names | full_names.map(lambda name: f"({name})"),
    st.just(()),
) | st.builds(
    lambda name, rest: (f"({name})", *rest), full_names, tuples(identifiers)
)  # fmt: skip
options = tuples(st.builds(Option, parts, values), 2)
spans = st.one_of(
    st.builds(Span, numbers),
    st.tuples(numbers, numbers).map(lambda pair: Span(min(pair), max(pair))),
)
reserved = tuples(
    st.lists(spans, min_size=1, max_size=3).map(lambda several: Reserved(tuple(several)))
    | st.lists(identifiers, min_size=1, max_size=2).map(lambda names: Reserved(tuple(names))),
    2,
)
labels = st.sampled_from([None, "optional", "required", "repeated"])
plain_fields = st.builds(Field, labels, types, identifiers, numbers, options)
fields = plain_fields | st.builds(Field, st.none(), types, identifiers, numbers, options, types)
of_oneofs = st.builds(Field, st.none(), types, identifiers, numbers, options)
enum_numbers = st.integers(-(1 << 31), (1 << 31) - 1)
# A value may not be called `option` or `reserved`, which are none of the names.
enums = st.builds(
    Enum,
    identifiers,
    tuples(st.builds(EnumValue, identifiers, enum_numbers, options)),
    reserved,
    options,
)
plain_messages = st.builds(Message, identifiers, tuples(fields))
groups = st.builds(Group, labels, numbers, plain_messages, options)
extends = st.builds(Extend, full_names, tuples(plain_fields), tuples(groups, 1))
oneofs = st.builds(
    OneOf,
    identifiers,
    tuples(of_oneofs),
    tuples(st.builds(Group, st.none(), numbers, plain_messages, options), 1),
    options,
)


def _messages(inner: st.SearchStrategy[Message]) -> st.SearchStrategy[Message]:
    extensions = st.builds(Extensions, st.lists(spans, min_size=1, max_size=2).map(tuple), options)
    return st.builds(
        Message,
        identifiers,
        tuples(fields),
        tuples(oneofs, 2),
        tuples(groups, 1),
        tuples(extensions, 1),
        tuples(extends, 1),
        tuples(inner, 2),
        tuples(enums, 1),
        reserved,
        options,
    )


messages: st.SearchStrategy[Message] = st.recursive(plain_messages, _messages, max_leaves=4)
methods = st.builds(
    Method, identifiers, full_names, full_names, st.booleans(), st.booleans(), options
)
services = st.builds(Service, identifiers, tuples(methods, 2), options)
imports = st.builds(
    lambda plain, public, weak: tuple(
        Import(path, kind)
        for kind, paths in (("", plain), ("public", public), ("weak", weak))
        for path in paths
    ),
    *[tuples(st.text("ab./é", max_size=5), 1) for _ in range(3)],
)
files = st.builds(
    File,
    st.sampled_from([None, "proto2", "proto3", "2023"]),
    st.just("") | full_names,
    imports,
    options,
    tuples(messages, 2),
    tuples(enums, 1),
    tuples(extends, 1),
    tuples(services, 1),
)
