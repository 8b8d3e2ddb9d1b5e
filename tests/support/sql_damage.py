"""Damage to values that name their schema by its id."""

from __future__ import annotations

from hypothesis import strategies as st

from barnabas.schemas.wire_format import PREFIX_BYTES, prefix_of


@st.composite
def broken(draw: st.DrawFn, value: bytes) -> bytes | None:
    """The value, damaged."""
    kind = draw(st.integers(0, 5))
    place = draw(st.integers(0, len(value) - 1))
    if kind == 0:
        return draw(st.sampled_from((None, b"", b"\0", b"\0\0\0\0", b"{}", b"\0\0\0\0\1")))
    if kind == 1:
        return value[:place]
    if kind == 2:
        return value + draw(st.binary(min_size=1, max_size=3))
    if kind == 3:
        return prefix_of(99) + value[PREFIX_BYTES:]
    byte = draw(st.sampled_from((0, 1, 2, 3, 127, 128, 255)))
    return value[:place] + bytes((byte,)) + value[place + 1 :]
