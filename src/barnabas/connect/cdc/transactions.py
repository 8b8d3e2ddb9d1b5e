"""Metadata of transactions: an event's place in its own, and records of their begin and end.

A transaction may be cut between micro-batches: what is counted so far is stored with the offset, in
Debezium's keys.

Source: Debezium's documentation, "Transaction metadata".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.connect.record import JsonMap
from barnabas.schemas.data.builder import (
    INT64,
    OPTIONAL_INT64,
    STRING,
    array_of,
    optional,
    struct_of,
)
from barnabas.schemas.data.schema import Struct

TRANSACTION_BLOCK: Final = struct_of(
    {"id": STRING, "total_order": INT64, "data_collection_order": INT64},
    name="event.block",
    version=1,
    optional=True,
)
_COLLECTION: Final = struct_of(
    {"data_collection": STRING, "event_count": INT64},
    name="event.collection",
    version=1,
    optional=True,
)
KEY: Final = struct_of(
    {"id": STRING}, name="io.debezium.connector.common.TransactionMetadataKey", version=1
)
VALUE: Final = struct_of(
    {
        "status": STRING,
        "id": STRING,
        "event_count": OPTIONAL_INT64,
        "data_collections": optional(array_of(_COLLECTION)),
        "ts_ms": INT64,
    },
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)
MESSAGES: Final = "message"
"""The name under which logical messages are counted."""
_ORDER: Final = "transaction_data_collection_order_"


class EventCounts:
    """The number of events of a transaction so far, by table."""

    def __init__(self, by_collection: Mapping[str, int] | None = None) -> None:
        self.by_collection = dict(by_collection or {})

    @staticmethod
    def of_offset(offset: JsonMap) -> EventCounts:
        """Read those of the transaction that a stored offset is in."""
        return EventCounts(
            {
                name.removeprefix(_ORDER): int(count)
                for name, count in offset.items()
                if name.startswith(_ORDER)
            }
        )

    @staticmethod
    def kept(offset: JsonMap) -> dict[str, Any]:
        """Return what a stored offset has of it, as it is."""
        names = ("transaction_id", *(name for name in offset if name.startswith(_ORDER)))
        return {name: offset[name] for name in names if name in offset}

    @property
    def total(self) -> int:
        return sum(self.by_collection.values())

    def json(self, transaction_id: str) -> dict[str, Any]:
        """Return what a stored offset has of them."""
        counts = {f"{_ORDER}{name}": count for name, count in self.by_collection.items()}
        return {"transaction_id": transaction_id, **counts}

    def add(self, collection: str, events: int = 1) -> int:
        """Count more events of a table; returns how many there are."""
        count = self.by_collection.get(collection, 0) + events
        self.by_collection[collection] = count
        return count

    def block(self, transaction_id: str, collection: str) -> Struct:
        """Count one more event, and return its place."""
        count = self.add(collection)
        return Struct(TRANSACTION_BLOCK, [transaction_id, self.total, count])

    def ended(self, transaction_id: str, now_ms: int) -> Struct:
        """Return the value of the record of the transaction's end."""
        collections = [
            Struct(_COLLECTION, [name, count]) for name, count in self.by_collection.items()
        ]
        return Struct(VALUE, ["END", transaction_id, self.total, collections, now_ms])


def begun(transaction_id: str, now_ms: int) -> Struct:
    """Return the value of the record of a transaction's begin."""
    return Struct(VALUE, ["BEGIN", transaction_id, None, None, now_ms])
