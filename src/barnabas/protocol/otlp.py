"""Metrics as OpenTelemetry's protocol writes them: the few messages that clients push (KIP-714).

It reads the names of metrics, and the number data points of gauges and sums with their attributes.
Histograms and summaries are ignored; Kafka's clients send none. Source:
opentelemetry/proto/metrics/v1/metrics.proto.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError

POINTS_MAX: Final = 10_000
"""Of one push; Kafka's clients have a few hundred."""
FIELDS_MAX: Final = 200_000
"""Of one push, in all of its messages: some 0.1 s of work."""
_DOUBLE: Final = Struct("<d")
_FIXED64: Final = Struct("<q")
_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5
DELTA: Final = 1
"""A sum's temporality: its points count from the last push."""

Field = tuple[int, int, "int | memoryview"]
"""Number, wire type and value."""


class Point(NamedTuple):
    """One value of a metric."""

    name: str
    is_counter: bool
    is_delta: bool
    value: float
    attributes: tuple[tuple[str, str], ...]


def read_metrics(data: bytes) -> list[Point]:
    """The points of a `MetricsData`. Raises DecodeError for anything else, and for too many."""
    points: list[Point] = []
    reader = _MessageReader()
    try:
        for resource in reader.messages(memoryview(data), 1):
            for scope in reader.messages(resource, 2):
                for metric in reader.messages(scope, 2):
                    points += reader.points(metric)
                    if len(points) > POINTS_MAX:
                        raise DecodeError(f"more than {POINTS_MAX} data points")
    except (IndexError, UnicodeDecodeError) as error:
        raise DecodeError("the metrics do not decode") from error
    return points


class _MessageReader:
    """Reads messages, and counts their fields."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = FIELDS_MAX

    def points(self, metric: memoryview) -> Iterator[Point]:
        """The points of a metric."""
        name = ""
        is_counter = is_delta = False
        found: list[memoryview] = []
        for number, kind, value in self._fields(metric):
            if not isinstance(value, memoryview):
                continue
            if number == 1:
                name = str(value, "utf-8")
            elif number == 5 and kind == _BYTES:  # gauge
                found += self.messages(value, 1)
            elif number == 7 and kind == _BYTES:  # sum
                found += self.messages(value, 1)
                numbers = {n: v for n, k, v in self._fields(value) if k == _VARINT}
                is_delta = numbers.get(2) == DELTA
                is_counter = bool(numbers.get(3, 0))
        for point in found:
            measured: float = 0
            attributes: list[tuple[str, str]] = []
            for field, kind, value in self._fields(point):
                if field == 4 and kind == _I64 and isinstance(value, memoryview):
                    (measured,) = _DOUBLE.unpack(value)
                elif field == 6 and kind == _I64 and isinstance(value, memoryview):
                    (measured,) = _FIXED64.unpack(value)
                elif field == 7 and isinstance(value, memoryview):
                    attributes.append(self._attribute(value))
            yield Point(name, is_counter, is_delta, measured, tuple(attributes))

    def _attribute(self, pair: memoryview) -> tuple[str, str]:
        key, text = "", ""
        for number, _, value in self._fields(pair):
            if not isinstance(value, memoryview):
                continue
            if number == 1:
                key = str(value, "utf-8")
            elif number == 2:
                for field, kind, content in self._fields(value):
                    if field == 1 and isinstance(content, memoryview):
                        text = str(content, "utf-8")
                    elif kind == _VARINT:
                        text = str(content)
                    elif kind == _I64 and isinstance(content, memoryview):
                        text = str(_DOUBLE.unpack(content)[0])
        return key, text

    def messages(self, data: memoryview, number: int) -> Iterator[memoryview]:
        """The fields of that number that are messages."""
        for found, kind, value in self._fields(data):
            if found == number and kind == _BYTES and isinstance(value, memoryview):
                yield value

    def _fields(self, data: memoryview) -> Iterator[Field]:
        """All fields of a message. Raises IndexError where it ends too early, and DecodeError."""
        position, end = 0, len(data)
        while position < end:
            self._left -= 1
            if self._left < 0:
                raise DecodeError(f"more than {FIELDS_MAX} fields")
            tag, position = _varint(data, position)
            kind = tag & 7
            if kind == _VARINT:
                number, position = _varint(data, position)
                yield tag >> 3, kind, number
                continue
            if kind == _BYTES:
                size, position = _varint(data, position)
            elif kind in (_I64, _I32):
                size = 8 if kind == _I64 else 4
            else:
                raise DecodeError(f"wire type {kind} of protobuf is not supported")
            if position + size > end:
                raise DecodeError("a field ends after its message")
            yield tag >> 3, kind, data[position : position + size]
            position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise DecodeError("a number of protobuf is too long")
