"""Logins by an identity provider: one that succeeds, and a table of those that must not."""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from starlette.requests import Request

from barnabas.base.errors import ConfigError
from barnabas.console.access import Audit, Sessions
from barnabas.console.config import ConsoleConfig
from barnabas.console.oidc.logins import (
    LASTS_S,
    PENDING_MAX,
    PENDING_OF_ADDRESS_MAX,
    Begun,
    LoginError,
    Logins,
    safe_place,
)
from barnabas.console.oidc.provider import FAILED_S, Provider, ProviderError
from barnabas.console.pages.single_sign_on import UNDER_WAY_MAX, SingleSignOn
from support.console_world import Console, console
from support.identity_provider import SignOnProvider
from support.tokens import part, unsecured

SECRET = "top secret"
CROSS = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


def settings(provider: SignOnProvider) -> dict[str, str]:
    return {
        "bootstrap.servers": "127.0.0.1:1",
        "console.oidc.issuer": provider.url,
        "console.oidc.client.id": "console",
        "console.oidc.client.secret": SECRET,
        "console.oidc.role.admin": "kafka-admins",
        "console.oidc.role.viewer": "kafka-users, everyone",
        "console.oidc.label": "Example <b>",
    }


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[SignOnProvider, Console]]:
    with SignOnProvider().serving() as provider:
        assert isinstance(provider, SignOnProvider)
        with console(settings(provider)) as page:
            yield provider, page


@pytest.fixture
def world(served: tuple[SignOnProvider, Console]) -> Iterator[tuple[SignOnProvider, Browser]]:
    provider, page = served
    before = dict(vars(provider))
    browser = Browser(page.url)
    yield provider, browser
    browser.http.close()
    vars(provider).update(before, asked=[])


class Browser:
    """Follows the links and redirects of a login, and keeps cookies for the console alone."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=60)

    def begin(self, to: str = "") -> str:
        """Begin a login; return the URL to which the console redirects."""
        answer = self.http.get("/api/login/oidc", params={"to": to})
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    def visit(self, url: str) -> str:
        """Visit the provider; return the URL to which it redirects back."""
        answer = httpx.get(url, timeout=60)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"])

    def finish(self, url: str) -> httpx.Response:
        """Come back to the console, from another site."""
        return self.http.get(url, headers=CROSS)

    def log_in(self, to: str = "") -> httpx.Response:
        return self.finish(self.visit(self.begin(to)))

    def me(self) -> Any:
        return self.http.get("/api/me").json()

    def deeds(self) -> Any:
        return self.http.get("/api/audit").json()["rows"]


World = tuple[SignOnProvider, Browser]


def test_a_user_of_the_provider_logs_in_and_out(world: World) -> None:
    provider, browser = world
    facts = browser.me()
    assert (facts["user"], facts["needs_login"], facts["has_passwords"]) == (None, True, False)
    assert facts["provider"] == "Example <b>"
    asked = parse_qs(urlsplit(browser.begin("/topics/orders?page=2")).query)
    assert asked["redirect_uri"] == [f"{browser.url}/api/login/oidc/callback"]
    assert len(asked["state"][0]) >= 43
    assert len(asked["nonce"][0]) >= 43
    answer = browser.log_in("/topics/orders?page=2")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "../../../#/topics/orders?page=2",
    )
    cookie = next(
        one for one in answer.headers.get_list("set-cookie") if one.startswith("console_session")
    ).lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    facts = browser.me()
    assert facts["user"] == "oidc:ann"
    assert "admin" in facts["rights"]
    deed = browser.deeds()[0]
    assert (deed["user"], deed["action"], deed["outcome"]) == ("oidc:ann", "log in", "done")
    token = browser.http.cookies["console_session"]
    out = browser.http.post(
        "/api/logout", headers={"x-console": "1", "content-type": "application/json"}, content="{}"
    )
    to = urlsplit(out.json()["to"])
    assert f"{to.scheme}://{to.netloc}{to.path}" == f"{provider.url}/logout"
    asked = parse_qs(to.query)
    assert asked["post_logout_redirect_uri"] == [f"{browser.url}/"]
    hint = jwt.decode(asked["id_token_hint"][0], options={"verify_signature": False})
    assert (hint["sub"], hint["preferred_username"]) == ("subject-1", "ann")
    kept = browser.http.get("/api/overview", headers={"cookie": f"console_session={token}"})
    assert kept.status_code == 401


@pytest.mark.parametrize(
    ("claims", "rights"),
    [
        ({"groups": ["everyone"]}, ["view", "read"]),
        ({"groups": "kafka-users"}, ["view", "read"]),
        ({"groups": ["kafka-admins"], "preferred_username": None}, None),
    ],
)
def test_roles_come_from_the_claim(
    world: World, claims: dict[str, Any], rights: list[str] | None
) -> None:
    provider, browser = world
    provider.claims = {"preferred_username": "bob", **claims}
    assert browser.log_in().status_code == 303
    facts = browser.me()
    if rights is None:
        assert facts["user"] == "oidc:subject-1"
    else:
        assert (facts["user"], facts["rights"]) == ("oidc:bob", rights)


def test_a_user_cannot_take_a_role_by_its_name(world: World) -> None:
    """At a password file a name is a role too."""
    provider, browser = world
    provider.claims = {"preferred_username": "admin", "groups": ["admin", "editor"]}
    answer = browser.log_in()
    assert answer.status_code == 403
    assert "known to the identity provider as admin, but have no role here" in answer.text
    assert "kafka-admins" in answer.text  # what to ask for
    assert browser.me()["user"] is None


def test_markup_in_claims_stays_text(world: World) -> None:
    provider, browser = world
    provider.claims = {"preferred_username": "<img src=x onerror=alert(1)>\x00", "groups": []}
    answer = browser.log_in()
    assert answer.status_code == 403
    assert "<img" not in answer.text
    assert "&lt;img" in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    provider.back = {"error": '"><script>alert(1)</script>', "code": ""}
    answer = browser.log_in()
    assert answer.status_code == 403
    assert "<script" not in answer.text


@pytest.mark.parametrize(
    "place",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "/\r\nset-cookie: a=b",
        "javascript:alert(1)",
        "/@evil.example/",
        "/" + "a" * 5000,
    ],
)
def test_no_login_leads_to_another_host(world: World, place: str) -> None:
    _, browser = world
    answer = browser.log_in(place)
    assert answer.status_code == 303
    to = httpx.URL(f"{browser.url}/api/login/oidc/callback").join(answer.headers["location"])
    assert f"{to.scheme}://{to.netloc.decode()}{to.path}" == f"{browser.url}/"
    assert "set-cookie: a" not in str(answer.headers)


# Attacks. Each begins as a login of ann, who would be let in.


def hs256(provider: SignOnProvider, claims: dict[str, Any]) -> str:
    """Signed with the provider's public key as if it were a secret."""
    public = provider.issuer.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signed = f"{part({'alg': 'HS256', 'kid': provider.issuer.key_id})}.{part(claims)}"
    return f"{signed}.{part(hmac.digest(public, signed.encode(), 'sha256'))}"


def timed(claims: dict[str, Any]) -> dict[str, Any]:
    whole = jwt.decode(
        SignOnProvider().issuer.token("subject-1", **claims), options={"verify_signature": False}
    )
    return dict(whole)


def signed_by_another(provider: SignOnProvider, claims: dict[str, Any]) -> str:
    other = SignOnProvider().issuer
    other.rotate("another")
    other.key_id = provider.issuer.key_id
    return other.token("subject-1", **claims)


Forge = Callable[[SignOnProvider, dict[str, Any]], str]
NO_ALGORITHM = "not signed with an algorithm that is allowed"
FORGED: dict[str, tuple[Forge, str]] = {
    "alg none": (lambda _, claims: unsecured(timed(claims)), NO_ALGORITHM),
    "HS256 with the public key": (
        lambda provider, claims: hs256(provider, timed(claims)),
        NO_ALGORITHM,
    ),
    "another key": (signed_by_another, "signature is wrong"),
    "no token": (lambda *_: "a.b.c", "is not base64"),
}
CLAIMED: dict[str, tuple[dict[str, Any], str]] = {
    "wrong nonce": ({"nonce": "x" * 43}, "another nonce"),
    "no nonce": ({"nonce": None}, "another nonce"),
    "a nonce that is not text": ({"nonce": 7}, "another nonce"),
    "another audience": ({"aud": "other"}, "for another audience"),
    "no audience": ({"aud": None}, "for another audience"),
    "several audiences and no party": ({"aud": ["console", "other"]}, "several audiences"),
    "another party": ({"aud": ["console", "other"], "azp": "other"}, "issued to another client"),
    "another issuer": ({"iss": "https://evil.example"}, "of another issuer"),
    "no issuer": ({"iss": None}, "of another issuer"),
    "expired": ({"exp": 1_000_000_000, "iat": 999_999_000}, "has expired"),
    "no end": ({"exp": None}, "no claim exp"),
    "not yet valid": ({"nbf": 32_503_680_000}, "not valid yet"),
}
SENT_BACK: dict[str, tuple[dict[str, str], str]] = {
    "wrong state": ({"state": "x" * 43}, "a state that is not known"),
    "no state": ({"state": ""}, "a state that is not known"),
    "no code": ({"code": ""}, "has no code"),
    "a code that was never given": ({"code": "made-up"}, "invalid_grant"),
    "the issuer of another provider": ({"iss": "https://evil.example"}, "of another issuer"),
    "no issuer although it says so": ({"iss": ""}, "of another issuer"),
    "an error": ({"error": "access_denied", "code": ""}, "says access_denied"),
}


class Refused:
    """Checks that a login was refused, with its reason in the log."""

    def __init__(self, log: pytest.LogCaptureFixture) -> None:
        self._log = log

    def __call__(self, answer: httpx.Response, browser: Browser, reason: str) -> None:
        assert answer.status_code == 403
        assert "The login failed" in answer.text
        assert "Log in again" in answer.text
        assert SECRET not in answer.text + self._log.text
        assert not any("console_session" in one for one in answer.headers.get_list("set-cookie"))
        assert browser.me()["user"] is None
        assert reason in self._log.messages[-1]
        self._log.clear()


@pytest.fixture
def refused(caplog: pytest.LogCaptureFixture) -> Refused:
    return Refused(caplog)


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_token_is_refused(world: World, refused: Refused, name: str) -> None:
    provider, browser = world
    forge, reason = FORGED[name]
    provider.forge = lambda claims: forge(provider, claims)
    refused(browser.log_in(), browser, reason)


@pytest.mark.parametrize("name", CLAIMED)
def test_a_token_for_something_else_is_refused(world: World, refused: Refused, name: str) -> None:
    provider, browser = world
    claims, reason = CLAIMED[name]
    provider.claims = {**provider.claims, **claims}
    refused(browser.log_in(), browser, reason)


@pytest.mark.parametrize("name", SENT_BACK)
def test_an_answer_that_was_tampered_with_is_refused(
    world: World, refused: Refused, name: str
) -> None:
    provider, browser = world
    provider.back, reason = SENT_BACK[name]
    refused(browser.log_in(), browser, reason)


def test_a_login_is_finished_once(world: World, refused: Refused) -> None:
    _, browser = world
    back = browser.visit(browser.begin())
    kept = browser.http.cookies["console_login"]
    assert browser.finish(back).status_code == 303
    browser.http.cookies.clear()
    again = browser.http.get(back, headers={**CROSS, "cookie": f"console_login={kept}"})
    refused(again, browser, "a state that is not known")


def test_a_code_is_exchanged_once(world: World, refused: Refused) -> None:
    provider, browser = world
    back = browser.visit(browser.begin())
    code = parse_qs(urlsplit(back).query)["code"][0]
    assert browser.finish(back).status_code == 303
    browser.http.cookies.clear()
    provider.back = {"code": code}
    refused(browser.log_in(), browser, "invalid_grant")


def test_a_login_of_another_browser_is_refused(world: World, refused: Refused) -> None:
    """Else somebody could have a user work under the attacker's account."""
    _, browser = world
    reason = "a cookie that does not belong to the state"
    attacker = Browser(browser.url)
    back = attacker.visit(attacker.begin())
    refused(browser.finish(back), browser, reason)
    back = attacker.visit(attacker.begin())
    browser.begin()  # it has its own cookie
    refused(browser.finish(back), browser, reason)
    attacker.http.close()


def test_a_parameter_that_stands_twice_is_refused(world: World, refused: Refused) -> None:
    _, browser = world
    back = browser.visit(browser.begin())
    refused(browser.finish(f"{back}&code=another"), browser, "stands twice")


def test_strangers_do_not_fill_the_audit_log(world: World, refused: Refused) -> None:
    provider, browser = world
    assert browser.log_in().status_code == 303
    before = browser.deeds()
    stranger = Browser(browser.url)
    for _ in range(3):
        answer = stranger.http.get("/api/login/oidc/callback?state=x&code=x", headers=CROSS)
        refused(answer, stranger, "a state that is not known")
    assert browser.deeds() == before
    provider.claims = {"preferred_username": "eve", "groups": []}
    assert stranger.log_in().status_code == 403
    deed = browser.deeds()[0]  # eve is known to the provider, and this is for the administrator
    assert (deed["user"], "no role here" in deed["outcome"]) == ("oidc:eve", True)
    stranger.http.close()


class HangingLogins:
    """Logins by a provider that does not answer until `going` is set."""

    label = "Example"
    redirect_uri = "https://console.example/api/login/oidc/callback"

    def __init__(self) -> None:
        self.going = threading.Event()

    def begin(self, _place: str, _address: str) -> Begun:
        assert self.going.wait(120)
        return Begun("https://idp.example/authorize", "cookie")


async def test_a_provider_that_hangs_has_a_bounded_number_of_logins_wait() -> None:
    logins = HangingLogins()
    audit = Audit()
    sign_on = SingleSignOn(
        cast(Logins, logins), Sessions(), audit, mock.Mock(), lambda _: "192.0.2.1"
    )
    request = Request({"type": "http", "query_string": b"", "headers": []})
    waiting = [asyncio.ensure_future(sign_on.begin(request)) for _ in range(UNDER_WAY_MAX)]
    await asyncio.sleep(0)  # all have begun to wait
    refused = await sign_on.begin(request)
    assert (refused.status_code, b"Too many logins" in refused.body) == (403, True)
    assert audit.recent() == []
    logins.going.set()
    answers = await asyncio.gather(*waiting)
    assert {answer.status_code for answer in answers} == {303}
    assert (await sign_on.begin(request)).status_code == 303
    sign_on.close()


def test_a_provider_that_is_away_is_not_asked_by_each_login() -> None:
    with SignOnProvider().serving() as provider:
        assert isinstance(provider, SignOnProvider)
        oidc = ConsoleConfig(settings(provider)).oidc
        assert oidc is not None
        now = [0.0]
        source = Provider(oidc, lambda: now[0])
        provider.document = {"issuer": "https://evil.example"}
        for _ in range(3):
            with pytest.raises(ProviderError, match="another issuer"):
                source.document()
        path = "/.well-known/openid-configuration"
        assert provider.times(path) == 1
        provider.document = {}
        now[0] = FAILED_S + 0.1
        assert source.document().token_endpoint == f"{provider.url}/token"
        assert provider.times(path) == 2


def test_pages_of_others_cannot_begin_a_login(world: World) -> None:
    _, browser = world
    assert browser.http.get("/api/login/oidc", headers=CROSS).status_code == 403
    headers = {**CROSS, "sec-fetch-mode": "no-cors"}
    assert browser.http.get("/api/login/oidc/callback", headers=headers).status_code == 403


def test_new_keys_of_the_provider_are_found(world: World) -> None:
    provider, browser = world
    assert browser.log_in().status_code == 303
    before = provider.times("/jwks")
    assert browser.log_in().status_code == 303
    assert provider.times("/jwks") == before  # they are known
    old = provider.issuer.key_id
    provider.issuer.rotate("second")
    assert browser.log_in().status_code == 303
    assert provider.times("/jwks") == before + 1
    provider.issuer.rotate(old)
    assert browser.log_in().status_code == 303


def test_a_session_lasts_no_longer_than_its_token(world: World) -> None:
    provider, browser = world
    provider.lifetime_seconds = 1_000
    begin = Sessions.begin
    lasts: list[float] = []

    def begun(sessions: Sessions, user: str, account: Any, lasts_s: float) -> str:
        lasts.append(lasts_s)
        return begin(sessions, user, account, lasts_s)

    with mock.patch.object(Sessions, "begin", begun):
        assert browser.log_in().status_code == 303
    assert 0 < lasts[0] <= 1_000


@pytest.fixture
def expired(world: World) -> World:
    """A login whose ID token has just expired."""
    provider, browser = world
    provider.gives_refresh_tokens = True
    begin = Sessions.begin

    def begun(sessions: Sessions, user: str, account: Any, _: float) -> str:
        return begin(sessions, user, account, -1.0)

    with mock.patch.object(Sessions, "begin", begun):
        assert browser.log_in().status_code == 303
    return world


def renewals(provider: SignOnProvider) -> int:
    return sum(asked.form.get("grant_type") == "refresh_token" for asked in provider.asked)


def test_a_session_goes_on_if_the_provider_confirms_it(expired: World) -> None:
    provider, browser = expired
    provider.claims = {**provider.claims, "groups": ["everyone"]}
    facts = browser.me()
    assert facts["user"] == "oidc:ann"
    assert "admin" not in facts["rights"]
    assert browser.me()["user"] == "oidc:ann"
    assert renewals(provider) == 1  # the new ID token holds


def test_requests_of_one_session_share_a_refresh_token(expired: World) -> None:
    provider, browser = expired
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: browser.me()["user"], range(6)))
    assert set(found) == {"oidc:ann"}
    assert renewals(provider) == 1


Ends = Callable[[SignOnProvider], None]


@pytest.mark.parametrize(
    "ends",
    [
        lambda provider: provider.refresh_tokens.clear(),
        lambda provider: setattr(provider, "claims", {"preferred_username": "ann"}),
        lambda provider: setattr(provider, "person", "subject-2"),
        lambda provider: setattr(provider, "forge", lambda about: unsecured(about)),
    ],
    ids=["logged out there", "no role any more", "another user", "a forged token"],
)
def test_a_session_ends_if_the_provider_does_not_confirm_it(expired: World, ends: Ends) -> None:
    provider, browser = expired
    ends(provider)
    assert browser.me()["user"] is None
    assert browser.http.get("/api/overview").status_code == 401
    assert renewals(provider) == 1  # it is over


def test_a_session_is_asked_about_again_if_the_provider_was_away(expired: World) -> None:
    provider, browser = expired
    provider.failures = [503]
    assert browser.me()["user"] is None
    assert browser.me()["user"] == "oidc:ann"


def test_a_new_refresh_token_is_kept_if_the_keys_cannot_be_fetched(
    expired: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider takes each refresh token once: with the old one the session would be over."""
    provider, browser = expired

    def away(*_: Any, **__: Any) -> None:
        raise ProviderError("the provider's keys: 503")

    monkeypatch.setattr(Provider, "_key_set", away)
    assert browser.me()["user"] is None
    assert browser.me()["user"] is None
    assert renewals(provider) == 2
    monkeypatch.undo()
    assert browser.me()["user"] == "oidc:ann"
    assert browser.me()["user"] == "oidc:ann"
    assert renewals(provider) == 3


def test_a_new_refresh_token_is_kept_if_it_comes_without_an_id_token(expired: World) -> None:
    provider, browser = expired
    provider.omits_id_tokens = True
    assert browser.me()["user"] is None
    provider.omits_id_tokens = False
    assert browser.me()["user"] == "oidc:ann"


def test_a_session_ends_with_its_token_if_it_cannot_be_renewed(world: World) -> None:
    provider, browser = world
    begin = Sessions.begin

    def begun(sessions: Sessions, user: str, account: Any, _: float) -> str:
        return begin(sessions, user, account, -1.0)

    with mock.patch.object(Sessions, "begin", begun):
        browser.log_in()
    assert browser.me()["user"] is None
    assert renewals(provider) == 0


# The provider itself.


def logins(provider: SignOnProvider, **more: str) -> Logins:
    values = {key: value for key, value in {**settings(provider), **more}.items() if value}
    oidc = ConsoleConfig(values).oidc
    assert oidc is not None
    return Logins(Provider(oidc), "http://127.0.0.1:8090/api/login/oidc/callback")


@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "http://evil.example/authorize"},
        {"token_endpoint": "file:///etc/passwd"},
        {"token_endpoint": "https://user:pw@evil.example/token"},
        {"jwks_uri": 7},
    ],
)
def test_a_document_that_cannot_be_meant_is_refused(document: dict[str, Any]) -> None:
    with SignOnProvider().serving() as provider:
        assert isinstance(provider, SignOnProvider)
        provider.document = document
        with pytest.raises(LoginError, match="does not answer as it should"):
            logins(provider).begin()
        provider.document = {}


def test_a_provider_that_is_away_says_what_to_do() -> None:
    provider = SignOnProvider()
    provider.url = "http://127.0.0.1:1"
    with pytest.raises(LoginError) as error:
        logins(provider).begin()
    assert error.value.advice.startswith("Try again")
    assert "127.0.0.1:1" in error.value.reason
    assert SECRET not in error.value.reason
    values = {**settings(provider), "console.oidc.label": ""}
    with console({name: value for name, value in values.items() if value}) as page:
        answer = page.http.get("/api/login/oidc")
        assert (answer.status_code, "does not answer" in answer.text) == (403, True)
        assert page.get("me")["provider"] == "single sign-on"


def test_a_client_without_a_secret_and_one_with_another_way_to_show_it() -> None:
    with SignOnProvider(secret=None).serving() as provider:
        assert isinstance(provider, SignOnProvider)
        public = logins(provider, **{"console.oidc.client.secret": ""})
        assert finished(provider, public).name == "ann"
        assert "Authorization" not in provider.asked[-2].headers
    with SignOnProvider().serving() as provider:
        assert isinstance(provider, SignOnProvider)
        provider.document = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        provider._is_client = lambda asked: (  # type: ignore[method-assign]
            asked.form.get("client_secret") == SECRET and "Authorization" not in asked.headers
        )
        assert finished(provider, logins(provider)).roles == {"admin"}
        provider.document = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
        with pytest.raises(LoginError) as error:
            finished(provider, logins(provider))
        assert "takes no client secret" in error.value.reason


def finished(provider: SignOnProvider, under_way: Logins) -> Any:
    begun = under_way.begin()
    back = urlsplit(httpx.get(begun.url, timeout=60).headers["location"]).query
    return under_way.finish(begun.cookie, [(k, v) for k, [v] in parse_qs(back).items()])


def test_a_login_that_takes_too_long_is_over_and_too_many_are_bounded() -> None:
    with SignOnProvider().serving() as provider:
        assert isinstance(provider, SignOnProvider)
        oidc = ConsoleConfig(settings(provider)).oidc
        assert oidc is not None
        now = [0.0]
        under_way = Logins(Provider(oidc), "http://127.0.0.1:1/x", lambda: now[0])
        begun = under_way.begin()
        state = parse_qs(urlsplit(begun.url).query)["state"][0]
        now[0] = LASTS_S + 1
        with pytest.raises(LoginError, match="not under way"):
            under_way.finish(begun.cookie, [("state", state), ("code", "x")])
        for number in range(PENDING_MAX + 5):
            under_way.begin("", f"address {number}")
        assert len(under_way._pending) == len(under_way._of_address) == PENDING_MAX


@pytest.mark.parametrize(
    "addresses",
    [["192.0.2.1"], ["::ffff:192.0.2.1", "192.0.2.1"], [f"2001:db8::{n:x}" for n in range(200)]],
    ids=["one address", "one address in two ways", "one network of IPv6"],
)
def test_nobody_forgets_the_logins_of_others_by_beginning_many(addresses: list[str]) -> None:
    with SignOnProvider().serving() as provider:
        assert isinstance(provider, SignOnProvider)
        under_way = logins(provider)
        begun = under_way.begin("", "198.51.100.7")
        mine = under_way.begin("", addresses[0])
        for number in range(PENDING_OF_ADDRESS_MAX * 3):
            under_way.begin("", addresses[number % len(addresses)])
        assert len(under_way._pending) == PENDING_OF_ADDRESS_MAX + 1
        back = urlsplit(httpx.get(begun.url, timeout=60).headers["location"]).query
        found = under_way.finish(begun.cookie, [(k, v) for k, [v] in parse_qs(back).items()])
        assert found.name == "ann"
        assert len(under_way._of_address) == 1
        state = parse_qs(urlsplit(mine.url).query)["state"][0]
        with pytest.raises(LoginError, match="not under way"):
            under_way.finish(mine.cookie, [("state", state), ("code", "x")])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ""),
        ("/topics", "/topics"),
        ("topics", ""),
        ("/topics/a b\r\n", "/topics/a%20b%0D%0A"),
        ("/topics/%2F", "/topics/%2F"),
        ("/ü", "/%C3%BC"),
    ],
)
def test_places_in_the_page(text: str, place: str) -> None:
    assert safe_place(text) == place


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"console.oidc.issuer": "http://idp.example"}, "console.oidc.issuer"),
        ({"console.oidc.issuer": "idp.example"}, "console.oidc.issuer"),
        ({"console.oidc.issuer": "https://a:b@idp.example"}, "console.oidc.issuer"),
        ({"console.oidc.issuer": "https://idp.example:99999"}, "console.oidc.issuer"),
        ({"console.oidc.issuer": ""}, "console.oidc.issuer"),
        ({"console.oidc.client.id": ""}, "console.oidc.client.id"),
        ({"console.oidc.scopes": "profile"}, "console.oidc.scopes"),
        ({"console.oidc.role.admin": "", "console.oidc.role.viewer": ""}, "console.oidc.role.NAME"),
        ({"console.oidc.role.king": "x"}, "console.oidc.role.king"),
        ({"console.oidc.colour": "red"}, "console.oidc.colour"),
        ({"console.oidc.redirect.uri": "https://c.example/"}, "console.oidc.redirect.uri"),
        (
            {"console.oidc.redirect.uri": "http://c.example/api/login/oidc/callback"},
            "console.oidc.redirect.uri",
        ),
        ({"listeners": "http://0.0.0.0:8090"}, "console.oidc.redirect.uri"),
        (
            {"console.oidc.ssl.truststore.location": "/nowhere"},
            "ssl.truststore.location",
        ),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(changes: dict[str, str], key: str) -> None:
    provider = SignOnProvider()
    provider.url = "https://idp.example/realms/one"
    assert ConsoleConfig(settings(provider)).oidc is not None
    with pytest.raises(ConfigError, match=key) as error:
        ConsoleConfig({**settings(provider), **changes})
    assert SECRET not in str(error.value)


def test_the_secret_is_in_no_text_of_the_settings() -> None:
    provider = SignOnProvider()
    provider.url = "https://idp.example"
    config = ConsoleConfig(settings(provider))
    assert SECRET not in repr(config)
    assert SECRET not in json.dumps(config.client)
