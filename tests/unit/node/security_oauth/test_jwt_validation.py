"""Which tokens a listener believes: one table of what is right with one thing wrong."""

import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st

from barnabas.base.oauth.bearer import BearerToken, InvalidTokenError
from barnabas.base.oauth.key_set import KeySet, KeySetError, parse_key_set
from barnabas.base.oauth.signed import JwtValidator
from support.tokens import Issuer, jwk, part, rsa_key, unsecured

NOW = 1_700_000_000
NOW_MS = NOW * 1000
ISSUER = Issuer()
TWO_ALGORITHMS = b'{"alg": "none", "alg": "RS256"}'
CLAIMS = {"sub": "alice", "iat": NOW - 10, "exp": NOW + 60, "iss": "https://issuer", "aud": "kafka"}


class KnownKeys:
    """Keys that do not change, and which were missed."""

    def __init__(self, text: str) -> None:
        self._keys = parse_key_set(text)
        self.missing: list[str] = []

    def current(self) -> KeySet:
        return self._keys

    def missed(self, key_id: str) -> None:
        self.missing.append(key_id)


def validator(text: str | None = None, **settings: Any) -> JwtValidator:
    keys = KnownKeys(ISSUER.key_set() if text is None else text)
    return JwtValidator(keys, **({"audiences": ["kafka"], "issuer": "https://issuer"} | settings))


def signed(**changes: Any) -> str:
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    return ISSUER.sign(claims)


def test_a_token_is_believed() -> None:
    token = signed(scope=["read", "write"], nbf=NOW)
    assert validator()(token, NOW_MS) == BearerToken(
        "alice", (NOW + 60) * 1000, frozenset({"read", "write"}), (NOW - 10) * 1000
    )


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"exp": NOW - 29, "iat": NOW - 99}, id="expired within the skew"),
        pytest.param({"nbf": NOW + 30}, id="valid in a moment"),
        pytest.param({"exp": NOW + 0.5}, id="a fraction of a second"),
        pytest.param({"aud": ["other", "kafka"]}, id="one of its audiences"),
        pytest.param({"scope": "one"}, id="a single scope"),
        pytest.param({"sub": "  alice "}, id="space around the subject"),
        pytest.param({"iat": NOW + 20}, id="issued by a clock ahead of ours"),
    ],
)
def test_what_is_believed_too(changes: dict[str, Any]) -> None:
    assert validator()(signed(**changes), NOW_MS).principal_name == "alice"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"exp": NOW - 30, "iat": NOW - 99}, "has expired", id="expired"),
        pytest.param({"exp": None}, "no claim exp", id="no end"),
        pytest.param({"exp": "soon"}, "exp is not a number", id="an end in words"),
        pytest.param({"exp": True}, "exp is not a number", id="an end that is true"),
        pytest.param({"exp": -1}, "exp is not a time", id="an end before all time"),
        pytest.param({"exp": 10**400}, "exp is not a time", id="an end after all time"),
        pytest.param({"iat": None}, "no claim iat", id="no beginning"),
        pytest.param({"iat": NOW + 61}, "before it is valid", id="ends before it begins"),
        pytest.param({"nbf": NOW + 31}, "not valid yet", id="not valid yet"),
        pytest.param({"aud": None}, "another audience", id="no audience"),
        pytest.param({"aud": "other"}, "another audience", id="another audience"),
        pytest.param({"aud": {"kafka": 1}}, "aud is not a list", id="an audience of another form"),
        pytest.param({"iss": None}, "another issuer", id="no issuer"),
        pytest.param({"iss": "https://issuer/"}, "another issuer", id="another issuer"),
        pytest.param({"sub": None}, "sub is missing", id="no subject"),
        pytest.param({"sub": ""}, "sub is empty", id="an empty subject"),
        pytest.param({"sub": 7}, "sub is missing, or no text", id="a subject that is a number"),
        pytest.param({"scope": ["a", "a"]}, "repeats", id="a scope twice"),
        pytest.param({"scope": [" "]}, "empty in parts", id="an empty scope"),
        pytest.param({"scope": [1]}, "scope is not a list", id="a scope that is a number"),
    ],
)
def test_claims_that_are_refused(changes: dict[str, Any], reason: str) -> None:
    token = (
        ISSUER.sign(CLAIMS)
        if not changes
        else _encoded({n: v for n, v in (CLAIMS | changes).items() if v is not None})
    )
    with pytest.raises(InvalidTokenError, match=reason) as raised:
        validator()(token, NOW_MS)
    assert raised.value.status == "invalid_token"
    assert token.split(".")[1] not in str(raised.value)


def _encoded(claims: dict[str, Any]) -> str:
    """As `Issuer.sign`, without a library that checks claims when it writes them."""
    head = f"{part({'alg': 'RS256', 'kid': ISSUER.key_id})}.{part(claims)}"
    signature = jwt.get_algorithm_by_name("RS256").sign(head.encode(), ISSUER.key)
    return f"{head}.{part(signature)}"


def test_without_an_expected_audience_a_token_must_name_none() -> None:
    """It is meant for somebody else, as jose4j has it."""
    open_to_all = validator(audiences=(), issuer=None)
    assert open_to_all(signed(aud=None, iss="anybody"), NOW_MS).principal_name == "alice"
    with pytest.raises(InvalidTokenError, match="audience is not set"):
        open_to_all(signed(), NOW_MS)


def test_claims_of_other_names() -> None:
    told = validator(subject_claim="user", scope_claim="scp")(signed(user="u", scp="s"), NOW_MS)
    assert (told.principal_name, told.scope) == ("u", {"s"})


def hs256_with_the_public_key() -> str:
    """The old confusion: an HMAC whose secret is the public key."""
    public = ISSUER.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    import hashlib
    import hmac

    head = f"{part({'alg': 'HS256', 'kid': ISSUER.key_id})}.{part(CLAIMS)}"
    return f"{head}.{part(hmac.digest(public, head.encode(), hashlib.sha256))}"


def tampered() -> str:
    header, _, signature = signed().split(".")
    return f"{header}.{part(CLAIMS | {'sub': 'admin'})}.{signature}"


def unsigned() -> str:
    header, claims, _ = signed().split(".")
    return f"{header}.{claims}."


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        pytest.param(unsecured(CLAIMS), "algorithm that is allowed", id="alg none"),
        pytest.param(
            f"{part({'alg': 'NoNe'})}.{part(CLAIMS)}.", "algorithm that is allowed", id="alg NoNe"
        ),
        pytest.param(
            f"{part({'alg': 'none'})}.{part(CLAIMS)}.{part(b'x')}",
            "algorithm that is allowed",
            id="alg none and a signature",
        ),
        pytest.param(
            f"{part({})}.{part(CLAIMS)}.x", "is not base64|algorithm that", id="no algorithm"
        ),
        pytest.param(
            f"{part({'alg': ['RS256']})}.{part(CLAIMS)}.", "algorithm that", id="alg is a list"
        ),
        pytest.param(hs256_with_the_public_key(), "algorithm that is allowed", id="HMAC"),
        pytest.param(unsigned(), "signature is wrong", id="no signature"),
        pytest.param(tampered(), "signature is wrong", id="claims of another"),
        pytest.param(
            ISSUER.sign(CLAIMS, {"kid": "unknown"}), "no key of the issuer", id="an unknown key"
        ),
        pytest.param(
            ISSUER.sign(CLAIMS, {"crit": ["exp"]}), "critical header", id="a critical header"
        ),
        pytest.param(
            ISSUER.sign(CLAIMS, algorithm="RS512"),
            "no key of the issuer",
            id="an algorithm that the key is not for",
        ),
        pytest.param("", "1 sections", id="nothing"),
        pytest.param("a.b", "2 sections", id="two parts"),
        pytest.param("a.b.c.d.e", "5 sections", id="an encrypted token"),
        pytest.param("..", "is not JSON", id="three empty parts"),
        pytest.param("!.!.!", "not base64", id="not base64"),
        pytest.param("a.b.c", "not base64", id="a length that base64 never has"),
        pytest.param(f"{part([])}.{part({})}.", "not a JSON object", id="a header that is a list"),
        pytest.param(
            f"{part(b'[' * 100_000)}.{part({})}.", "is not JSON", id="lists in lists in lists"
        ),
        pytest.param(
            f"{part(TWO_ALGORITHMS)}.{part(CLAIMS)}.",
            "is not JSON",
            id="a header that says two things",
        ),
        pytest.param("x" * 400_000, "1 sections", id="very long"),
        pytest.param(f"{part({'alg': 'RS256', 'kid': 5})}.{part({})}.", "key id", id="kid 5"),
    ],
)
def test_tokens_that_are_refused(token: str, reason: str) -> None:
    with pytest.raises(InvalidTokenError, match=reason) as raised:
        validator()(token, NOW_MS)
    assert len(str(raised.value)) < 200


def test_a_missing_key_is_asked_for_unless_its_id_is_absurd() -> None:
    checks = validator()
    for key_id in ("new", "x" * 1001):
        with pytest.raises(InvalidTokenError):
            checks(ISSUER.sign(CLAIMS, {"kid": key_id}), NOW_MS)
    assert isinstance(checks.keys, KnownKeys)
    assert checks.keys.missing == ["new"]


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa_key("first"), "RS384"),
        (rsa_key("first"), "PS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_every_kind_of_signature(key: Any, algorithm: str) -> None:
    checks = validator(json.dumps({"keys": [jwk(rsa_key("other")), jwk(key, kid="k")]}))
    token = jwt.encode(CLAIMS, key, algorithm)  # it names no key: all that fit are tried
    assert checks(token, NOW_MS).principal_name == "alice"
    other = jwt.encode(CLAIMS | {"sub": "bob"}, key, algorithm)
    mixed = ".".join((*token.split(".")[:2], other.split(".")[2]))
    with pytest.raises(InvalidTokenError, match="signature is wrong"):
        checks(mixed, NOW_MS)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (jwk(rsa_key("first"), use="enc"), "a key for encryption"),
        (jwk(rsa_key("first"), key_ops=["encrypt"]), "a key for other operations"),
        (jwk(rsa_key("first"), alg="RSA-OAEP"), "a key of another algorithm"),
        (jwk(rsa_key("weak", 1024)), "a short key"),
        ({"kty": "oct", "k": "c2VjcmV0"}, "a secret"),
        ({"kty": "RSA", "n": "!", "e": "AQAB"}, "no number"),
        ({"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"}, "an unknown curve"),
        ({}, "nothing"),
        ({"kty": ["RSA"]}, "a kind that is not text"),
        (jwk(rsa_key("first")) | {"alg": {}}, "an algorithm that is not text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_keys_that_sign_no_tokens_are_passed_over(entry: dict[str, Any], why: str) -> None:
    assert len(parse_key_set(json.dumps({"keys": [entry, "x", jwk(rsa_key("first"))]}))) == 1
    with pytest.raises(KeySetError, match="no key"):
        parse_key_set(json.dumps({"keys": [entry]}))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 5}', '{"keys": []}', "[" * 100_000])
def test_what_is_no_key_set(text: str) -> None:
    with pytest.raises(KeySetError):
        parse_key_set(text)


@given(st.text(st.sampled_from("aZ09-_.=+/{}\n"), max_size=60), st.binary(max_size=60))
def test_no_token_does_more_than_be_refused(text: str, data: bytes) -> None:
    checks = validator()
    header = part({"alg": "RS256"})
    for token in (text, f"{header}.{text}.{text}", f"{header}.{part(data)}.{part(data)}"):
        with pytest.raises(InvalidTokenError):
            checks(token, NOW_MS)
