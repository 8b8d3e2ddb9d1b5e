"""The canonical text that the registry stores and hashes; it equals Java's byte for byte.

That is `Schema.toString()`: attributes in one order, a namespace only where it changes, a type
whole at its first use and by name from then on, properties after what the specification names.
Types that references define are written by name from the start.

Walks with its own stack: references can nest deeper than one text may.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from barnabas.schemas.avro.json_text import quote, write
from barnabas.schemas.avro.model import (
    MISSING,
    Array,
    Enum,
    Field,
    Map,
    Named,
    Primitive,
    Props,
    Record,
    Schema,
    Union,
)

# Items still to be written, last first: a text, or a schema inside a namespace.
_Pending = list[str | tuple[Schema, str | None]]


class Writer:
    """Writes schemas. A subclass may write properties, aliases, docs and defaults otherwise."""

    def text(self, root: Schema, known_names: Iterable[str] = ()) -> str:
        """The text of a schema, in which types of known names are only named."""
        known = set(known_names)
        out: list[str] = []
        pending: _Pending = [(root, None)]
        while pending:
            item = pending.pop()
            if isinstance(item, str):
                out.append(item)
                continue
            schema, space = item
            if isinstance(schema, Primitive):
                out.append(self._primitive(schema))
            elif isinstance(schema, Array):
                pending += (f"{self._props(schema, schema.props)}}}", (schema.items, space))
                out.append('{"type":"array","items":')
            elif isinstance(schema, Map):
                pending += (f"{self._props(schema, schema.props)}}}", (schema.values, space))
                out.append('{"type":"map","values":')
            elif isinstance(schema, Union):
                out.append("[")
                self._union(schema, space, pending)
            elif schema.name.full in known:
                out.append(quote(schema.name.seen_from(space)))
            else:
                known.add(schema.name.full)
                self._named(schema, space, pending)
        return "".join(out)

    def _primitive(self, schema: Primitive) -> str:
        if not schema.props:
            return f'"{schema.kind}"'
        return f'{{"type":"{schema.kind}"{self._props(schema, schema.props)}}}'

    def _union(self, schema: Union, space: str | None, pending: _Pending) -> None:
        pending.append("]")
        for index in range(len(schema.branches) - 1, -1, -1):
            pending.append((schema.branches[index], space))
            if index:
                pending.append(",")

    def _named(self, schema: Named, space: str | None, pending: _Pending) -> None:
        kind = "error" if isinstance(schema, Record) and self._is_error(schema) else schema.kind
        head = f'{{"type":"{kind}","name":{quote(schema.name.simple)}'
        if schema.name.space != space:
            head += f',"namespace":{quote(schema.name.space or "")}'
        if (doc := self._doc(schema)) is not None:
            head += f',"doc":{quote(doc)}'
        tail = self._props(schema, schema.props)
        if aliases := self._aliases(schema):
            tail += f',"aliases":{write(aliases)}'
        if isinstance(schema, Record):
            self._fields(schema, head, tail, pending)
        elif isinstance(schema, Enum):
            default = "" if schema.default is None else f',"default":{quote(schema.default)}'
            pending.append(f'{head},"symbols":{write(list(schema.symbols))}{default}{tail}}}')
        else:
            pending.append(f'{head},"size":{schema.size}{tail}}}')

    def _fields(self, record: Record, head: str, tail: str, pending: _Pending) -> None:
        """Put off a record; runs of texts are joined, so that only complex types wait alone."""
        items: _Pending = []
        run = f'{head},"fields":['
        for index, field in enumerate(record.fields):
            run += f'{"," if index else ""}{{"name":{quote(field.name)},"type":'
            if isinstance(field.type, Primitive):
                run += self._primitive(field.type)
            elif isinstance(field.type, Union) and field.type.is_plain:
                plain = [b for b in field.type.branches if isinstance(b, Primitive)]
                run += f"[{','.join(map(self._primitive, plain))}]"
            else:
                items += (run, (field.type, record.name.space))
                run = ""
            run += self._after_type(field)
        items.append(f"{run}]{tail}}}")
        pending.extend(reversed(items))

    def _after_type(self, field: Field) -> str:
        text = "" if field.doc is None else f',"doc":{quote(field.doc)}'
        if field.default is not MISSING:
            text += f',"default":{write(self._default(field))}'
        if field.order != "ascending":
            text += f',"order":"{field.order}"'
        if field.aliases:
            text += f',"aliases":{write(self._field_aliases(field))}'
        return f"{text}{self._props(field, field.props)}}}"

    def _props(self, owner: Schema | Field, props: Props) -> str:
        return "".join([f",{quote(key)}:{write(value)}" for key, value in props.items()])

    def _aliases(self, schema: Named) -> Sequence[str]:
        return [alias.seen_from(schema.name.space) for alias in schema.aliases]

    def _field_aliases(self, field: Field) -> Sequence[str]:
        return list(field.aliases)

    def _doc(self, schema: Named) -> str | None:
        return schema.doc

    def _default(self, field: Field) -> Any:
        return field.default

    def _is_error(self, record: Record) -> bool:
        return record.is_error


PLAIN = Writer()
