"""JSON Web Key Sets: an issuer's public keys, as its endpoint or a file lists them (RFC 7517).

Keys that cannot sign tokens here (secrets, keys for encryption, RSA under 2048 bits, kinds not
known) are passed over, since a set may serve others too.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from barnabas.base.errors import install_hint
from barnabas.base.oauth.bearer import InvalidTokenError

ALGORITHMS: Final = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", None),
}
"""The algorithms that may sign a token, with kind of key and curve."""
KEYS_MAX: Final = 100
"""The most keys that are read of one set."""
RSA_BITS_MIN: Final = 2048
CURVES: Final = frozenset({"P-256", "P-384", "P-521", "Ed25519", "Ed448"})
LIBRARY_MISSING: Final = f"tokens' signatures need a library: {install_hint('security')}"


class KeySetError(ValueError):
    """The fetched or read text is not a key set."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key that may have signed a token."""

    key_id: str | None
    kind: str
    curve: str | None
    algorithm: str | None
    """The only one that it is for, where it says so."""
    key: Any

    def fits(self, algorithm: str) -> bool:
        """Return whether it can have made a signature of this algorithm."""
        kind, curve = ALGORITHMS[algorithm]
        return (
            self.kind == kind
            and curve in (None, self.curve)
            and self.algorithm in (None, algorithm)
        )

    def verifies(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Return whether it made the signature."""
        import jwt

        try:
            method = jwt.get_algorithm_by_name(algorithm)
            return bool(method.verify(signed, self.key, signature))
        except (jwt.PyJWTError, ValueError, TypeError):
            return False


class KeySet:
    """The keys of one set."""

    def __init__(self, keys: Sequence[PublicKey]) -> None:
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def fitting(self, algorithm: str, key_id: str | None) -> list[PublicKey]:
        """The keys that a token may have been signed with, by what its header says."""
        return [
            key
            for key in self._keys
            if key.fits(algorithm) and (key_id is None or key.key_id == key_id)
        ]


def parse_key_set(text: str | bytes) -> KeySet:
    """Read a key set. Raises KeySetError, and InvalidTokenError without the library."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise KeySetError("the key set is not JSON") from error
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise KeySetError("the key set has no list of keys")
    keys = []
    for entry in entries[:KEYS_MAX]:
        key = _public_key(entry) if isinstance(entry, dict) else None
        if key is not None:
            keys.append(key)
    if not keys:
        raise KeySetError("the key set has no key that signs tokens")
    return KeySet(keys)


def _public_key(entry: dict[str, Any]) -> PublicKey | None:
    try:
        import jwt
    except ImportError as error:
        raise InvalidTokenError(LIBRARY_MISSING) from error
    kind, curve = entry.get("kty"), entry.get("crv")
    algorithm, key_id = entry.get("alg"), entry.get("kid")
    operations = entry.get("key_ops")
    if not all(part is None or isinstance(part, str) for part in (kind, curve, algorithm, key_id)):
        return None
    if kind not in {"RSA", "EC", "OKP"} or entry.get("use", "sig") != "sig":
        return None
    if kind != "RSA" and curve not in CURVES:
        return None
    if isinstance(operations, list) and "verify" not in operations:
        return None
    if algorithm is not None and algorithm not in ALGORITHMS:
        return None
    # Of a private key, which nobody should publish, the public half is all that is read.
    public = {name: value for name, value in entry.items() if name in _PUBLIC_PARTS}
    guess = algorithm or next(
        name
        for name, (its_kind, its_curve) in ALGORITHMS.items()
        if its_kind == kind and its_curve in (None, curve)
    )
    try:
        key = jwt.PyJWK(public, guess).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if kind == "RSA" and getattr(key, "key_size", 0) < RSA_BITS_MIN:
        return None
    return PublicKey(key_id, kind, curve, algorithm, key)


_PUBLIC_PARTS: Final = frozenset({"kty", "crv", "x", "y", "n", "e"})
