"""Settings of the login by an identity provider.

console.oidc.issuer           the provider's address; its discovery document says the rest
console.oidc.client.id        the console's id there, and .client.secret its secret, if it has one
console.oidc.redirect.uri     the console's own address, with /api/login/oidc/callback
console.oidc.scopes           what is asked for; `openid profile email` by default
console.oidc.name.claim       the claim with a user's name; `preferred_username` by default
console.oidc.roles.claim      the claim with groups or roles; `groups` by default
console.oidc.role.NAME        values of that claim which give the role NAME
console.oidc.label            the provider's name on the login page
console.oidc.ssl.…            the certificates that are trusted, as ssl.truststore.location
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from barnabas.base.addresses import is_loopback
from barnabas.base.errors import ConfigError
from barnabas.base.oauth.fetch import TIMEOUT_MS_DEFAULT, FetchSettings
from barnabas.base.oauth.key_set import LIBRARY_MISSING
from barnabas.base.tls.contexts import PropertyKeys, client_context, configured_client

PREFIX: Final = "console.oidc."
ISSUER: Final = f"{PREFIX}issuer"
CLIENT_ID: Final = f"{PREFIX}client.id"
CLIENT_SECRET: Final = f"{PREFIX}client.secret"
REDIRECT: Final = f"{PREFIX}redirect.uri"
SCOPES: Final = f"{PREFIX}scopes"
NAME_CLAIM: Final = f"{PREFIX}name.claim"
ROLES_CLAIM: Final = f"{PREFIX}roles.claim"
LABEL: Final = f"{PREFIX}label"
ROLE_PREFIX: Final = f"{PREFIX}role."
TLS_PREFIX: Final = f"{PREFIX}ssl."
CALLBACK: Final = "/api/login/oidc/callback"
"""The path that the provider sends browsers back to."""
_KNOWN: Final = frozenset(
    {ISSUER, CLIENT_ID, CLIENT_SECRET, REDIRECT, SCOPES, NAME_CLAIM, ROLES_CLAIM, LABEL}
)


@dataclass(frozen=True)
class OidcSettings:
    """Checked settings."""

    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)
    redirect_uri: str
    """Empty: the first listener's address."""
    scopes: str
    name_claim: str
    roles_claim: str
    roles: Mapping[str, frozenset[str]]
    """Values of the claim by the role that they give."""
    label: str
    fetch: FetchSettings = field(repr=False)


def oidc_settings(
    values: Mapping[str, str], roles: Collection[str], *, is_on_loopback: bool
) -> OidcSettings | None:
    """The settings in a console's properties; None without an issuer. Raises ConfigError."""
    own = {key: str(value).strip() for key, value in values.items() if key.startswith(PREFIX)}
    if not own.get(ISSUER):
        if own:
            raise ConfigError(ISSUER, f"must be set where {min(own)} is")
        return None
    for key in own:
        if key not in _KNOWN and not key.startswith((ROLE_PREFIX, TLS_PREFIX)):
            raise ConfigError(key, "is not a setting of the console")
    if find_spec("jwt") is None:
        raise ConfigError(ISSUER, LIBRARY_MISSING)
    check_url(ISSUER, own[ISSUER])
    if not own.get(CLIENT_ID):
        raise ConfigError(CLIENT_ID, "must be set")
    scopes = own.get(SCOPES) or "openid profile email"
    if "openid" not in scopes.split():
        raise ConfigError(SCOPES, "must have openid among its words")
    return OidcSettings(
        own[ISSUER],
        own[CLIENT_ID],
        own.get(CLIENT_SECRET) or None,
        _redirect(own.get(REDIRECT, ""), is_on_loopback=is_on_loopback),
        scopes,
        own.get(NAME_CLAIM) or "preferred_username",
        own.get(ROLES_CLAIM) or "groups",
        _roles(own, roles),
        own.get(LABEL) or "single sign-on",
        FetchSettings(TIMEOUT_MS_DEFAULT, _trust(own)),
    )


def check_url(key: str, url: str) -> str:
    """Return the address if it is https, or http on this machine. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        host, is_whole = parts.hostname or "", parts.port is None or parts.port > 0
    except ValueError:
        raise ConfigError(key, "is not an address") from None
    if not host or not is_whole or parts.scheme not in ("http", "https"):
        raise ConfigError(key, f"{url!r} is not an https:// address")
    if parts.scheme == "http" and not is_loopback(host):
        raise ConfigError(key, "must begin with https://, except on this machine")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ConfigError(key, "must hold no user, password or fragment")
    return url


def _redirect(text: str, *, is_on_loopback: bool) -> str:
    if not text:
        if not is_on_loopback:
            raise ConfigError(REDIRECT, f"must be set: https://CONSOLE{CALLBACK}")
        return ""
    check_url(REDIRECT, text)
    if urlsplit(text).query or not urlsplit(text).path.endswith(CALLBACK):
        raise ConfigError(REDIRECT, f"must end with {CALLBACK}")
    return text


def _roles(own: Mapping[str, str], known: Collection[str]) -> dict[str, frozenset[str]]:
    found = {}
    for key, text in own.items():
        if not key.startswith(ROLE_PREFIX):
            continue
        name = key.removeprefix(ROLE_PREFIX)
        if name not in known:
            raise ConfigError(key, f"there is no role {name}: {', '.join(sorted(known))}")
        found[name] = frozenset(part.strip() for part in text.split(",") if part.strip())
    if not any(found.values()):
        raise ConfigError(ROLE_PREFIX + "NAME", "must say who has a role, or nobody can log in")
    return found


def _trust(own: Mapping[str, str]) -> Callable[[], ssl.SSLContext]:
    """Return what makes the TLS context of requests to the provider. Raises ConfigError."""
    if not any(key.startswith(TLS_PREFIX) for key in own):
        return client_context
    keys = PropertyKeys(own, (PREFIX,))
    configured_client(keys)  # what cannot be used is said now
    return partial(configured_client, keys)
