"""Messages to bytes and back, by code that is compiled at first use.

For each (message class, version) that is met, `encoder` and `decoder` write straight-line Python
for it and all its structs: no look-up by field, no branch on the version, adjacent fixed-width
fields (and the length that follows them) in one `struct` call. `tests/property` compares the
bytes with an independent codec.

What a peer sends is not trusted: lengths and counts are compared with the bytes that remain
before anything is allocated, the elements of a request are counted, and only DecodeError leaves
`decode` and `decode_at`.
"""

from barnabas.protocol.codec.api import decode, decode_at, encode, encode_parts

__all__ = ["decode", "decode_at", "encode", "encode_parts"]
