"""SCRAM without I/O: what both sides compute, and the messages of the side that logs in.

Three messages prove that both sides know the password, and neither says it. Channel binding is
left out, as in Kafka. Source: RFC 5802; RFC 7677 for SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISM_NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Kafka's numbers of them, in records and requests."""
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384
"""The bounds of what Kafka stores. A client computes no more than `CLIENT_ITERATIONS_MAX`."""
CLIENT_ITERATIONS_MAX: Final = 1_000_000
"""A server that asks for more wants this side's time, and not its login."""
_HEADER: Final = "n,,"


class ScramError(ValueError):
    """The server does not follow the protocol, or does not know the password."""


class ScramKeys(NamedTuple):
    """The part of a password that a server stores."""

    stored_key: bytes
    server_key: bytes


def salted_password(algorithm: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The password as both keys are derived from it. It takes as long as the iterations say."""
    return hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)


def keys_of(algorithm: str, salted: bytes) -> ScramKeys:
    """The keys of a salted password."""
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    return ScramKeys(
        hashlib.new(algorithm, client_key).digest(), hmac.digest(salted, b"Server Key", algorithm)
    )


def proves(algorithm: str, stored_key: bytes, auth_message: bytes, proof: bytes) -> bool:
    """Return whether a proof shows that its sender knows the password, in constant time."""
    signature = hmac.digest(stored_key, auth_message, algorithm)
    if len(proof) != len(signature):
        return False
    client_key = _xor(proof, signature)
    return hmac.compare_digest(hashlib.new(algorithm, client_key).digest(), stored_key)


def _xor(one: bytes, other: bytes) -> bytes:
    joined = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")
    return joined.to_bytes(len(one), "big")


def escaped(name: str) -> str:
    """A user's name as messages have it."""
    return name.replace("=", "=3D").replace(",", "=2C")


class ScramClient:
    """One exchange; `nonce` is a random text without commas."""

    def __init__(
        self,
        mechanism: str,
        user: str,
        password: str,
        nonce: str,
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        """`extensions`: further attributes for the server, such as `tokenauth=true` (KIP-48)."""
        self._hash = HASHES[mechanism]
        self._password = password
        self._nonce = nonce
        told = "".join(f",{name}={value}" for name, value in (extensions or {}).items())
        self._first = f"n={escaped(user)},r={nonce}{told}"
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
        if "m" in fields:
            raise ScramError("the server asks for an extension that is not known")
        if not nonce.startswith(self._nonce) or iterations < 1:
            raise ScramError("the server's first message answers another client")
        if iterations > CLIENT_ITERATIONS_MAX:
            raise ScramError(f"the server asks for {iterations} iterations")
        bare = f"c={base64.b64encode(_HEADER.encode()).decode()},r={nonce}"
        message = b",".join((self._first.encode(), server_first, bare.encode()))
        salted = salted_password(self._hash, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key, server_key = keys_of(self._hash, salted)
        proof = _xor(client_key, hmac.digest(stored_key, message, self._hash))
        self._server_signature = hmac.digest(server_key, message, self._hash)
        return f"{bare},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check that the server knows the password too. Raises ScramError."""
        fields = _fields(server_final)
        if "e" in fields:
            raise ScramError(fields["e"])
        want = base64.b64encode(self._server_signature)
        if not self._server_signature or not hmac.compare_digest(
            fields.get("v", "").encode(), want
        ):
            raise ScramError("the server does not know the password")


def _fields(message: bytes) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.decode("utf-8", "replace").split(","))
    return {name: value for name, _, value in pairs}
