"""The exchange of OAUTHBEARER: a listener's answers, and unsecured tokens as Kafka has them."""

import json
from typing import Any

import pytest

from barnabas.base.errors import ConfigError
from barnabas.base.oauth.bearer import BearerToken, InvalidTokenError
from barnabas.node.net.oauth.message import BearerMessage, format_message
from barnabas.node.security.principal import Principal
from barnabas.node.security.sasl.mechanism import AuthenticationError, Login, Refusal
from barnabas.node.security.sasl.oauthbearer import OAuthBearer, UnsecuredValidator
from support.tokens import part, unsecured

NOW = 1_700_000_000
NOW_MS = NOW * 1000
TOKEN = "aaa.bbb.ccc"


def believe(token: str, now_ms: int) -> BearerToken:
    assert (token, now_ms) == (TOKEN, NOW_MS)
    return BearerToken("alice", NOW_MS + 5)


def refuse(_token: str, _now_ms: int) -> BearerToken:
    raise InvalidTokenError("the token has expired")


def refuse_scope(_token: str, _now_ms: int) -> BearerToken:
    raise InvalidTokenError("the token lacks the required scope", 'a "b"')


def message(name: str = "", **extensions: str) -> bytes:
    return format_message(BearerMessage(TOKEN, name, extensions))


@pytest.mark.parametrize("name", ["", "alice"])
def test_a_login(name: str) -> None:
    exchange = OAuthBearer(believe, lambda: NOW_MS).begin()
    assert exchange.login is None
    assert exchange.respond(message(name, traceId="1")) == b""
    assert exchange.login == Login(Principal("User", "alice"), NOW_MS + 5)


def test_a_name_that_is_not_the_tokens() -> None:
    exchange = OAuthBearer(believe, lambda: NOW_MS).begin()
    with pytest.raises(AuthenticationError, match=r"\(bob\) that is different .* \(alice\)"):
        exchange.respond(message("bob"))
    assert exchange.login is None


def test_a_refusal_is_told_twice() -> None:
    """In JSON, which ends no login, and when the client has read it as the failure."""
    exchange = OAuthBearer(refuse, lambda: NOW_MS).begin()
    answer = exchange.respond(message())
    assert isinstance(answer, Refusal)
    assert answer.reason == "the token has expired"
    assert json.loads(answer) == {"status": "invalid_token"}
    assert exchange.login is None
    with pytest.raises(AuthenticationError, match=r'\{"status":"invalid_token"\}'):
        exchange.respond(b"\x01")


def test_a_refusal_for_want_of_scope() -> None:
    answer = OAuthBearer(refuse_scope, lambda: NOW_MS).begin().respond(message())
    assert json.loads(answer) == {"status": "insufficient_scope", "scope": 'a "b"'}


def test_after_a_refusal_no_other_token_is_tried() -> None:
    exchange = OAuthBearer(refuse, lambda: NOW_MS).begin()
    exchange.respond(message())
    with pytest.raises(AuthenticationError):
        exchange.respond(message())


def test_what_is_no_message() -> None:
    with pytest.raises(AuthenticationError) as raised:
        OAuthBearer(believe, lambda: NOW_MS).begin().respond(b"n,,\x01auth=Basic secret\x01\x01")
    assert "secret" not in str(raised.value)


CLAIMS = {"sub": "alice", "iat": NOW - 1, "exp": NOW + 60}


def test_an_unsecured_token_is_believed() -> None:
    checks = UnsecuredValidator.from_options(
        {
            "unsecuredValidatorPrincipalClaimName": "user",
            "unsecuredValidatorScopeClaimName": "scp",
            "unsecuredValidatorRequiredScope": "a b",
            "unsecuredValidatorAllowableClockSkewMs": "3000",
        }
    )
    claims = CLAIMS | {"user": "bob", "scp": ["a", "b", "c"], "iat": NOW + 3}
    assert checks(unsecured(claims), NOW_MS).principal_name == "bob"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sub": None}, "sub is missing"),
        ({"sub": 5}, "sub is missing, or no text"),
        ({"exp": None}, "No expiration time"),
        ({"exp": NOW}, "has expired"),
        ({"iat": NOW + 1}, "in the future"),
        ({"iat": NOW + 1, "exp": NOW + 1}, "in the future"),
        ({"iat": "x"}, "iat is not a number"),
        ({"scope": 5}, "scope is not a list"),
    ],
)
def test_unsecured_tokens_that_are_refused(changes: dict[str, Any], reason: str) -> None:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    with pytest.raises(InvalidTokenError, match=reason):
        UnsecuredValidator()(unsecured(claims), NOW_MS)


@pytest.mark.parametrize(
    "token",
    [
        f"{part({'alg': 'RS256'})}.{part(CLAIMS)}.",
        f"{part({'alg': 'none'})}.{part(CLAIMS)}.{part(b'signature')}",
        f"{part({'alg': 'none'})}.{part(CLAIMS)}",
        f"{part({})}.{part(CLAIMS)}.",
    ],
)
def test_what_is_no_unsecured_token(token: str) -> None:
    with pytest.raises(InvalidTokenError):
        UnsecuredValidator()(token, NOW_MS)


def test_a_required_scope_that_is_missing_is_named() -> None:
    checks = UnsecuredValidator(required_scope=("a", "b"))
    with pytest.raises(InvalidTokenError) as raised:
        checks(unsecured(CLAIMS | {"scope": "a"}), NOW_MS)
    assert (raised.value.status, raised.value.scope) == ("insufficient_scope", "a b")


@pytest.mark.parametrize("skew", ["-1", "soon", "1.5"])
def test_a_clock_skew_that_is_none(skew: str) -> None:
    with pytest.raises(ConfigError, match="AllowableClockSkewMs"):
        UnsecuredValidator.from_options({"unsecuredValidatorAllowableClockSkewMs": skew})
