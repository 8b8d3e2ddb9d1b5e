"""Requests drawn at random: every API in every version, whole or damaged."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from struct import pack
from typing import Any

from barnabas.protocol.apis import APIS
from barnabas.protocol.errors import EncodeError
from barnabas.protocol.frames import encode_request
from barnabas.protocol.schema import Field, FieldType, Struct

ITEMS_MAX = 3
INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
EDGES = (-1, 0, 1, 2, 100)
DAMAGES_MAX = 4


class RequestMaker:
    """Makes frames; `names` are strings that mean something to the node (topics, groups, users)."""

    def __init__(self, random: Random, names: list[str], ids: Sequence[bytes] = ()) -> None:
        """`ids` are those of topics that exist."""
        self._random = random
        self._names = names
        self._ids = ids

    def frame(self) -> bytes:
        """A request's frame without its length, well-formed in two cases of three."""
        whole = self._well_formed()
        return whole if self._random.random() < 2 / 3 else self._damaged(whole)

    def _well_formed(self) -> bytes:
        random = self._random
        while True:
            api = random.choice(list(APIS.values()))
            version = random.randint(api.min_version, api.max_version)
            try:
                return encode_request(
                    api.key,
                    version,
                    random.randrange(2**31),
                    random.choice([None, "", "fuzz"]),
                    self._struct(api.request, version),
                )
            except EncodeError:
                continue  # this version cannot say it

    def _damaged(self, frame: bytes) -> bytes:
        random = self._random
        data = bytearray(frame)
        for _ in range(random.randint(1, DAMAGES_MAX)):
            position = random.randrange(len(data) + 1)
            match random.randrange(5):
                case 0:
                    data[position : position + 1] = random.randbytes(1)
                case 1:
                    del data[position:]
                case 2:
                    data[position:position] = random.randbytes(random.randint(1, 9))
                case 3:
                    data[position : position + 4] = pack(
                        ">i", random.choice((2**31 - 1, -2, 65536))
                    )
                case _:
                    del data[position : position + random.randint(1, 5)]
        return bytes(data)

    def _struct(self, cls: type[Struct], version: int) -> Any:
        values = {
            field.name: self._field(field, version)
            for field in cls.SCHEMA.fields
            if field.versions.covers(version) and self._random.random() < 0.95
        }
        return cls(**values)

    def _field(self, field: Field, version: int) -> Any:
        if field.nullable.covers(version) and self._random.random() < 0.2:
            return None
        return self._value(field.type, version)

    def _value(self, of: FieldType, version: int) -> Any:
        if of.element is not None:
            count = self._random.randint(0, ITEMS_MAX)
            return [self._value(of.element, version) for _ in range(count)]
        if of.struct is not None:
            return self._struct(of.struct, version)
        return self._plain(of.kind)

    def _plain(self, kind: str) -> Any:
        random = self._random
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            edge = random.choice((*EDGES, low, high))
            return edge if low <= edge <= high else 0
        match kind:
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.choice((0.0, -1.0, 1.5, 1e308, float("nan"), float("inf")))
            case "uuid":
                return random.choice((bytes(16), random.randbytes(16), *self._ids))
            case "string":
                odd = random.choice(("", "*", "..", "a" * 300, "é\x00\n", "kafka-cluster"))
                return random.choice((*self._names, odd))
            case _:
                return random.randbytes(random.choice((0, 1, 61, 200)))
