"""An issuer of tokens for tests: keys, the key set that they make, and JWTs signed with them."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

_RSA_KEYS: dict[tuple[str, int], rsa.RSAPrivateKey] = {}


def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """A key of this name: the same each time, as making one takes a while."""
    if (name, bits) not in _RSA_KEYS:
        _RSA_KEYS[name, bits] = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    return _RSA_KEYS[name, bits]


def jwk(key: Any, **members: Any) -> dict[str, Any]:
    """The public half of a key as a JSON Web Key."""
    public = key.public_key()
    kinds: list[tuple[type, Any]] = [
        (rsa.RSAPublicKey, jwt.algorithms.RSAAlgorithm),
        (ec.EllipticCurvePublicKey, jwt.algorithms.ECAlgorithm),
        (ed25519.Ed25519PublicKey, jwt.algorithms.OKPAlgorithm),
    ]
    algorithm = next(algorithm for kind, algorithm in kinds if isinstance(public, kind))
    return {**algorithm.to_jwk(public, as_dict=True), **members}


def part(value: object) -> str:
    """A section of a JWT."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def unsecured(claims: dict[str, Any]) -> str:
    """A token that nobody signed."""
    return f"{part({'alg': 'none'})}.{part(claims)}."


class Issuer:
    """Issues tokens, and can change its keys."""

    def __init__(self, key_id: str = "first") -> None:
        self.key_id = key_id
        self.key = rsa_key(key_id)

    def key_set(self) -> str:
        """Return what its endpoint serves."""
        return json.dumps({"keys": [jwk(self.key, kid=self.key_id, alg="RS256", use="sig")]})

    def rotate(self, key_id: str) -> None:
        """Sign with another key from now on."""
        self.key_id = key_id
        self.key = rsa_key(key_id)

    def token(self, subject: str = "alice", lifetime_seconds: int = 3600, **claims: Any) -> str:
        """A token for somebody; a claim that is None is left out."""
        now = int(time.time())
        whole = {"sub": subject, "iat": now, "exp": now + lifetime_seconds, **claims}
        return self.sign({name: value for name, value in whole.items() if value is not None})

    def sign(
        self,
        claims: dict[str, Any],
        headers: dict[str, Any] | None = None,
        algorithm: str = "RS256",
    ) -> str:
        """A token of these claims."""
        return jwt.encode(claims, self.key, algorithm, {"kid": self.key_id, **(headers or {})})
