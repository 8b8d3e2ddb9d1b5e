"""Checks that a logical type fits its schema. One that does not is ignored."""

import math

from barnabas.schemas.avro.model import Array, Fixed, Primitive, Props, Record, Schema, Union

_ON_PRIMITIVES = {
    "big-decimal": "bytes",
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "uuid": "string",
}
_FIXED_BYTES = {"duration": 12, "uuid": 16}
# Properties that say which Java class a value becomes.
_JAVA_CLASSES = ("avro.java.string", "java-class", "java-key-class", "java-element-class")
_INT = range(-(1 << 31), 1 << 31)


def logical_type(schema: Schema) -> str | None:
    """The name of a logical type that Java or Confluent knows, if it fits the schema."""
    if isinstance(schema, Union):
        return None
    props = schema.props
    name = props.get("logicalType")
    if not isinstance(name, str) or any(isinstance(props.get(key), str) for key in _JAVA_CLASSES):
        return None
    return name if _fits(name, schema, props) else None


def _fits(name: str, schema: Schema, props: Props) -> bool:
    if name == "decimal":
        return _is_decimal(schema, props)
    if isinstance(schema, Primitive):
        return _ON_PRIMITIVES.get(name) == schema.kind
    if isinstance(schema, Fixed):
        return _FIXED_BYTES.get(name) == schema.size
    # Confluent's own: a map as an array of pairs, and a value of any type.
    if isinstance(schema, Array):
        pair = schema.items
        return name == "map" and isinstance(pair, Record) and _field_names(pair) == ["key", "value"]
    return (
        name == "variant"
        and isinstance(schema, Record)
        and sorted(_field_names(schema)) == ["metadata", "value"]
        and all(field.type.kind == "bytes" for field in schema.fields)
    )


def _field_names(record: Record) -> list[str]:
    return [field.name for field in record.fields]


def _is_decimal(schema: Schema, props: Props) -> bool:
    precision, scale = props.get("precision"), props.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or precision not in _INT:
        return False
    if isinstance(schema, Fixed):
        digits_max = math.floor(math.log10(2) * (8 * schema.size - 1))
    elif schema.kind == "bytes":
        digits_max = _INT[-1]
    else:
        return False
    return 0 < precision <= digits_max and 0 <= scale <= precision
