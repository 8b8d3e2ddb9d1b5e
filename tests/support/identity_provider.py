"""An identity provider on loopback: it serves its keys at /jwks and issues tokens at /token.

`SignOnProvider` logs in people too: a browser at /authorize is the user that the test names, and
goes back with a code that /token exchanges once, for the right secret and PKCE verifier.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from support.served import served
from support.tokens import Issuer


class Asked(NamedTuple):
    """One request that came."""

    path: str
    headers: dict[str, str]
    form: dict[str, str]


class IdentityProvider:
    """Its requests, and its answers."""

    def __init__(self) -> None:
        self.issuer = Issuer()
        self.asked: list[Asked] = []
        self.subject = "broker"
        self.lifetime_seconds = 3600
        self.failures: list[int] = []
        """Status codes of the next answers."""
        self.answer: Callable[[Asked], bytes] | None = None
        self.url = ""

    def times(self, path: str) -> int:
        """Return how often a path was asked for."""
        return sum(entry.path == path for entry in self.asked)

    def _answer(self, asked: Asked) -> tuple[int, bytes]:
        self.asked.append(asked)
        if self.failures:
            return self.failures.pop(0), b'{"error": "invalid_client", "error_description": "no"}'
        if self.answer is not None:
            return 200, self.answer(asked)
        if asked.path == "/jwks":
            return 200, self.issuer.key_set().encode()
        if asked.path == "/token":
            token = self.issuer.token(self.subject, self.lifetime_seconds)
            return 200, f'{{"access_token": "{token}", "token_type": "Bearer"}}'.encode()
        return 404, b"{}"

    @contextmanager
    def serving(self, tls: ssl.SSLContext | None = None) -> Iterator[IdentityProvider]:
        """Answer on a port of loopback."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length", "0"))
                form = dict(parse_qsl(self.rfile.read(size).decode()))
                code, body = provider._answer(Asked(self.path, dict(self.headers.items()), form))
                self.send_response(code)
                if code in {301, 302, 307}:
                    self.send_header("Location", f"{provider.url}/elsewhere")
                elif code == 303:
                    self.send_header("Location", body.decode())
                    body = b""
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815

        with served(Handler, tls) as self.url:
            yield self


class SignOnProvider(IdentityProvider):
    """Logs in people (OpenID Connect). `claims` are those of every user."""

    def __init__(self, client_id: str = "console", secret: str | None = "top secret") -> None:
        super().__init__()
        self.client_id, self.secret = client_id, secret
        self.claims: dict[str, Any] = {"preferred_username": "ann", "groups": ["kafka-admins"]}
        self.person = "subject-1"
        """Of every user."""
        self.document: dict[str, Any] = {}
        """Members of the discovery document that are not as they should be."""
        self.back: dict[str, str] = {}
        """Parameters that it sends back otherwise."""
        self.forge: Callable[[dict[str, Any]], str] | None = None
        """Makes the ID token of its claims, instead of its key."""
        self.gives_refresh_tokens = False
        self.refresh_tokens: set[str] = set()
        """Those that work, each once."""
        self.omits_id_tokens = False
        """Whether renewals bring no ID token."""
        self._codes: dict[str, dict[str, str]] = {}

    def _answer(self, asked: Asked) -> tuple[int, bytes]:
        path = urlsplit(asked.path).path
        if path == "/.well-known/openid-configuration":
            self.asked.append(asked)
            return 200, json.dumps(self._document()).encode()
        if path == "/authorize":
            self.asked.append(asked)
            return 303, self._authorized(dict(parse_qsl(urlsplit(asked.path).query))).encode()
        if path == "/token" and asked.form.get("grant_type") == "authorization_code":
            self.asked.append(asked)
            return self._exchanged(asked)
        if path == "/token" and asked.form.get("grant_type") == "refresh_token":
            self.asked.append(asked)
            return self._refreshed(asked)
        return super()._answer(asked)

    def _document(self) -> dict[str, Any]:
        found = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "end_session_endpoint": f"{self.url}/logout",
            "authorization_response_iss_parameter_supported": True,
        } | self.document
        return {name: value for name, value in found.items() if value is not None}

    def _authorized(self, query: dict[str, str]) -> str:
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert query["client_id"] == self.client_id
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(8)
        self._codes[code] = query
        back = {"code": code, "state": query["state"], "iss": self.url} | self.back
        return f"{query['redirect_uri']}?{urlencode({k: v for k, v in back.items() if v})}"

    def _exchanged(self, asked: Asked) -> tuple[int, bytes]:
        form = asked.form
        query = self._codes.pop(form["code"], None)
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        if (
            query is None
            or query["redirect_uri"] != form["redirect_uri"]
            or query["code_challenge"] != base64.urlsafe_b64encode(challenge).decode().rstrip("=")
        ):
            return 400, b'{"error": "invalid_grant"}'
        if not self._is_client(asked):
            return 401, b'{"error": "invalid_client"}'
        return self._tokens(nonce=query["nonce"])

    def _refreshed(self, asked: Asked) -> tuple[int, bytes]:
        if self.failures:
            return self.failures.pop(0), b'{"error": "temporarily_unavailable"}'
        if not self._is_client(asked):
            return 401, b'{"error": "invalid_client"}'
        if asked.form["refresh_token"] not in self.refresh_tokens:
            return 400, b'{"error": "invalid_grant"}'
        self.refresh_tokens.remove(asked.form["refresh_token"])
        status, answer = self._tokens()
        if self.omits_id_tokens:
            answer = json.dumps({**json.loads(answer), "id_token": None}).encode()
        return status, answer

    def _tokens(self, **more: str) -> tuple[int, bytes]:
        about = {"iss": self.url, "aud": self.client_id, **more, **self.claims}
        if self.forge is not None:
            token = self.forge(about)
        else:
            token = self.issuer.token(self.person, self.lifetime_seconds, **about)
        found = {"id_token": token, "token_type": "Bearer"}
        if self.gives_refresh_tokens:
            found["refresh_token"] = secrets.token_urlsafe(8)
            self.refresh_tokens.add(found["refresh_token"])
        return 200, json.dumps(found).encode()

    def _is_client(self, asked: Asked) -> bool:
        if self.secret is None:
            return asked.form.get("client_id") == self.client_id
        shown = asked.headers.get("Authorization", "").removeprefix("Basic ")
        name, _, secret = base64.b64decode(shown).decode().partition(":")
        return (unquote(name), unquote(secret)) == (self.client_id, self.secret)
