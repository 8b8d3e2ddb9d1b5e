"""Java's own key stores (JKS), which the standard library of Java still reads and writes.

A store is a list of entries with an SHA-1 of all of it and of the password behind them. Private
keys are masked with a stream of SHA-1 blocks that begins with a salt and their password. Source:
OpenJDK's sun.security.provider.JavaKeyStore and KeyProtector.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass, field
from typing import Final

from barnabas.base.tls.x509 import content_of

MAGIC: Final = b"\xfe\xed\xfe\xed"
_VERSIONS: Final = (1, 2)
_KEY_ENTRY: Final = 1
_TRUSTED_ENTRY: Final = 2
_DIGEST_SIZE_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"


class KeyStoreError(ValueError):
    """A store that cannot be read, or not with this password."""


@dataclass(slots=True)
class KeyStore:
    """The content of a store, in DER form."""

    keys: list[bytes] = field(default_factory=list, repr=False)
    """Private keys (PKCS 8), in the order of the store."""
    chains: list[list[bytes]] = field(default_factory=list, repr=False)
    """The certificates of each key, its own first."""
    trusted: list[bytes] = field(default_factory=list, repr=False)


def read_jks(data: bytes, password: str | None, key_password: str | None = None) -> KeyStore:
    """Without `password` nothing is checked and no key read. Raises KeyStoreError."""
    if password is not None:
        content, digest = data[:-_DIGEST_SIZE_BYTES], data[-_DIGEST_SIZE_BYTES:]
        expected = hashlib.sha1(_utf16(password) + _WHITENER + content).digest()
        if not hmac.compare_digest(expected, digest):
            raise KeyStoreError("the password is wrong, or the file was changed")
    try:
        return _read(data, key_password if key_password is not None else password)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise KeyStoreError("the file is cut off or damaged") from error


def _read(data: bytes, key_password: str | None) -> KeyStore:
    reader = _KeyStoreReader(data)
    magic, version, count = reader.take(4), reader.number(4), reader.number(4)
    if magic != MAGIC or version not in _VERSIONS:
        raise KeyStoreError("this is not a JKS file")
    store = KeyStore()
    for _ in range(count):
        kind = reader.number(4)
        reader.take(reader.number(2))  # its alias
        reader.take(8)  # when it was made
        if kind == _KEY_ENTRY:
            protected = reader.take(reader.number(4))
            chain = [reader.certificate(version) for _ in range(reader.number(4))]
            if key_password is not None:
                store.keys.append(_unmask(protected, key_password))
                store.chains.append(chain)
        elif kind == _TRUSTED_ENTRY:
            store.trusted.append(reader.certificate(version))
        else:
            raise KeyStoreError(f"there is no entry of kind {kind} in a JKS file")
    return store


class _KeyStoreReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size_bytes: int) -> bytes:
        piece = self._data[self._position : self._position + size_bytes]
        if len(piece) < size_bytes:
            raise KeyStoreError("the file is cut off or damaged")
        self._position += size_bytes
        return piece

    def number(self, size_bytes: int) -> int:
        return int.from_bytes(self.take(size_bytes), "big")

    def certificate(self, version: int) -> bytes:
        if version != 1:
            self.take(self.number(2))  # its type, X.509
        return self.take(self.number(4))


def _unmask(protected: bytes, password: str) -> bytes:
    """The private key behind its algorithm's number. Raises KeyStoreError."""
    try:
        masked = content_of(protected)[1][1]
    except (ValueError, IndexError) as error:
        raise KeyStoreError("a private key is damaged") from error
    secret = _utf16(password)
    size = _DIGEST_SIZE_BYTES
    block, body, check = masked[:size], masked[size:-size], masked[-size:]
    stream = bytearray()
    while len(stream) < len(body):
        block = hashlib.sha1(secret + block).digest()
        stream += block
    key = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise KeyStoreError("the password of the private key is wrong")
    return key


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")
