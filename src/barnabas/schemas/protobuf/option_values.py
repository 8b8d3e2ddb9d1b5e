"""Options that are written in several ways, or in several places, as one value."""

from collections.abc import Callable, Iterable, Sequence

from barnabas.schemas.protobuf.nodes import Aggregate, Option, Value

# What several values of a key are together. The key says which field of the message it is.
Merge = Callable[[str, Sequence[Value]], Value]


def whole(option: Option) -> Option:
    """`(a).b.c = 1` as `(a) = {b: {c: 1}}`."""
    value = option.value
    for part in reversed(option.parts[1:]):
        value = Aggregate(((part.replace("(", "[").replace(")", "]"), value),))
    return Option(option.parts[:1], value, option.position)


def merged(values: Sequence[Value], merge: Merge) -> Value:
    """Merge the values of one option: all messages into one, else the last value."""
    messages: list[Aggregate] = []
    for value in reversed(values):
        if not isinstance(value, Aggregate):
            break
        messages.append(value)
    if not messages:
        return values[-1]
    by_key: dict[str, list[Value]] = {}
    for message in reversed(messages):
        for key, value in message.entries:
            by_key.setdefault(key, []).append(value)
    return Aggregate(
        tuple(
            (key, several[0] if len(several) == 1 else merge(key, several))
            for key, several in by_key.items()
        )
    )


def all_of(_key: str, values: Iterable[Value]) -> Value:
    """The list of all values, each once."""
    return tuple(dict.fromkeys(item for value in values for item in as_list(value)))


def as_list(value: Value) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else (value,)
