"""The table of formats, with a cache of parsed schemas.

A format's modules are loaded when the first text of it comes: those of Protobuf and JSON Schema
take 6 MB and most of the start, and most registries have Avro only.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from barnabas.schemas.schema import ParsedSchema, ResolvedReference, SchemaFormat

REMEMBERED_MAX = 1000
"""Confluent's `schema.cache.size`, by default."""
REMEMBERED_CHARS_MAX = 8 << 20
"""Of the texts of all that is remembered. A parsed schema takes many times its text in memory."""
_Key = tuple[str, str, tuple[ResolvedReference, ...], bool]


class FormatTable:
    """Formats by their type, in Confluent's order, and the schemas that were parsed last."""

    def __init__(
        self,
        loaders: Mapping[str, Callable[[], SchemaFormat]],
        remembered_max: int = REMEMBERED_MAX,
    ) -> None:
        """`loaders` make the format of a type; each is called once, when it is needed."""
        self._loaders = loaders
        self._formats: dict[str, SchemaFormat] = {}
        self._remembered_max = remembered_max
        self._chars = 0
        """Of the texts that are remembered."""
        self._remembered: OrderedDict[_Key, ParsedSchema] = OrderedDict()

    def types(self) -> Sequence[str]:
        """The types of schemas."""
        return list(self._loaders)

    def parse(
        self,
        schema_type: str,
        text: str,
        references: Sequence[ResolvedReference] = (),
        *,
        is_new: bool = False,
    ) -> ParsedSchema:
        """Parse a text of a type out of `types()`. Raises SchemaFault."""
        key = (schema_type, text, tuple(references), is_new)
        parsed = self._remembered.get(key)
        if parsed is not None:
            self._remembered.move_to_end(key)
            return parsed
        parsed = self._format(schema_type).parse(text, references, is_new=is_new)
        self._remembered[key] = parsed
        self._chars += _chars(key)
        while len(self._remembered) > self._remembered_max or self._chars > REMEMBERED_CHARS_MAX:
            forgotten, _ = self._remembered.popitem(last=False)
            self._chars -= _chars(forgotten)
        return parsed

    def apart(self) -> "FormatTable":
        """The same formats, and nothing parsed yet."""
        return FormatTable(self._loaders, self._remembered_max)

    def _format(self, schema_type: str) -> SchemaFormat:
        loaded = self._formats.get(schema_type)
        if loaded is None:
            loaded = self._formats[schema_type] = self._loaders[schema_type]()
        return loaded


def _chars(key: _Key) -> int:
    return len(key[1]) + sum(len(reference.text) for reference in key[2])


def all_formats(remembered_max: int = REMEMBERED_MAX) -> FormatTable:
    """JSON, PROTOBUF and AVRO."""
    return FormatTable({"JSON": _json_schema, "PROTOBUF": _protobuf, "AVRO": _avro}, remembered_max)


def _json_schema() -> SchemaFormat:
    from barnabas.schemas.json_schema.schema import JsonSchemaFormat

    return JsonSchemaFormat()


def _protobuf() -> SchemaFormat:
    from barnabas.schemas.protobuf.schema import ProtobufFormat

    return ProtobufFormat()


def _avro() -> SchemaFormat:
    from barnabas.schemas.avro.schema import AvroFormat

    return AvroFormat()
