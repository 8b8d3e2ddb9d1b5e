"""Tokens to log in with: from an identity provider, or from a file.

A provider is asked by client credentials (RFC 6749, 4.4), with a secret or with an assertion in
its place (RFC 7523, 2.2), or by an assertion alone (RFC 7523, 2.1). An assertion is a JWT that
shows the provider who the client is. It is read from a file, or made here and signed with a private
key; its header and claims come in three layers, of which the later wins: those of the
configuration, those of a template file, and those that each needs freshly (times, id).

Source: KIP-768, KIP-1139, KIP-1258; Kafka's HttpJwtRetriever, its request formatters, and
LayeredAssertionJwtTemplate.
"""

import base64
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from barnabas.base.errors import install_hint
from barnabas.base.oauth.fetch import FetchError, FetchSettings, file_of, is_file, read_file

FORM: Final = "application/x-www-form-urlencoded"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIBRARY_MISSING: Final = f"assertions need a library: {install_hint('security')}"


class Grant(Enum):
    """A node's credentials for the provider."""

    CLIENT_SECRET = "client secret"
    CLIENT_ASSERTION = "client assertion"
    JWT_BEARER = "jwt-bearer"


@dataclass(frozen=True, slots=True)
class AssertionSettings:
    """Settings with which assertions are made."""

    key_file: Path
    passphrase: str | None = field(default=None, repr=False)
    algorithm: str = "RS256"
    claims: Mapping[str, str] = field(default_factory=dict)
    """`aud`, `iss` and `sub`, as far as they are configured."""
    template_file: Path | None = None
    expires_after_seconds: int = 300
    valid_before_seconds: int = 60
    has_id: bool = False


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """The provider, and how a token is requested."""

    url: str
    grant: Grant = Grant.CLIENT_SECRET
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    assertion: AssertionSettings | Path | None = None
    """Settings with which assertions are made, or the file of a ready one."""
    fetch: FetchSettings = field(default_factory=FetchSettings)


def retrieve(settings: RetrievalSettings, now_ms: Callable[[], int]) -> str:
    """A new token. Blocks: call it in a thread. Raises FetchError."""
    if is_file(settings.url):
        token = read_file(file_of(settings.url)).decode("ascii", "replace").strip()
        if not token:
            raise FetchError(f"{settings.url} holds no token")
        return token
    from barnabas.base.oauth.web import fetch  # large; most nodes never need it

    form, headers = request_of(settings, now_ms)
    answer = fetch(settings.url, settings.fetch, urlencode(form).encode(), headers)
    try:
        shown = json.loads(answer)["access_token"]
    except (ValueError, KeyError, TypeError, RecursionError):
        shown = None
    if not isinstance(shown, str) or not shown.strip():
        # The answer is not quoted: it may hold another secret.
        raise FetchError(f"{settings.url} answers without an access_token", is_final=True)
    return shown.strip()


def request_of(
    settings: RetrievalSettings, now_ms: Callable[[], int]
) -> tuple[dict[str, str], dict[str, str]]:
    """The form and the headers that ask for a token. Raises FetchError."""
    headers = {"Content-Type": FORM, "Cache-Control": "no-cache"}
    wanted = (settings.scope or "").strip()
    scope = {"scope": wanted} if wanted else {}
    if settings.grant is Grant.JWT_BEARER:
        form = {"grant_type": JWT_BEARER, "assertion": _assertion(settings, now_ms())}
        return form | scope, headers
    form = {"grant_type": "client_credentials"}
    if settings.grant is Grant.CLIENT_ASSERTION:
        form["client_assertion_type"] = ASSERTION_TYPE
        form["client_assertion"] = _assertion(settings, now_ms())
        if settings.client_id:
            form["client_id"] = settings.client_id
    else:
        pair = f"{settings.client_id}:{settings.client_secret}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    return form | scope, headers


def _assertion(settings: RetrievalSettings, now_ms: int) -> str:
    given = settings.assertion
    if isinstance(given, AssertionSettings):
        return make_assertion(given, now_ms)
    assert given is not None, "the configuration names an assertion"
    text = read_file(given).decode("ascii", "replace").strip()
    if not text:
        raise FetchError(f"{given} holds no assertion")
    return text


def make_assertion(settings: AssertionSettings, now_ms: int) -> str:
    """Sign one. Blocks, since files are read again. Raises FetchError."""
    try:
        import jwt
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise FetchError(LIBRARY_MISSING, is_final=True) from error
    header, claims = assertion_parts(settings, now_ms, lambda: str(uuid.uuid4()))
    passphrase = settings.passphrase.encode() if settings.passphrase else None
    try:
        key: Any = load_pem_private_key(read_file(settings.key_file), passphrase)
        return jwt.encode(claims, key, settings.algorithm, header)
    except (ValueError, TypeError, jwt.PyJWTError):
        # The library's message may quote the file.
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
