"""SCRAM as a client speaks it, without I/O: three messages prove that both sides know the password.

Source: RFC 5802; RFC 7677 for SHA-256. Channel binding is left out, as in Kafka.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_HEADER: Final = "n,,"


class ScramError(ValueError):
    """The server does not follow the protocol, or does not know the password."""


class ScramClient:
    """One exchange; `nonce` is a random text without commas."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        """Return what the client opens with."""
        return (_HEADER + self._first).encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the proof for the server's salt and count of iterations. Raises ScramError."""
        fields = _fields(server_first)
        try:
            nonce, iterations = fields["r"], int(fields["i"])
            salt = base64.b64decode(fields["s"], validate=True)
        except (KeyError, ValueError) as error:
            raise ScramError("the server's first message has no nonce, salt or count") from error
        if not nonce.startswith(self._nonce) or iterations < 1:
            raise ScramError("the server's first message answers another client")
        bare = f"c={base64.b64encode(_HEADER.encode()).decode()},r={nonce}"
        message = f"{self._first},{server_first.decode()},{bare}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._hash, client_key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._mac(self._mac(salted, b"Server Key"), message)
        return f"{bare},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the server knows the password too. Raises ScramError."""
        fields = _fields(server_final)
        if "e" in fields:
            raise ScramError(fields["e"])
        want = base64.b64encode(self._server_signature).decode()
        if not hmac.compare_digest(fields.get("v", ""), want):
            raise ScramError("the server does not know the password")

    def _mac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def _fields(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode("utf-8", "replace").split(","))
    return {name: value for name, _, value in pairs}
