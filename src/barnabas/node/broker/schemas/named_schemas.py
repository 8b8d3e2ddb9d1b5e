"""The schemas that a large batch names, noted while its records are checked in steps."""

from collections.abc import Collection
from typing import Final

from barnabas.node.broker.schemas.wire_format import KEY_HEADER, VALUE_HEADER, identities_of
from barnabas.node.log.config import SchemaValidation
from barnabas.node.log.validator import RECORD_ERRORS_MAX
from barnabas.protocol.records.records import Record, decode_deltas

IDENTITIES_MAX: Final = 4096
"""A batch that names more schemas is refused: they take memory, and the registry must be asked."""


class NamedSchemas:
    """A `Watch` that keeps each identity, with the first records that have it."""

    __slots__ = ("_keys", "_values", "has_too_many", "names", "places")

    def __init__(self, validation: SchemaValidation) -> None:
        self._keys = validation.key_strategy is not None
        self._values = validation.value_strategy is not None
        self.names: Collection[bytes] = (KEY_HEADER.encode(), VALUE_HEADER.encode())
        self.places: dict[tuple[bytes, bool], list[int]] = {}
        """Of an identity, and whether it is a key's: indexes of records."""
        self.has_too_many = False

    def see_records(self, data: bytes, index: int) -> None:
        """Well-formed records, whole, of which the first is record `index`."""
        for number, record in enumerate(decode_deltas(data, index), index):
            self._see(number, record)

    def see_large(
        self,
        index: int,
        key: bytes | None,
        value: bytes | None,
        headers: dict[bytes, bytes | None],
    ) -> None:
        """The beginnings of a large record's key, value and headers."""
        named = [(name.decode(), beginning) for name, beginning in headers.items()]
        self._see(index, Record(key=key, value=value, headers=named))

    def _see(self, index: int, record: Record) -> None:
        key, value = identities_of(record)
        if self._keys and key is not None:
            self._note(index, (key, True))
        if self._values and value is not None:
            self._note(index, (value, False))

    def _note(self, index: int, named: tuple[bytes, bool]) -> None:
        places = self.places.get(named)
        if places is None:
            if len(self.places) >= IDENTITIES_MAX:
                self.has_too_many = True
                return
            places = self.places[named] = []
        if len(places) < RECORD_ERRORS_MAX:
            places.append(index)
