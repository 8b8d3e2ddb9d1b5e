"""The parts of Debezium's events that are PostgreSQL's own: their source, and logical messages."""

from __future__ import annotations

from typing import Final

from barnabas.connect.cdc.envelopes import SNAPSHOT_MARK
from barnabas.connect.cdc.transactions import TRANSACTION_BLOCK
from barnabas.schemas.data.builder import (
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    struct_of,
)
from barnabas.schemas.data.schema import Struct

SOURCE: Final = struct_of(
    {
        "version": STRING,
        "connector": STRING,
        "name": STRING,
        "ts_ms": INT64,
        "snapshot": SNAPSHOT_MARK,
        "db": STRING,
        "sequence": OPTIONAL_STRING,
        "ts_us": OPTIONAL_INT64,
        "ts_ns": OPTIONAL_INT64,
        "schema": STRING,
        "table": STRING,
        "txId": OPTIONAL_INT64,
        "lsn": OPTIONAL_INT64,
        "xmin": OPTIONAL_INT64,
    },
    name="io.debezium.connector.postgresql.Source",
    version=1,
)
_MESSAGE: Final = struct_of(
    {"prefix": OPTIONAL_STRING, "content": OPTIONAL_BYTES},
    name="io.debezium.connector.postgresql.Message",
    version=1,
)
MESSAGE_KEY: Final = struct_of(
    {"prefix": OPTIONAL_STRING}, name="io.debezium.connector.postgresql.MessageKey", version=1
)
MESSAGE_VALUE: Final = struct_of(
    {
        "op": STRING,
        "ts_ms": OPTIONAL_INT64,
        "source": SOURCE,
        "transaction": TRANSACTION_BLOCK,
        "message": _MESSAGE,
    },
    name="io.debezium.connector.postgresql.MessageValue",
    version=1,
)


def message_value(
    ts_ms: int, source: Struct, block: Struct | None, prefix: str, content: bytes
) -> Struct:
    """Return the value of a logical message's record."""
    return Struct(MESSAGE_VALUE, ["m", ts_ms, source, block, Struct(_MESSAGE, [prefix, content])])
