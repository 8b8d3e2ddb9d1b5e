"""A batch: the records of one transaction, and the requests that wait for it.

A record keeps the value that it was encoded from. When it comes back from the topic, the committed
state takes this very value, as the speculative state did: a schema's text is in memory once.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.registry.errors import RegistryError
from barnabas.registry.service import Done
from barnabas.registry.store.encoding import encode_key, encode_value
from barnabas.registry.store.records import Key, Record, SchemaValue, Value


class NotStoredError(Exception):
    """Nothing of a request is in the topic, and nothing ever will be: it can be decided again."""


class OwnRecord:
    """A record that this instance writes, until it is read back."""

    __slots__ = ("is_applied", "key", "key_data", "timestamp_ms", "value", "value_data")

    def __init__(self, record: Record, now_ms: int) -> None:
        self.key: Key = record.key
        self.timestamp_ms = now_ms
        self.value = stamped(record.value, now_ms)
        self.key_data = encode_key(record.key)
        self.value_data = encode_value(record.value)
        self.is_applied = False
        """True if it was read back, committed, and the committed state has taken it."""

    @property
    def size_bytes(self) -> int:
        """Its size in a batch, without Kafka's overhead."""
        return len(self.key_data) + len(self.value_data or b"")


def stamped(value: Value | None, timestamp_ms: int) -> Value | None:
    """A value with the time of its record; the same object if it has that."""
    if isinstance(value, SchemaValue) and value.timestamp_ms != timestamp_ms:
        return replace(value, timestamp_ms=timestamp_ms)
    return value


class Request:
    """A request that is decided, and answered when what it rests on is committed."""

    __slots__ = ("answer", "outcome")

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        """The response, or the RegistryError that refuses."""
        self.answer: asyncio.Future[Done[Any]] = asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class Batch:
    """The records of one transaction, and their waiters."""

    records: list[OwnRecord] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    """The offsets of the records. Empty: the commit was never asked for."""

    @property
    def is_stored(self) -> bool:
        """True if the committed state holds all records."""
        return all(record.is_applied for record in self.records)

    def answer(self, offset: int) -> None:
        """Tell all who wait what was decided; it rests on records up to `offset`."""
        for request in self.requests:
            if request.answer.done():
                continue
            if isinstance(request.outcome, RegistryError):
                request.answer.set_exception(request.outcome)
            else:
                request.answer.set_result(Done(request.outcome, offset))

    def fail(self, error: NotStoredError | RegistryError) -> None:
        """Raise an error for all who wait."""
        for request in self.requests:
            if not request.answer.done():
                request.answer.set_exception(error)
