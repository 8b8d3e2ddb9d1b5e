"""Options of a .proto text, and their values."""

from barnabas.schemas.protobuf.nodes import Aggregate, Option, Value, Word
from barnabas.schemas.protobuf.tokens import Cursor

# They are printed behind all others.
_LAST: dict[tuple[str, ...], int] = {("default",): 1, ("json_name",): 2}


def parse_option_statement(cursor: Cursor) -> Option:
    """`option name = value;`, the cursor on the name."""
    option = _option(cursor)
    cursor.expect(";", " after the option")
    return option


def parse_bracketed_options(cursor: Cursor) -> tuple[Option, ...]:
    """`[name = value, ...]` if it is there."""
    if not cursor.accept("["):
        return ()
    options: list[Option] = []
    if not cursor.accept("]"):
        options.append(_option(cursor))
        while cursor.accept(","):
            options.append(_option(cursor))
        cursor.expect("]", " or ','")
    return tuple(sorted(options, key=lambda option: _LAST.get(option.parts, 0)))


def _option(cursor: Cursor) -> Option:
    at = cursor.position
    parts = _name(cursor)
    cursor.expect("=", " after the name of the option")
    return Option(parts, _value(cursor), at)


def _name(cursor: Cursor) -> tuple[str, ...]:
    parts = [_extension_name(cursor) or _plain_name(cursor)]
    while cursor.token[:1] == "." and cursor.kind in ("word", "symbol"):
        if cursor.kind == "symbol":
            cursor.take()
            extension = _extension_name(cursor)
            if extension:
                parts.append(extension)
                continue
        name = _plain_name(cursor).removeprefix(".")
        if len(parts) == 1 and parts[0][0] != "(":
            # A first name with dots (`features.field_presence`) is one part.
            parts[0] += f".{name}"
        else:
            parts.extend(name.split("."))
    return tuple(parts)


def _plain_name(cursor: Cursor) -> str:
    if cursor.kind != "word":
        raise cursor.unexpected("the name of an option")
    return cursor.take()


def _extension_name(cursor: Cursor) -> str:
    """The name of an extension with its parentheses, empty if none exists."""
    if not cursor.accept("("):
        return ""
    name = cursor.full_name("the name of an extension")
    cursor.expect(")", " after the name of the extension")
    return f"({name})"


def _value(cursor: Cursor) -> Value:
    if cursor.kind == "string":
        return cursor.string("a value")
    if cursor.token == "{":
        return _aggregate(cursor, "{", "}")
    if cursor.token == "[":
        return _list(cursor)
    return _word(cursor)


def _word(cursor: Cursor) -> Word:
    sign = "-" if cursor.accept("-") else ""
    if not sign:
        cursor.accept("+")
    if cursor.kind == "number":
        return Word(sign + cursor.take())
    if cursor.kind == "word" and (not sign or cursor.token.lower() in ("inf", "infinity", "nan")):
        return Word(sign + cursor.full_name("a value"))
    raise cursor.unexpected("a number" if sign else "a value")


def _aggregate(cursor: Cursor, opening: str, closing: str) -> Aggregate:
    """A message in protobuf's text format."""
    cursor.expect(opening)
    cursor.enter()
    values: dict[str, Value | list[Value]] = {}
    while not cursor.accept(closing):
        key = _key(cursor)
        if not cursor.accept(":") and cursor.token not in ("{", "<"):
            raise cursor.unexpected("':' after the name of a field")
        if cursor.token == "<":
            value: Value = _aggregate(cursor, "<", ">")
        else:
            value = _value(cursor)
        _add(values, key, value)
        if not cursor.accept(","):
            cursor.accept(";")
    cursor.leave()
    return Aggregate(
        tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in values.items())
    )


def _add(values: dict[str, Value | list[Value]], key: str, value: Value) -> None:
    """The values of a key that comes several times are one list."""
    previous = values.get(key)
    if previous is None:
        values[key] = value
        return
    if not isinstance(previous, list):
        previous = list(previous) if isinstance(previous, tuple) else [previous]
        values[key] = previous
    if isinstance(value, tuple):
        previous.extend(value)
    else:
        previous.append(value)


def _key(cursor: Cursor) -> str:
    if cursor.kind == "number":
        raise cursor.unexpected("the name of a field")
    if not cursor.accept("["):
        return cursor.identifier("the name of a field or '}'")
    name = cursor.full_name("the name of an extension or type")
    while cursor.accept("/"):
        name += "/" + cursor.full_name("the name of a type")
    cursor.expect("]", " after the name")
    return f"[{name}]"


def _list(cursor: Cursor) -> tuple[Value, ...]:
    cursor.expect("[")
    cursor.enter()
    items: list[Value] = []
    while not cursor.accept("]"):
        if cursor.token == "<":
            items.append(_aggregate(cursor, "<", ">"))
        else:
            items.append(_value(cursor))
        if not cursor.accept(",") and cursor.token != "]":
            raise cursor.unexpected("',' or ']'")
    cursor.leave()
    return tuple(items)
