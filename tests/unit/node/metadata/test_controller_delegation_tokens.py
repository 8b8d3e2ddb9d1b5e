"""Delegation tokens as the controller decides them: a whole life, and each refusal."""

import hashlib
import hmac
import logging
from typing import Any

import pytest
from controller_harness import Harness

from barnabas.node.metadata import delegation_tokens
from barnabas.node.metadata.controller.decision import RECORDS_PER_REQUEST_MAX
from barnabas.node.metadata.controller.delegation_tokens import remove_expired_tokens
from barnabas.node.metadata.delegation_tokens import find_token, is_expired, token_hmac
from barnabas.node.metadata.loader import ImageLoader, RecordBatch
from barnabas.node.metadata.snapshot import image_records
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import MetadataVersion
from barnabas.protocol.messages.credentials import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.protocol.messages.metadata_records import DelegationTokenRecord

HOUR_MS = 3_600_000
SECRET = "a-very-secret-key"
KEY = "delegation_token_secret_key"


def cluster(level: MetadataVersion | None = None, **config: Any) -> Harness:
    settings: dict[str, Any] = {KEY: SECRET} | config
    harness = Harness(level, **settings) if level else Harness(**settings)
    harness.requester = "User:alice"
    harness.now_ms = 1_000_000
    return harness


def create(harness: Harness, **fields: Any) -> Any:
    renewers = [
        CreatableRenewers(principal_type="User", principal_name=name)
        for name in fields.pop("renewers", ())
    ]
    return harness.do(CreateDelegationTokenRequest(renewers=renewers, **fields))


def renew(harness: Harness, shown: bytes, period_ms: int = -1) -> Any:
    return harness.do(RenewDelegationTokenRequest(hmac=shown, renew_period_ms=period_ms))


def expire(harness: Harness, shown: bytes, period_ms: int = -1) -> Any:
    return harness.do(ExpireDelegationTokenRequest(hmac=shown, expiry_time_period_ms=period_ms))


def only_token(harness: Harness) -> DelegationTokenRecord:
    (token,) = harness.image.delegation_tokens.values()
    return token


def test_a_token_is_issued() -> None:
    harness = cluster()
    response = create(harness, renewers=["bob"], max_lifetime_ms=-1)
    assert response.error_code == ErrorCode.NONE
    assert (response.principal_type, response.principal_name) == ("User", "alice")
    assert response.token_requester_principal_name == "alice"
    assert response.issue_timestamp_ms == 1_000_000
    assert response.expiry_timestamp_ms == 1_000_000 + 24 * HOUR_MS
    assert response.max_timestamp_ms == 1_000_000 + 7 * 24 * HOUR_MS
    expected = hmac.new(SECRET.encode(), response.token_id.encode(), hashlib.sha512).digest()
    assert response.hmac == expected
    token = only_token(harness)
    assert token == DelegationTokenRecord(
        owner="User:alice",
        requester="User:alice",
        renewers=["User:bob"],
        issue_timestamp=1_000_000,
        max_timestamp=response.max_timestamp_ms,
        expiration_timestamp=response.expiry_timestamp_ms,
        token_id=response.token_id,
    )


def test_a_token_for_another_owner_names_who_asked() -> None:
    harness = cluster()
    response = create(harness, owner_principal_type="User", owner_principal_name="carol")
    assert (response.principal_name, response.token_requester_principal_name) == ("carol", "alice")
    token = only_token(harness)
    assert (token.owner, token.requester) == ("User:carol", "User:alice")
    # The requester does not own it.
    assert renew(harness, response.hmac).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


@pytest.mark.parametrize(
    ("asked_ms", "config", "max_after_ms", "expiry_after_ms"),
    [
        pytest.param(0, {}, 168 * HOUR_MS, 24 * HOUR_MS, id="nothing is asked"),
        pytest.param(HOUR_MS, {}, HOUR_MS, HOUR_MS, id="shorter than a renewal"),
        pytest.param(1000 * HOUR_MS, {}, 168 * HOUR_MS, 24 * HOUR_MS, id="longer than allowed"),
        pytest.param(
            0,
            {"delegation_token_expiry_time_ms": "5"},
            168 * HOUR_MS,
            5,
            id="a short time to be renewed in",
        ),
        pytest.param(
            0,
            {"delegation_token_max_lifetime_ms": str(2**63 - 1)},
            2**63 - 1 - 1_000_000,
            24 * HOUR_MS,
            id="a life as long as can be said",
        ),
    ],
)
def test_how_long_a_token_lives(
    asked_ms: int, config: dict[str, Any], max_after_ms: int, expiry_after_ms: int
) -> None:
    harness = cluster(**config)
    response = create(harness, max_lifetime_ms=asked_ms)
    assert response.max_timestamp_ms - 1_000_000 == max_after_ms
    assert response.expiry_timestamp_ms - 1_000_000 == expiry_after_ms


def test_renewal_ends_at_the_longest_life() -> None:
    harness = cluster(delegation_token_max_lifetime_ms=str(30 * HOUR_MS))
    shown = create(harness).hmac
    harness.now_ms += HOUR_MS
    assert renew(harness, shown, 2 * HOUR_MS).expiry_timestamp_ms == 1_000_000 + 3 * HOUR_MS
    assert only_token(harness).expiration_timestamp == 1_000_000 + 3 * HOUR_MS
    assert renew(harness, shown).expiry_timestamp_ms == 1_000_000 + 25 * HOUR_MS
    harness.now_ms += 20 * HOUR_MS
    assert renew(harness, shown).expiry_timestamp_ms == 1_000_000 + 30 * HOUR_MS


def test_renewers_renew_and_expire_but_others_do_not() -> None:
    harness = cluster()
    shown = create(harness, renewers=["bob"]).hmac
    harness.requester = "User:mallory"
    assert renew(harness, shown).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expire(harness, shown).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    harness.requester = "User:bob"
    assert renew(harness, shown).error_code == ErrorCode.NONE
    assert expire(harness, shown, 5).expiry_timestamp_ms == harness.now_ms + 5
    assert expire(harness, shown).expiry_timestamp_ms == harness.now_ms
    assert not harness.image.delegation_tokens
    assert renew(harness, shown).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_an_expired_token_can_only_be_removed() -> None:
    harness = cluster()
    shown = create(harness, max_lifetime_ms=1000).hmac
    harness.now_ms += 1000
    assert not is_expired(only_token(harness), harness.now_ms)
    harness.now_ms += 1
    assert is_expired(only_token(harness), harness.now_ms)
    assert renew(harness, shown).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(harness, shown, 5).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert expire(harness, shown).error_code == ErrorCode.NONE
    assert not harness.image.delegation_tokens


@pytest.mark.parametrize(
    ("level", "config", "code"),
    [
        pytest.param(None, {KEY: ""}, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, id="no key"),
        pytest.param(
            MetadataVersion.IBP_3_6_IV1, {}, ErrorCode.UNSUPPORTED_VERSION, id="too low a level"
        ),
    ],
)
def test_tokens_that_are_not_enabled(
    level: MetadataVersion | None, config: dict[str, Any], code: ErrorCode
) -> None:
    harness = cluster(level, **config)
    assert create(harness).error_code == code
    assert renew(harness, b"x").error_code == code
    assert expire(harness, b"x").error_code == code
    assert not harness.records
    assert remove_expired_tokens(harness.state()) is None


def test_renewers_must_be_users() -> None:
    harness = cluster()
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers(principal_type="Group", principal_name="staff")]
    )
    assert harness.do(request).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert not harness.records


@pytest.mark.parametrize("shown", [b"", b"\x00" * 64, b"x" * 10_000])
def test_what_is_no_token(shown: bytes) -> None:
    harness = cluster()
    create(harness)
    assert renew(harness, shown).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert expire(harness, shown).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_another_key_makes_another_secret() -> None:
    harness = cluster()
    response = create(harness)
    assert find_token(harness.image, SECRET, response.hmac) == only_token(harness)
    assert find_token(harness.image, "another", response.hmac) is None
    assert token_hmac("another", response.token_id) != response.hmac


def test_expired_tokens_are_swept(caplog: pytest.LogCaptureFixture) -> None:
    harness = cluster()
    create(harness, max_lifetime_ms=10)
    kept = create(harness).token_id
    harness.now_ms += 11
    with caplog.at_level(logging.INFO):
        decision = remove_expired_tokens(harness.state())
    assert decision is not None
    assert decision.response is False
    harness.append(decision.records)
    assert [token.token_id for token in harness.image.delegation_tokens.values()] == [kept]
    assert remove_expired_tokens(harness.state()) is None
    assert "User:alice has expired" in caplog.text
    assert SECRET not in caplog.text


def test_very_many_expired_tokens_are_swept_in_parts() -> None:
    harness = cluster()
    token = DelegationTokenRecord(owner="User:a", requester="User:a", max_timestamp=1)
    many = {str(number): token for number in range(RECORDS_PER_REQUEST_MAX + 1)}
    state = harness.state()
    state.image = type(state.image)(
        cluster_id="c", features=state.image.features, delegation_tokens=many
    )
    decision = remove_expired_tokens(state)
    assert decision is not None
    assert decision.response is True
    assert len(decision.records) == RECORDS_PER_REQUEST_MAX


def test_a_snapshot_keeps_tokens_and_no_secret() -> None:
    harness = cluster()
    response = create(harness, renewers=["bob"])
    records = list(image_records(harness.image))
    loader = ImageLoader(type(harness.image)(cluster_id=harness.image.cluster_id))
    loader.feed([RecordBatch(0, 1, 1000, records)])
    assert loader.image.delegation_tokens == harness.image.delegation_tokens
    assert response.hmac not in repr(records).encode()
    assert response.hmac.hex() not in repr(records)


def test_a_token_is_found_without_a_look_at_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = cluster()
    made = [create(harness) for _ in range(50)]
    assert find_token(harness.image, SECRET, made[0].hmac) is not None
    computed: list[str] = []

    def computes(_: str, token_id: str) -> bytes:
        computed.append(token_id)
        return b""

    monkeypatch.setattr(delegation_tokens, "token_hmac", computes)
    for shown in (made[7].hmac, bytes(64), b""):
        find_token(harness.image, SECRET, shown)
    assert not computed


def test_what_is_found_follows_the_image() -> None:
    harness = cluster()
    one, two = create(harness), create(harness)
    before = harness.image
    expire(harness, one.hmac)
    assert find_token(harness.image, SECRET, one.hmac) is None
    assert find_token(before, SECRET, one.hmac) == before.delegation_tokens[one.token_id]
    renewed = find_token(harness.image, SECRET, two.hmac)
    renew(harness, two.hmac, 1)
    assert find_token(harness.image, SECRET, two.hmac) != renewed
    assert find_token(harness.image, "another-secret", two.hmac) is None
