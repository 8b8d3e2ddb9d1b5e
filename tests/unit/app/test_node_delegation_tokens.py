"""Delegation tokens at a node: the whole life of one, and who sees and changes whose."""

import base64
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from test_node_logins import peer_of, running, scram

from barnabas.app.node import Node
from barnabas.node.net.client import Peer
from barnabas.node.net.login import Login, LoginError, ScramLogin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from barnabas.protocol.messages.metadata import DescribeClusterRequest
from support.shifted_clock import ShiftedClock

KEY = {"delegation.token.secret.key": "the-nodes-own-secret"}
NONE = ErrorCode.NONE
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.fixture
def clock() -> ShiftedClock:
    return ShiftedClock()


@pytest.fixture
async def node(clock: ShiftedClock) -> AsyncIterator[Node]:
    async with running(KEY, clock) as started:
        yield started


class Users:
    """Connections to one node, closed together."""

    def __init__(
        self, node: Node, listener: str = "PLAINTEXT", clock: ShiftedClock | None = None
    ) -> None:
        self._node = node
        self._listener = listener
        self._clock = clock
        self._peers: list[Peer] = []

    def __enter__(self) -> "Users":
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self._peers:
            peer.close()

    def by(self, login: Login | None) -> Peer:
        self._peers.append(peer_of(self._node, login, self._listener, self._clock))
        return self._peers[-1]

    @property
    def alice(self) -> Peer:
        return self.by(scram("SCRAM-SHA-256", "alice", "alice-secret"))

    @property
    def other(self) -> Peer:
        return self.by(scram("SCRAM-SHA-512", "node", "node-secret"))

    def by_token(self, token_id: str, hmac: bytes, mechanism: str = "SCRAM-SHA-256") -> Peer:
        password = base64.b64encode(hmac).decode()
        nonce = f"{random.random()}"
        return self.by(
            ScramLogin(mechanism, token_id, password, lambda: nonce, {"tokenauth": "true"})
        )


async def tokens_seen(peer: Peer, *owners: str) -> list[Any]:
    named = [
        DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners
    ]
    response = await peer.send(DescribeDelegationTokenRequest(owners=named or None))
    assert response.error_code == NONE
    tokens: list[Any] = response.tokens
    return tokens


async def test_the_life_of_a_token(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    with Users(node) as users:
        alice = users.alice
        made = await alice.send(
            CreateDelegationTokenRequest(
                renewers=[CreatableRenewers(principal_type="User", principal_name="node")],
                max_lifetime_ms=3_600_000,
            )
        )
        assert made.error_code == NONE
        assert made.principal_name == made.token_requester_principal_name == "alice"
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            held = users.by_token(made.token_id, made.hmac, mechanism)
            assert (await held.send(DescribeClusterRequest())).error_code == NONE
        for request in (
            CreateDelegationTokenRequest(),
            RenewDelegationTokenRequest(hmac=made.hmac),
            ExpireDelegationTokenRequest(hmac=made.hmac),
            DescribeDelegationTokenRequest(owners=None),
        ):
            assert (await held.send(request)).error_code == NOT_ALLOWED
        (seen,) = await tokens_seen(alice)
        assert (seen.token_id, seen.hmac, seen.max_timestamp) == (
            made.token_id,
            made.hmac,
            made.max_timestamp_ms,
        )
        assert [renewer.principal_name for renewer in seen.renewers] == ["node"]
        assert seen.token_requester_principal_name == "alice"
        renewed = await users.other.send(
            RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=1000)
        )
        assert renewed.error_code == NONE
        assert renewed.expiry_timestamp_ms < made.expiry_timestamp_ms
        ended = await alice.send(
            ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
        )
        assert ended.error_code == NONE
        assert await tokens_seen(alice) == []
        with pytest.raises(LoginError, match="invalid credentials"):
            await users.by_token(made.token_id, made.hmac).send(DescribeClusterRequest())
    shown = (made.hmac.hex(), base64.b64encode(made.hmac).decode(), repr(made.hmac))
    assert not any(text in caplog.text for text in (*shown, *KEY.values()))


async def test_who_sees_which_tokens(node: Node) -> None:
    with Users(node) as users:
        alice, other = users.alice, users.other
        own = await alice.send(CreateDelegationTokenRequest())
        others = await other.send(
            CreateDelegationTokenRequest(
                owner_principal_type="User",
                owner_principal_name="carol",
                renewers=[CreatableRenewers(principal_type="User", principal_name="alice")],
            )
        )
        assert (own.error_code, others.error_code) == (NONE, NONE)
        assert others.principal_name == "carol"

        def ids(tokens: list[Any]) -> set[str]:
            return {token.token_id for token in tokens}

        # Without an authorizer everybody may see all.
        assert ids(await tokens_seen(other)) == {own.token_id, others.token_id}
        assert ids(await tokens_seen(alice, "alice")) == {own.token_id, others.token_id}
        assert ids(await tokens_seen(alice, "carol")) == {others.token_id}
        assert ids(await tokens_seen(alice, "nobody")) == set()
        nobody = await alice.send(DescribeDelegationTokenRequest(owners=[]))
        assert (nobody.error_code, nobody.tokens) == (NONE, [])


async def test_renewers_that_are_no_users(node: Node) -> None:
    with Users(node) as users:
        answer = await users.alice.send(
            CreateDelegationTokenRequest(
                renewers=[CreatableRenewers(principal_type="Group", principal_name="g")]
            )
        )
        assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        assert (answer.issue_timestamp_ms, answer.principal_name) == (-1, "alice")


@pytest.mark.parametrize("wrong", ["id", "secret", "extension"])
async def test_who_has_no_such_token(node: Node, wrong: str) -> None:
    with Users(node) as users:
        made = await users.alice.send(CreateDelegationTokenRequest())
        peer = {
            "id": lambda: users.by_token("another", made.hmac),
            "secret": lambda: users.by_token(made.token_id, b"x" * 64),
            "extension": lambda: users.by(
                scram("SCRAM-SHA-256", made.token_id, base64.b64encode(made.hmac).decode())
            ),
        }[wrong]()
        with pytest.raises(LoginError, match="invalid credentials"):
            await peer.send(DescribeClusterRequest())


async def test_a_users_password_is_no_token(node: Node) -> None:
    with Users(node) as users:
        login = ScramLogin(
            "SCRAM-SHA-256", "alice", "alice-secret", lambda: "n", {"tokenauth": "true"}
        )
        with pytest.raises(LoginError, match="invalid credentials"):
            await users.by(login).send(DescribeClusterRequest())


REQUESTS = [
    CreateDelegationTokenRequest(),
    RenewDelegationTokenRequest(hmac=b"x"),
    ExpireDelegationTokenRequest(hmac=b"x"),
    DescribeDelegationTokenRequest(owners=None),
]


async def test_tokens_that_are_not_enabled() -> None:
    async with running() as node:
        with Users(node) as users:
            for request in REQUESTS:
                code = (await users.alice.send(request)).error_code
                assert code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


async def test_over_plaintext_no_tokens_are_handed_out() -> None:
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    async with running(KEY | protocols) as node:
        with Users(node) as users:
            for request in REQUESTS:
                assert (await users.by(None).send(request)).error_code == NOT_ALLOWED
        with Users(node, "CONTROLLER") as users:
            for request in REQUESTS[:3]:
                assert (await users.by(None).send(request)).error_code == NOT_ALLOWED


async def test_the_controller_may_be_asked_itself(node: Node) -> None:
    with Users(node, "CONTROLLER") as users:
        from barnabas.node.net.login import PlainLogin

        peer = users.by(PlainLogin("alice", "alice-secret"))
        made = await peer.send(CreateDelegationTokenRequest())
        assert (made.error_code, made.principal_name) == (NONE, "alice")
        renewed = await peer.send(RenewDelegationTokenRequest(hmac=made.hmac))
        assert renewed.error_code == NONE


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_every_version(node: Node, version: int) -> None:
    """Responses name the requester of a token from version 3 on."""
    with Users(node) as users:
        alice = users.alice
        made = await alice.send(CreateDelegationTokenRequest(), version=version)
        assert (made.error_code, made.principal_name) == (NONE, "alice")
        assert made.token_requester_principal_name == ("alice" if version == 3 else "")
        described = await alice.send(DescribeDelegationTokenRequest(owners=None), version=version)
        (token,) = described.tokens
        assert (token.hmac, token.principal_name) == (made.hmac, "alice")
        refused = CreateDelegationTokenRequest(
            renewers=[CreatableRenewers(principal_type="Group", principal_name="g")]
        )
        answer = await alice.send(refused, version=version)
        assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


LIFE_MS, STEP_MS = 5000, 100
"""Less than a broker's session at the controller, for which the clock goes forward too."""


async def test_a_connection_outlives_its_token_if_the_token_is_renewed(
    node: Node, clock: ShiftedClock
) -> None:
    """It logs in again when the login ends that the token gave it as it was (KIP-368)."""
    with Users(node, clock=clock) as users:
        alice = users.alice
        made = await alice.send(CreateDelegationTokenRequest())
        ended = await alice.send(
            ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=LIFE_MS)
        )
        held = users.by_token(made.token_id, made.hmac)
        assert await held.send(DescribeClusterRequest())
        renewed = await alice.send(RenewDelegationTokenRequest(hmac=made.hmac))
        assert renewed.expiry_timestamp_ms > ended.expiry_timestamp_ms
        while clock.now_ms() < ended.expiry_timestamp_ms + 200:
            assert await held.send(DescribeClusterRequest())
            clock.shift_ms += STEP_MS


async def test_a_connection_ends_with_its_token(node: Node, clock: ShiftedClock) -> None:
    with Users(node, clock=clock) as users:
        alice = users.alice
        made = await alice.send(CreateDelegationTokenRequest())
        request = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=LIFE_MS)
        assert (await alice.send(request)).error_code == NONE
        held = users.by_token(made.token_id, made.hmac)
        assert await held.send(DescribeClusterRequest())
        with pytest.raises(ConnectionError):
            await _ask_for_ever(held, clock)
        assert clock.shift_ms <= LIFE_MS + STEP_MS


async def _ask_for_ever(peer: Peer, clock: ShiftedClock) -> None:
    while True:
        await peer.send(DescribeClusterRequest())
        clock.shift_ms += STEP_MS
