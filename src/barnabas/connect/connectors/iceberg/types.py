"""Arrow's types as Spark's SQL names them, and which change of a column a table can take."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from barnabas.schemas.data.errors import ConnectError

_NAMES: Final = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
}
_WIDER: Final = {("int", "bigint"), ("float", "double")}


def spark_type(type_: Any) -> str:
    """Return the name of a type. Raises ConnectError."""
    types = pa.types
    if types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        inner = ", ".join(f"{quoted(one.name)}: {spark_type(one.type)}" for one in fields)
        return f"struct<{inner}>"
    if types.is_list(type_) or types.is_large_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    if types.is_map(type_):
        return f"map<{spark_type(type_.key_type)}, {spark_type(type_.item_type)}>"
    if types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if types.is_time(type_):
        return "string"
    name = _NAMES.get(str(type_))
    if name is None:
        raise ConnectError(f"Arrow's type {type_} has no counterpart in Spark")
    return name


def is_wider(old: str, new: str) -> bool:
    """Whether a column of one type can become one of another without loss."""
    if (old, new) in _WIDER:
        return True
    if old.startswith("decimal(") and new.startswith("decimal("):
        (digits, scale), (wanted, wanted_scale) = (
            map(int, one[8:-1].split(",")) for one in (old, new)
        )
        return scale == wanted_scale and wanted > digits
    return False


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def texts_of_times(table: Any) -> Any:
    """Spark has no times of day: return the table with texts in their place."""
    for number, column in enumerate(table.schema):
        if pa.types.is_time(column.type):
            texts = [None if v is None else v.isoformat() for v in table[column.name].to_pylist()]
            table = table.set_column(
                number, pa.field(column.name, pa.string(), column.nullable), pa.array(texts)
            )
    return table
