"""Metrics in the bytes of OpenTelemetry's protocol."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def double(value: float) -> bytes:
    return varint(4 << 3 | 1) + struct.pack("<d", value)


def integer(value: int) -> bytes:
    return varint(6 << 3 | 1) + struct.pack("<q", value)


def attribute(key: str, value: str) -> bytes:
    return field(7, field(1, key.encode()) + field(2, field(1, value.encode())))


def gauge(name: str, *points: bytes) -> bytes:
    return field(2, field(1, name.encode()) + field(5, b"".join(field(1, p) for p in points)))


def total(name: str, point: bytes, temporality: int, *, is_monotonic: bool) -> bytes:
    facts = number_field(2, temporality) + number_field(3, is_monotonic)
    return field(2, field(1, name.encode()) + field(7, field(1, point) + facts))


def metrics_data(*metrics: bytes) -> bytes:
    resource = field(1, field(1, field(1, b"client.rack")))
    return field(1, resource + field(2, field(1, b"scope") + b"".join(metrics)))
