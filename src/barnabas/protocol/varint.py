"""Variable-length integers: seven bits a byte, lowest first. Source: Kafka's ByteUtils.

Signed ones are zigzag encoded. A number that runs past the buffer, is longer than its type can
be, or does not fit its type raises DecodeError.
"""

from barnabas.base.disk import Buffer
from barnabas.protocol.errors import DecodeError

UINT32_MAX = 2**32 - 1
VARINT_SIZE_MAX = 5


def read_unsigned_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read 32 bits at most. Returns (value, position after it)."""
    try:
        value = buffer[position]
        if value < 0x80:
            return value, position + 1
        return _read_rest(buffer, position, value)
    except IndexError:
        raise DecodeError("the buffer ends inside a varint") from None


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """Read a signed number of 32 bits at most. Returns (value, position after it)."""
    value, position = read_unsigned_varint(buffer, position)
    return (value >> 1) ^ -(value & 1), position


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append a number between 0 and 2^32 - 1."""
    assert 0 <= value <= UINT32_MAX, value
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _read_rest(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Read on from a first byte, at `position`, that promised more."""
    value = first & 0x7F
    for index in range(1, VARINT_SIZE_MAX):
        byte = buffer[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value > UINT32_MAX:
                break
            return value, position + index + 1
    raise DecodeError(f"a varint is longer than {VARINT_SIZE_MAX} bytes or {UINT32_MAX:#x}")
