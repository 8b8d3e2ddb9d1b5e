"""Events of change capture as the sink accepts them: rows, deletes, truncations, decimals.

So no transform is needed between change capture and the sink. `ExtractNewRecordState` drops
truncations: who wants them must leave it out.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any, Final

from barnabas.connect.record import SinkRecord
from barnabas.connect.transforms.debezium.envelope import (
    AFTER,
    OPERATION,
    is_envelope,
    typed,
)
from barnabas.schemas.data.schema import Schema, Type

TRUNCATE: Final = "t"
VARIABLE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"
"""A struct of scale and unscaled value: each value of a numeric without a scale has its own."""
_WIDE: Final = Context(prec=20_000)


def is_truncation(record: SinkRecord) -> bool:
    """Return whether the record says that all of its table's rows are gone."""
    return (
        record.value is not None
        and is_envelope(record)
        and typed(record.value, OPERATION, Type.STRING) == TRUNCATE
    )


def unwrapped(record: SinkRecord) -> SinkRecord:
    """Return the record with the row after the change, none for a delete, in the envelope's place.

    Raises DataError for an envelope without `op` or `after`.
    """
    if record.value is None or not is_envelope(record):
        return record
    row = typed(record.value, AFTER, Type.STRUCT)
    return record.with_value(None if row is None else row.schema, row)


def plain(schema: Schema, value: Any) -> Any:
    """Return a decimal for Debezium's struct of one, and other values as they are."""
    if schema.name != VARIABLE_DECIMAL:
        return value
    unscaled = int.from_bytes(value.get("value"), "big", signed=True)
    return Decimal(unscaled).scaleb(-value.get("scale"), _WIDE)
