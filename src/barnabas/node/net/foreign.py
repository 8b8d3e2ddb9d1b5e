"""Peers that speak another protocol, told by the first bytes that they send.

Kafka's protocol begins with a length, so a TLS handshake reads as a frame of 369 million bytes.
"""

from typing import Final

from barnabas.base.disk import Buffer

_TLS_RECORDS: Final = {0x15: "alert", 0x16: "handshake"}
_TLS_MAJOR: Final = 3
_HTTP: Final = frozenset(
    {b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ", b"HTTP"}
)


def what_it_looks_like(head: Buffer) -> str:
    """What the four bytes in the place of a length are instead; empty if nothing known."""
    first = bytes(head[:4])
    if len(first) == 4 and first[0] in _TLS_RECORDS and first[1] == _TLS_MAJOR:
        kind = _TLS_RECORDS[first[0]]
        return f"this looks like a TLS {kind}, but the connection is plaintext"
    if first in _HTTP:
        return "this looks like HTTP, not Kafka's protocol"
    return ""
