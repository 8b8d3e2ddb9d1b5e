"""Failed handshakes in words: what the other side spoke, or why one refused the other.

Kafka's protocol begins with a length, so a TLS handshake reads as a frame of 369 million bytes.
"""

import ssl
from typing import Final

from barnabas.base.disk import Buffer

PLAIN_TEXT_REFUSED: Final = bytes((0x15, 3, 3, 0, 2, 2, 70))
"""A fatal alert, `protocol_version`, for a peer that does not speak TLS."""
CLOSED_DURING_HANDSHAKE: Final = "it closed the connection during the TLS handshake"

_TLS_RECORDS: Final = {0x15: "alert", 0x16: "handshake"}
_TLS_MAJOR: Final = 3
_HTTP: Final = frozenset(
    {b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"PRI ", b"HTTP"}
)
_TLS_HANDSHAKE: Final = 0x16
_TLS_ALERT: Final = 0x15
_API_KEY_MAX: Final = 1000
_WORDS: Final = {
    "CERTIFICATE_REQUIRED": "it requires a client certificate, and none is configured",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate, which is required here",
    "ALERT_CERTIFICATE_EXPIRED": "it refused our certificate: expired",
    "ALERT_CERTIFICATE_REVOKED": "it refused our certificate: revoked",
    "ALERT_CERTIFICATE_UNKNOWN": "it refused our certificate",
    "ALERT_BAD_CERTIFICATE": "it refused our certificate",
    "ALERT_UNKNOWN_CA": "it does not trust the authority that signed our certificate",
    "ALERT_HANDSHAKE_FAILURE": "it accepts none of our cipher suites, or requires a certificate",
    "ALERT_PROTOCOL_VERSION": "it accepts none of our TLS versions",
    "NO_SHARED_CIPHER": "no cipher suite is common to both sides",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "it accepts no signature of our certificate's key",
    "UNSUPPORTED_PROTOCOL": "it offers only versions of TLS that are not enabled here",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "HTTP_REQUEST": "it speaks HTTP, not TLS",
}


class TlsError(ConnectionError):
    """There is no TLS with this peer. Its text says why, and needs no traceback."""


def reason_of(error: BaseException) -> str:
    """Say in words why TLS failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        for name, words in _WORDS.items():
            if error.reason.endswith(name):
                return words
        return error.reason.replace("_", " ").lower()
    return str(error) or type(error).__name__


def speaks_tls(first: int) -> bool:
    """Return whether a connection may be TLS, by its first byte."""
    return first in (_TLS_HANDSHAKE, _TLS_ALERT)


def what_plain_peer_speaks(head: Buffer) -> str:
    """Say what a peer speaks that sent no TLS to a TLS port, by its first bytes."""
    guess = what_it_looks_like(head)
    if guess:
        return guess
    first = bytes(head[:12])
    if len(first) >= 6 and first[:1] == b"\0" and int.from_bytes(first[4:6], "big") < _API_KEY_MAX:
        return "it sends Kafka requests in plain text: set its security.protocol to SSL or SASL_SSL"
    return "it does not speak TLS"


def what_it_looks_like(head: Buffer) -> str:
    """Name another protocol by the four bytes in place of a length; empty if it is unknown."""
    first = bytes(head[:4])
    if len(first) == 4 and first[0] in _TLS_RECORDS and first[1] == _TLS_MAJOR:
        kind = _TLS_RECORDS[first[0]]
        return f"this looks like a TLS {kind}, but the connection is plaintext"
    if first in _HTTP:
        return "this looks like HTTP, not Kafka's protocol"
    return ""
