"""Types of fields as readers see them: the encoding, and the meaning of the type's name."""

from dataclasses import dataclass

from barnabas.schemas.protobuf.nodes import SCALARS, Enum, Field, Group
from barnabas.schemas.protobuf.scope import Entry, Scope

_NUMBER = "number"
STRING_OR_BYTES = "string or bytes"
_SCALAR_KINDS = {
    **dict.fromkeys(["int32", "int64", "uint32", "uint64", "bool"], _NUMBER),
    **dict.fromkeys(["sint32", "sint64"], "zigzag"),
    **dict.fromkeys(["string", "bytes"], STRING_OR_BYTES),
    **dict.fromkeys(["fixed32", "sfixed32"], "fixed32"),
    **dict.fromkeys(["fixed64", "sfixed64"], "fixed64"),
    "float": "float",
    "double": "double",
}


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of a field with the scope that its names are resolved in.

    `kind` is scalar, message, group or map; `entry` is what its name means, if that was found.
    """

    kind: str
    name: str
    within: str
    entry: Entry | None = None
    key: str = ""

    @property
    def scalar_kind(self) -> str:
        return _NUMBER if self.entry is not None else _SCALAR_KINDS[self.name]


def type_of(node: Field | Group, within: str, scope: Scope) -> FieldType:
    """The type of a field of the message `within`."""
    if isinstance(node, Group):
        return FieldType("group", node.name, within, scope.resolve(node.name, within))
    if node.key_type is not None:
        return FieldType("map", node.type, within, None, node.key_type)
    return named_type(node.type, within, scope)


def named_type(name: str, within: str, scope: Scope) -> FieldType:
    """The type of a name as written in the message `within`."""
    if name in SCALARS:
        return FieldType("scalar", name, within)
    entry = scope.resolve(name, within)
    if entry is None:
        return FieldType("message", name, within)
    if isinstance(entry.node, Enum):
        return FieldType("scalar", name, within, entry)
    if entry.node.is_map_entry:
        parts = {one.name: one.type for one in entry.node.fields}
        if "key" in parts and "value" in parts:
            return FieldType("map", parts["value"], entry.full_name, None, parts["key"])
    return FieldType("message", name, within, entry)
