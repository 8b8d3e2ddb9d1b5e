"""Options that are written in several ways, or in several places, as one value."""

from collections.abc import Callable

from barnabas.registry.protobuf.nodes import Aggregate, Option, Value

# What two values of a key are together. The key says which field of the message it is.
Merge = Callable[[str, Value, Value], Value]


def whole(option: Option) -> Option:
    """`(a).b.c = 1` as `(a) = {b: {c: 1}}`."""
    value = option.value
    for part in reversed(option.parts[1:]):
        value = Aggregate(((part.replace("(", "[").replace(")", "]"), value),))
    return Option(option.parts[:1], value, option.position)


def merged(first: Option, second: Option, merge: Merge) -> Option:
    """What two options of one name say together; if they are no messages, the second one."""
    if isinstance(first.value, Aggregate) and isinstance(second.value, Aggregate):
        value = merged_aggregates(first.value, second.value, merge)
        return Option(second.parts, value, first.position)
    return second


def merged_aggregates(first: Aggregate, second: Aggregate, merge: Merge) -> Aggregate:
    entries = dict(first.entries)
    for key, value in second.entries:
        entries[key] = merge(key, entries[key], value) if key in entries else value
    return Aggregate(tuple(entries.items()))


def both(_key: str, first: Value, second: Value) -> Value:
    """The list of all values, each once."""
    values: list[Value] = []
    for value in (*as_list(first), *as_list(second)):
        if value not in values:
            values.append(value)
    return tuple(values)


def as_list(value: Value) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,)
