"""Requests between workers, signed."""

import pytest

from barnabas.connect.worker.distributed.records import SessionKey
from barnabas.connect.worker.distributed.signatures import (
    ALGORITHM,
    SIGNATURE,
    SignatureError,
    SigningRules,
    check,
    read_rules,
    sign,
)
from barnabas.schemas.data.errors import ConfigError

KEY = SessionKey(bytes(range(32)), "HmacSHA256", 1_000)
RULES = SigningRules()


def test_a_body_is_signed_as_java_signs_it() -> None:
    # Mac.getInstance("HmacSHA256"), key 0 to 31, doFinal("[]")
    assert sign(KEY, "HmacSHA256", b"[]") == {
        SIGNATURE: "RFz4uuvEwRyKDg2eLYkj6DfD/GYfMQFAut0Di01ZS3o=",
        ALGORITHM: "HmacSHA256",
    }


@pytest.mark.parametrize("algorithm", ["HmacSHA256", "HmacSHA1", "HmacSHA512", "HmacMD5"])
def test_what_is_signed_is_taken(algorithm: str) -> None:
    rules = SigningRules(verification_algorithms=(algorithm,))
    headers = {name.lower(): value for name, value in sign(KEY, algorithm, b"body").items()}
    check(rules, KEY, b"body", headers)


@pytest.mark.parametrize(
    ("key", "headers", "status", "words"),
    [
        (KEY, {}, 400, "missing required signature"),
        (KEY, sign(KEY, "HmacSHA256", b"other"), 403, "contained invalid signature"),
        (None, sign(KEY, "HmacSHA256", b"body"), 503, "still starting up"),
        (KEY, sign(KEY, "HmacSHA1", b"body"), 400, "does not support the 'HmacSHA1' key signing"),
        (KEY, {SIGNATURE: "AA==", ALGORITHM: "Odd"}, 400, "Algorithm Odd not available"),
        (KEY, {SIGNATURE: "?", ALGORITHM: "HmacSHA256"}, 400, "not base 64"),
    ],
)
def test_what_is_not_signed_is_refused(
    key: SessionKey | None, headers: dict[str, str], status: int, words: str
) -> None:
    with pytest.raises(SignatureError, match=words) as error:
        check(RULES, key, b"body", headers)
    assert error.value.status == status


def test_keys_are_renewed() -> None:
    assert RULES.must_renew(None, 0)
    assert not RULES.must_renew(KEY, KEY.created_ms + RULES.key_ttl_ms - 1)
    assert RULES.must_renew(KEY, KEY.created_ms + RULES.key_ttl_ms)
    assert not SigningRules(key_ttl_ms=0).must_renew(KEY, 10**15)
    assert SigningRules(key_algorithm="HmacSHA512").must_renew(KEY, 1_000)
    assert read_rules({"inter.worker.key.size": "512"}).must_renew(KEY, 1_000)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"signature.algorithm": "HmacSHA1"}, "must be in inter.worker.verification.algorithms"),
        ({"verification.algorithms": ""}, "At least one signature verification algorithm"),
        ({"key.generation.algorithm": "DES"}, "Invalid value DES"),
        ({"key.ttl.ms": "soon"}, "Invalid value soon"),
    ],
)
def test_settings_are_checked(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_rules({f"inter.worker.{name}": value for name, value in settings.items()})
