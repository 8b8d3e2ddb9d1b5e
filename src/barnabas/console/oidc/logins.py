"""Logins that are under way at an identity provider, and whom a finished one has let in.

A login is begun with a state, a nonce and a PKCE verifier that nobody can guess, and belongs to one
browser by a cookie. It can be finished once, by that browser, within ten minutes. Afterwards the
browser is at a place inside the console's page, never at another address.

Source: OpenID Connect Core 1.0; RFC 7636 (PKCE), 9207 (issuer), 9700 (best practice).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from barnabas.base.oauth.bearer import InvalidTokenError
from barnabas.console.oidc.provider import CodeError, Document, Provider, ProviderError, Tokens
from barnabas.console.oidc.settings import CALLBACK

LASTS_S: Final = 600.0
"""The time that a user has at the provider, in seconds."""
PENDING_MAX: Final = 10_000
"""Logins in progress at a time; beyond that the oldest are forgotten."""
PENDING_OF_ADDRESS_MAX: Final = 100
"""Logins of one address, or of one IPv6 network; beyond that its own oldest is forgotten."""
NAME_SIZE_MAX: Final = 200
PLACE_SIZE_MAX: Final = 2_000

_log = logging.getLogger(__name__)


class LoginError(Exception):
    """A login that cannot go on; `advice` says what to do about it."""

    def __init__(self, message: str, advice: str, reason: str = "", name: str = "") -> None:
        super().__init__(message)
        self.advice = advice
        self.reason = reason or message
        """For the log of the console, with no secret."""
        self.name = name
        """The user's, if it is known."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A login that was begun."""

    url: str
    """The address that the browser goes to."""
    cookie: str


@dataclass(frozen=True, slots=True)
class Identity:
    """A user that the provider vouches for."""

    name: str
    subject: str
    """The provider's own name of the user, which does not change."""
    roles: frozenset[str]
    lasts_s: float
    """The time until the ID token expires."""
    tokens: Tokens
    place: str = ""
    """The place in the page that the user asked for."""


@dataclass(frozen=True, slots=True)
class _Pending:
    cookie: bytes
    nonce: str
    verifier: str
    place: str
    until_s: float
    address: str


class Logins:
    """Logins by one provider, for many threads. Methods block."""

    def __init__(
        self,
        provider: Provider,
        redirect_uri: str,
        now_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._provider, self.redirect_uri = provider, redirect_uri
        self._now_s, self._wall_s = now_s, wall_s
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._of_address: dict[str, OrderedDict[str, None]] = {}
        """The states that each address has under way, the oldest first."""
        self._lock = threading.Lock()

    @property
    def label(self) -> str:
        """The provider's name on the login page."""
        return self._provider.settings.label

    def begin(self, place: str = "", address: str = "") -> Begun:
        """Begin a login that leads to a place in the page. Raises LoginError.

        `address`: the browser's. Too many logins from one address push out only its own oldest.
        """
        document = self._document()
        state, nonce, verifier, cookie = (secrets.token_urlsafe(32) for _ in range(4))
        until_s, network = self._now_s() + LASTS_S, _network(address)
        pending = _Pending(_hashed(cookie), nonce, verifier, safe_place(place), until_s, network)
        with self._lock:
            own = self._of_address.get(network, ())
            while len(own) >= PENDING_OF_ADDRESS_MAX:
                self._forget(next(iter(own)))
            while len(self._pending) >= PENDING_MAX:
                self._forget(next(iter(self._pending)))
            self._pending[state] = pending
            self._of_address.setdefault(network, OrderedDict())[state] = None
        settings = self._provider.settings
        challenge = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": settings.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return Begun(_with_query(document.authorization_endpoint, query), cookie)

    def finish(self, cookie: str, answer: Sequence[tuple[str, str]]) -> Identity:
        """Finish a login with the parameters that the browser brings. Raises LoginError."""
        given = dict(answer)
        pending = self._taken(given.get("state", ""), cookie)
        if len(given) != len(answer):
            raise _strange("a parameter stands twice")
        document = self._document()
        issuer = given.get("iss")
        if (issuer is None and document.names_issuer) or (
            issuer is not None and issuer != self._provider.settings.issuer
        ):
            raise _strange("the answer is of another issuer")
        if "error" in given:
            raise _refused(given["error"])
        if not given.get("code"):
            raise _strange("the answer has no code")
        try:
            tokens = self._provider.exchange(given["code"], pending.verifier, self.redirect_uri)
            claims = self._provider.claims(tokens.id_token)
        except InvalidTokenError as error:
            raise _strange(f"the ID token: {error}") from error
        except CodeError as error:
            raise LoginError(
                "The identity provider did not accept the login’s code.",
                "Log in again. If that does not help, the console’s client id, secret or address "
                "differ from what the provider knows: its log says which.",
                str(error),
            ) from error
        except ProviderError as error:
            raise _away(error) from error
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not _is_same(nonce, pending.nonce):
            raise _strange("the ID token has another nonce")
        return self._identity(claims, tokens, pending.place)

    def renew(self, refresh_token: str, subject: str, keep: Callable[[str], None]) -> Identity:
        """The user as the provider knows them now. Raises ProviderError, LoginError.

        The provider refuses with CodeError or LoginError. `keep` gets a new refresh token, also
        if this fails afterwards.
        """
        tokens = self._provider.renew(refresh_token, keep)
        try:
            claims = self._provider.claims(tokens.id_token)
        except InvalidTokenError as error:
            raise _strange(f"the renewed ID token: {error}") from error
        found = self._identity(claims, tokens)
        if found.subject != subject:
            raise _strange("the renewed ID token is of another user")
        return found

    def end_url(self, id_token: str) -> str | None:
        """Where a browser logs out of the provider too; None if it has no such address.

        `id_token` is the session's last one: providers ask the user without it.
        """
        try:
            url = self._provider.document().end_session_endpoint
        except ProviderError as error:
            _log.warning("the provider could not be notified of a logout: %s", error)
            return None
        if url is None:
            return None
        home = self.redirect_uri.removesuffix(CALLBACK) + "/"
        settings = self._provider.settings
        query = {
            "id_token_hint": id_token,
            "client_id": settings.client_id,
            "post_logout_redirect_uri": home,
        }
        return _with_query(url, query)

    def _taken(self, state: str, cookie: str) -> _Pending:
        """The login of a state, which is then no longer under way. Raises LoginError."""
        with self._lock:
            pending = self._forget(state)
        if pending is None or pending.until_s < self._now_s():
            raise LoginError(
                "This login is not under way.",
                "It took longer than ten minutes, or its address was opened before. Log in again.",
                "a state that is not known",
            )
        if not hmac.compare_digest(pending.cookie, _hashed(cookie)):
            raise LoginError(
                "This login was begun in another browser.",
                f"Log in again, at the address that the provider sends you back to: "
                f"{self.redirect_uri.removesuffix(CALLBACK)}. Cookies must be "
                "allowed.",
                "a cookie that does not belong to the state",
            )
        return pending

    def _forget(self, state: str) -> _Pending | None:
        """Take a login out of those that are under way. The lock is held."""
        pending = self._pending.pop(state, None)
        if pending is not None:
            own = self._of_address[pending.address]
            del own[state]
            if not own:
                del self._of_address[pending.address]
        return pending

    def _document(self) -> Document:
        try:
            return self._provider.document()
        except ProviderError as error:
            raise _away(error) from error

    def _identity(self, claims: Mapping[str, Any], tokens: Tokens, place: str = "") -> Identity:
        settings = self._provider.settings
        name = _name(claims.get(settings.name_claim)) or _name(claims.get("sub"))
        if not name:
            raise _strange("the ID token names no user")
        values = _values(claims, settings.roles_claim)
        roles = frozenset(role for role, wanted in settings.roles.items() if wanted & values)
        if not roles:
            raise LoginError(
                f"You are known to the identity provider as {name}, but have no role here.",
                f"Ask for one of these in the claim “{settings.roles_claim}”: "
                f"{', '.join(sorted(set().union(*settings.roles.values())))}.",
                "no role",
                name,
            )
        lasts_s = float(claims["exp"]) - self._wall_s()
        if lasts_s <= 0:
            raise _strange("the ID token has expired")
        return Identity(name, str(claims.get("sub")), roles, lasts_s, tokens, place)


def _network(address: str) -> str:
    """An address of IPv4, or the network of IPv6 that one site has: it may choose any in it."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    mapped = found.ipv4_mapped
    return str(ipaddress.ip_network((found, 64), strict=False) if mapped is None else mapped)


def safe_place(text: str) -> str:
    """A place in the page as a fragment of an address; empty for what is none."""
    if not text.startswith("/") or len(text) > PLACE_SIZE_MAX:
        return ""
    return quote(text, safe="/?=&%+-._~")


def _values(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """The texts of a claim: of that name, or by a path such as `realm_access.roles`."""
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return frozenset({found})
    if isinstance(found, list):
        return frozenset(one for one in found if isinstance(one, str))
    return frozenset()


def _name(found: Any) -> str:
    if not isinstance(found, str):
        return ""
    return "".join(letter for letter in found.strip() if letter.isprintable())[:NAME_SIZE_MAX]


def _with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"


def _hashed(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())


def _away(error: ProviderError) -> LoginError:
    return LoginError(
        "The identity provider does not answer as it should.",
        "Try again in a moment. If it stays away, the console’s log says why.",
        str(error),
    )


def _strange(reason: str) -> LoginError:
    return LoginError(
        "The answer of the identity provider cannot be believed.",
        "Log in again. If that does not help, the console’s log says what is wrong with it.",
        reason,
    )


def _refused(code: str) -> LoginError:
    known = code if code.isascii() and code.replace("_", "").isalnum() else "another error"
    if known == "access_denied":
        message = "The identity provider did not let you in, or you left its page."
    else:
        message = "The identity provider refused the login."
    advice = f"Log in again, or ask its administrator; it says: {known[:60]}."
    return LoginError(message, advice, f"the provider says {known[:60]}")
