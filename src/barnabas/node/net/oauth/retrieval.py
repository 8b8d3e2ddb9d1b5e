"""Where a node gets a token for its own logins: an identity provider, or a file.

A provider is asked by client credentials (RFC 6749, 4.4), with a secret or with an assertion in
its place (RFC 7523, 2.2), or by an assertion alone (RFC 7523, 2.1). Source: KIP-768, KIP-1139,
KIP-1258; Kafka's HttpJwtRetriever and its request formatters.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from barnabas.node.net.oauth.assertion import AssertionSettings, make_assertion
from barnabas.node.net.oauth.fetch import (
    FetchError,
    FetchSettings,
    fetch,
    file_of,
    is_file,
    read_file,
)

FORM: Final = "application/x-www-form-urlencoded"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class Grant(Enum):
    """What a node shows to the provider."""

    CLIENT_SECRET = "client secret"
    CLIENT_ASSERTION = "client assertion"
    JWT_BEARER = "jwt-bearer"


@dataclass(frozen=True, slots=True)
class RetrievalSettings:
    """Whom to ask, and how."""

    url: str
    grant: Grant = Grant.CLIENT_SECRET
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    assertion: AssertionSettings | Path | None = None
    """How assertions are made, or the file of a ready one."""
    fetch: FetchSettings = field(default_factory=FetchSettings)


def retrieve(settings: RetrievalSettings, now_ms: Callable[[], int]) -> str:
    """A new token. Blocks: call it in a thread. Raises FetchError."""
    if is_file(settings.url):
        token = read_file(file_of(settings.url)).decode("ascii", "replace").strip()
        if not token:
            raise FetchError(f"{settings.url} holds no token")
        return token
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
