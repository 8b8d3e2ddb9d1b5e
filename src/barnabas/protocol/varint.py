"""Variable-length integers: seven bits a byte, lowest first. Source: Kafka's ByteUtils.

Signed ones are zigzag encoded. A number that runs past the buffer, is longer than its type can
be, or does not fit its type raises DecodeError.
"""

from barnabas.base.disk import Buffer
from barnabas.protocol.errors import DecodeError

UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1
VARINT_SIZE_MAX = 5
VARLONG_SIZE_MAX = 10


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read 32 bits at most. Returns (value, position after it)."""
    try:
        value = buffer[position]
        if value < 0x80:
            return value, position + 1
        return _read_rest(buffer, position, value, VARINT_SIZE_MAX, UINT32_MAX)
    except IndexError:
        raise DecodeError("the buffer ends inside a varint") from None


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a signed number of 32 bits at most. Returns (value, position after it)."""
    value, position = read_unsigned_varint(buffer, position)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a signed number of 64 bits at most. Returns (value, position after it)."""
    try:
        value = buffer[position]
        position += 1
        if value >= 0x80:
            value, position = _read_rest(buffer, position - 1, value, VARLONG_SIZE_MAX, UINT64_MAX)
    except IndexError:
        raise DecodeError("the buffer ends inside a varlong") from None
    return (value >> 1) ^ -(value & 1), position


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append a number between 0 and 2^32 - 1."""
    assert 0 <= value <= UINT32_MAX, value
    _write(out, value)


def write_varint(out: bytearray, value: int) -> None:
    """Append a signed number of 32 bits."""
    assert -(2**31) <= value < 2**31, value
    _write(out, (value << 1) ^ (value >> 31))


def write_varlong(out: bytearray, value: int) -> None:
    """Append a signed number of 64 bits."""
    assert -(2**63) <= value < 2**63, value
    _write(out, (value << 1) ^ (value >> 63))


def _read_rest(
    buffer: Buffer, position: int, first: int, size_max: int, value_max: int
) -> tuple[int, int]:
    """Read on from a first byte, at `position`, that promised more."""
    value = first & 0x7F
    for index in range(1, size_max):
        byte = buffer[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value > value_max:
                break
            return value, position + index + 1
    raise DecodeError(f"a varint is longer than {size_max} bytes or {value_max:#x}")


def _write(out: bytearray, value: int) -> None:
    value &= UINT64_MAX
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
