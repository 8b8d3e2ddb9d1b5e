"""Variable-length integers at their edges."""

import pytest

from barnabas.protocol import varint
from barnabas.protocol.errors import DecodeError

UNSIGNED = [
    (0, "00"),
    (127, "7f"),
    (128, "8001"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]
SIGNED = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "data"), UNSIGNED)
def test_unsigned(value: int, data: str) -> None:
    out = bytearray(b"x")
    varint.write_unsigned_varint(out, value)
    assert out[1:].hex() == data
    assert varint.read_unsigned_varint(out, 1) == (value, len(out))


@pytest.mark.parametrize(("value", "data"), SIGNED)
def test_signed(value: int, data: str) -> None:
    encoded = bytes.fromhex(f"00{data}")
    assert varint.read_varint(memoryview(encoded), 1) == (value, len(encoded))


@pytest.mark.parametrize("data", ["", "80", "ffffffff", "ffffffff10", "808080808000", "ffffffff8f"])
def test_refused(data: str) -> None:
    with pytest.raises(DecodeError):
        varint.read_unsigned_varint(bytes.fromhex(data), 0)
    with pytest.raises(DecodeError):
        varint.read_varint(bytes.fromhex(data), 0)
