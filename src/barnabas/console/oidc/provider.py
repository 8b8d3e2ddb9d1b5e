"""An identity provider: its discovery document, its keys, and its token endpoint.

Methods block: call them in a thread. The ID token comes straight from the token endpoint, and its
signature is checked all the same. Source: OpenID Connect Core 1.0, Discovery 1.0; RFC 6749, 7636.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from barnabas.base.errors import ConfigError
from barnabas.base.oauth.bearer import InvalidTokenError
from barnabas.base.oauth.fetch import FetchError
from barnabas.base.oauth.key_set import KeySet, KeySetError, parse_key_set
from barnabas.base.oauth.signed import JwtValidator
from barnabas.base.oauth.web import fetch
from barnabas.console.oidc.settings import OidcSettings, check_url

DOCUMENT_PATH: Final = "/.well-known/openid-configuration"
KEPT_S: Final = 3600.0
"""How long the document and keys are cached; an unknown key is fetched at once."""
FAILED_S: Final = 2.0
"""The pause after a failed request for the provider's document, before the next one."""
SKEW_MS: Final = 30_000
_FORM: Final = "application/x-www-form-urlencoded"


class ProviderError(Exception):
    """The provider does not answer, or not as it should; the text holds no secret."""


class CodeError(ProviderError):
    """The provider refuses to exchange a code or a refresh token."""


@dataclass(frozen=True, slots=True)
class Document:
    """A provider's description of itself."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None
    token_auth_methods: tuple[str, ...]
    names_issuer: bool
    """True if answers to the browser name the issuer (RFC 9207)."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a login."""

    id_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    """Gives new tokens, as long as the user is logged in at the provider."""


class Provider:
    """One identity provider, for many threads."""

    def __init__(
        self,
        settings: OidcSettings,
        now_s: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.settings, self._now_s, self._now_ms = settings, now_s, now_ms
        self._lock = threading.Lock()
        self._document: tuple[float, Document] | None = None
        self._failure: tuple[float, ProviderError] | None = None
        self._keys: tuple[float, KeySet] | None = None

    def document(self) -> Document:
        """The provider's document. Raises ProviderError."""
        with self._lock:
            if self._document is None or self._now_s() - self._document[0] > KEPT_S:
                if self._failure is not None and self._now_s() - self._failure[0] < FAILED_S:
                    raise ProviderError(str(self._failure[1]))
                try:
                    self._document = self._now_s(), self._ask_document()
                except ProviderError as error:
                    self._failure = self._now_s(), error
                    raise
            return self._document[1]

    def exchange(self, code: str, verifier: str, redirect_uri: str) -> Tokens:
        """The tokens for a code. Raises ProviderError, CodeError."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        return self._tokens(form)

    def renew(self, refresh_token: str, keep: Callable[[str], None]) -> Tokens:
        """New tokens for a refresh token. Raises ProviderError, CodeError.

        A new refresh token is given to `keep` before anything else can fail: it may replace the
        old one at the provider at once.
        """
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        found = self._tokens(form, keep)
        return replace(found, refresh_token=found.refresh_token or refresh_token)

    def _tokens(self, form: dict[str, str], keep: Callable[[str], None] = lambda _: None) -> Tokens:
        document = self.document()
        headers = {"Content-Type": _FORM}
        client_id, secret = self.settings.client_id, self.settings.client_secret
        methods = document.token_auth_methods
        if secret is None:
            form["client_id"] = client_id
        elif "client_secret_basic" in methods or not methods:
            pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        elif "client_secret_post" in methods:
            form |= {"client_id": client_id, "client_secret": secret}
        else:
            raise ProviderError("the provider takes no client secret, only other kinds of proof")
        body = urlencode(form).encode()
        try:
            answer = fetch(document.token_endpoint, self.settings.fetch, body, headers)
        except FetchError as error:
            raise (CodeError if error.is_final else ProviderError)(str(error)) from error
        found = _object(answer, "the token endpoint")
        token, refresh = found.get("id_token"), found.get("refresh_token")
        if not isinstance(refresh, str) or not refresh:
            refresh = None
        else:
            keep(refresh)
        if not isinstance(token, str) or not token:
            raise ProviderError("the token endpoint answers without an id_token")
        return Tokens(token, refresh)

    def claims(self, token: str) -> Mapping[str, Any]:
        """The claims of an ID token that is from this provider and for the console.

        Raises InvalidTokenError, ProviderError. A token that no known key has signed has the keys
        asked for again: the provider may have new ones.
        """
        is_new = self._keys is None
        try:
            return self._checked(token, self._key_set())
        except InvalidTokenError:
            if is_new:
                raise
        return self._checked(token, self._key_set(again=True))

    def _checked(self, token: str, keys: KeySet) -> Mapping[str, Any]:
        own = self.settings.client_id
        validator = JwtValidator(_Known(keys), [own], self.settings.issuer, clock_skew_ms=SKEW_MS)
        claims = validator.claims(token, self._now_ms())
        audience, party = claims.get("aud"), claims.get("azp")
        if isinstance(audience, list) and len(audience) > 1 and party is None:
            raise InvalidTokenError("the token is for several audiences, and does not say for whom")
        if party is not None and party != own:
            raise InvalidTokenError("the token was issued to another client")
        return claims

    def _key_set(self, *, again: bool = False) -> KeySet:
        url = self.document().jwks_uri
        with self._lock:
            if again or self._keys is None or self._now_s() - self._keys[0] > KEPT_S:
                try:
                    found = parse_key_set(fetch(url, self.settings.fetch))
                except (FetchError, KeySetError) as error:
                    raise ProviderError(f"the provider's keys: {error}") from error
                self._keys = self._now_s(), found
            return self._keys[1]

    def _ask_document(self) -> Document:
        issuer = self.settings.issuer
        url = issuer.rstrip("/") + DOCUMENT_PATH
        try:
            found = _object(fetch(url, self.settings.fetch), url)
        except FetchError as error:
            raise ProviderError(str(error)) from error
        if found.get("issuer") != issuer:
            raise ProviderError(f"{url} is the document of another issuer")
        methods = found.get("token_endpoint_auth_methods_supported")
        return Document(
            _endpoint(found, "authorization_endpoint"),
            _endpoint(found, "token_endpoint"),
            _endpoint(found, "jwks_uri"),
            _endpoint(found, "end_session_endpoint") if "end_session_endpoint" in found else None,
            tuple(map(str, methods)) if isinstance(methods, list) else (),
            found.get("authorization_response_iss_parameter_supported") is True,
        )


class _Known:
    """Keys as they are."""

    def __init__(self, keys: KeySet) -> None:
        self._keys = keys

    def current(self) -> KeySet:
        """The keys."""
        return self._keys

    def missed(self, key_id: str) -> None:
        """The caller asks for keys again."""


def _object(data: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProviderError(f"{what} does not answer with JSON") from error
    if not isinstance(found, dict):
        raise ProviderError(f"{what} does not answer with an object of JSON")
    return found


def _endpoint(document: Mapping[str, Any], name: str) -> str:
    url = document.get(name)
    if not isinstance(url, str):
        raise ProviderError(f"the provider's document has no {name}")
    try:
        return check_url(name, url)
    except ConfigError as error:
        raise ProviderError(f"the provider's document: {error}") from error
