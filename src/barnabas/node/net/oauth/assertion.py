"""Assertions: JWTs with which a node shows an identity provider who it is (RFC 7523).

One is read from a file, or made here and signed with a private key. Its header and claims come in
three layers, of which the later wins: those of the configuration, a template file, and what each
needs anew (times, id). Source: KIP-1139 and KIP-1258; Kafka's LayeredAssertionJwtTemplate.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from barnabas.base.extras import install_hint
from barnabas.node.net.oauth.fetch import FetchError, read_file

LIBRARY_MISSING: Final = f"assertions need a library: {install_hint('security')}"


@dataclass(frozen=True, slots=True)
class AssertionSettings:
    """How assertions are made."""

    key_file: Path
    passphrase: str | None = field(default=None, repr=False)
    algorithm: str = "RS256"
    claims: Mapping[str, str] = field(default_factory=dict)
    """`aud`, `iss` and `sub`, as far as they are configured."""
    template_file: Path | None = None
    expires_after_seconds: int = 300
    valid_before_seconds: int = 60
    has_id: bool = False


def make_assertion(
    settings: AssertionSettings, now_ms: int, new_id: Callable[[], str] = lambda: str(uuid.uuid4())
) -> str:
    """Sign one. Blocks, since files are read anew. Raises FetchError."""
    try:
        import jwt
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise FetchError(LIBRARY_MISSING, is_final=True) from error
    header, claims = assertion_parts(settings, now_ms, new_id)
    passphrase = settings.passphrase.encode() if settings.passphrase else None
    try:
        key: Any = load_pem_private_key(read_file(settings.key_file), passphrase)
        return jwt.encode(claims, key, settings.algorithm, header)
    except (ValueError, TypeError, jwt.PyJWTError):
        # What the library says may quote the file.
        raise FetchError(
            f"the private key in {settings.key_file} cannot sign with {settings.algorithm}: it is "
            "no such key in PEM, or its passphrase is another",
            is_final=True,
        ) from None


def assertion_parts(
    settings: AssertionSettings, now_ms: int, new_id: Callable[[], str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims. Raises FetchError."""
    now = now_ms // 1000
    header: dict[str, Any] = {}
    claims: dict[str, Any] = dict(settings.claims)
    if settings.template_file is not None:
        template = _template(settings.template_file)
        header |= template.get("header") or {}
        claims |= template.get("payload") or {}
    header |= {"alg": settings.algorithm, "typ": "JWT"}
    claims |= {
        "iat": now,
        "exp": now + settings.expires_after_seconds,
        "nbf": now - settings.valid_before_seconds,
    }
    if settings.has_id:
        claims["jti"] = new_id()
    return header, claims


def _template(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise FetchError(f"{path} is not JSON", is_final=True) from error
    if not isinstance(value, dict) or not all(
        isinstance(value.get(part) or {}, dict) for part in ("header", "payload")
    ):
        raise FetchError(
            f"{path} must hold an object with the objects header and payload", is_final=True
        )
    return value
