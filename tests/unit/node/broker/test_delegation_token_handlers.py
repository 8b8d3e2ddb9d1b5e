"""Delegation token handlers ask the authorizer who may create and see which tokens."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.app.local_nodes import standalone_properties
from barnabas.node.broker.apis.tokens import (
    handle_create_delegation_token,
    handle_describe_delegation_token,
    may_ask_for_tokens,
)
from barnabas.node.broker.client_state import ClientState
from barnabas.node.broker.context import RequestContext
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.security.principal import ANONYMOUS, USER, Principal
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.credentials import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.metadata_records import DelegationTokenRecord

ALICE = Principal(USER, "alice")
CONFIG = NodeConfig.from_properties(
    standalone_properties("/data", overrides={"delegation.token.secret.key": "key"})
)


def context(
    principal: Principal = ALICE, protocol: str = "SASL_SSL", *, is_token: bool = False
) -> RequestContext:
    connection: Any = SimpleNamespace(
        times=None,
        peer_host="10.0.0.1",
        listener_name="L",
        listener=SimpleNamespace(security_protocol=protocol),
        state=ClientState(),
    )
    connection.state.authenticated(principal, is_token=is_token)
    return RequestContext(38, 3, 1, None, connection, principal)


class Rights:
    """An authorizer that allows what it is given."""

    is_enabled = True
    generation = 0

    def __init__(self, *allowed: tuple[Operation, ResourceType, str]) -> None:
        self._allowed = allowed

    def allows(
        self, _: Any, operation: Operation, kind: ResourceType, name: str, **__: Any
    ) -> bool:
        return (operation, kind, name) in self._allowed


def token(token_id: str, owner: str, *renewers: str) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        token_id=token_id, owner=owner, requester=owner, renewers=list(renewers)
    )


TOKENS = [
    token("own", "User:alice"),
    token("renewable", "User:bob", "User:alice"),
    token("bobs", "User:bob"),
    token("carols", "User:carol", "User:bob"),
]


class Metadata:
    """A controller that says yes."""

    async def handle(self, *_: Any, **__: Any) -> CreateDelegationTokenResponse:
        return CreateDelegationTokenResponse(token_id="made")


def services(*allowed: tuple[Operation, ResourceType, str]) -> Any:
    return SimpleNamespace(
        config=CONFIG,
        authorizer=Rights(*allowed),
        image=MetadataImage(
            cluster_id="c", delegation_tokens={entry.token_id: entry for entry in TOKENS}
        ),
        metadata=Metadata(),
    )


@pytest.mark.parametrize(
    ("protocol", "principal", "is_token", "expected"),
    [
        ("PLAINTEXT", ANONYMOUS, False, False),
        ("PLAINTEXT", ALICE, False, False),
        ("SSL", ANONYMOUS, False, False),
        ("SSL", ALICE, False, True),
        ("SASL_PLAINTEXT", ALICE, False, True),
        ("SASL_SSL", ALICE, False, True),
        ("SASL_SSL", ALICE, True, False),
        ("SASL_SSL", ANONYMOUS, False, True),
    ],
)
def test_connections_over_which_tokens_are_handed_out(
    protocol: str, principal: Principal, is_token: bool, expected: bool
) -> None:
    assert may_ask_for_tokens(context(principal, protocol, is_token=is_token)) is expected


DESCRIBE_BOBS = (Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "bobs")
DESCRIBE_OF_CAROL = (Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol")


@pytest.mark.parametrize(
    ("rights", "owners", "expected"),
    [
        ((), None, {"own", "renewable"}),
        ((DESCRIBE_BOBS,), None, {"own", "renewable", "bobs"}),
        ((DESCRIBE_OF_CAROL,), None, {"own", "renewable", "carols"}),
        ((DESCRIBE_BOBS, DESCRIBE_OF_CAROL), ["bob"], {"renewable", "bobs", "carols"}),
        ((), ["alice"], {"own", "renewable"}),
        ((), ["carol"], set()),
        ((DESCRIBE_BOBS,), [], set()),
    ],
)
def test_tokens_that_are_described(
    rights: tuple[Any, ...], owners: list[str] | None, expected: set[str]
) -> None:
    named = [
        DescribeDelegationTokenOwner(principal_type="User", principal_name=name)
        for name in owners or []
    ]
    request = DescribeDelegationTokenRequest(owners=None if owners is None else named)
    response = handle_describe_delegation_token(services(*rights), context(), request)
    assert response.error_code == ErrorCode.NONE
    assert {entry.token_id for entry in response.tokens} == expected


CREATE_FOR_BOB = (Operation.CREATE_TOKENS, ResourceType.USER, "User:bob")


@pytest.mark.parametrize(
    ("rights", "owner", "code"),
    [
        ((), None, ErrorCode.NONE),
        ((), "alice", ErrorCode.NONE),
        ((), "bob", ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
        ((CREATE_FOR_BOB,), "bob", ErrorCode.NONE),
        ((CREATE_FOR_BOB,), "carol", ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
    ],
)
async def test_owners_for_whom_tokens_are_made(
    rights: tuple[Any, ...], owner: str | None, code: ErrorCode
) -> None:
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else "User", owner_principal_name=owner
    )
    response = await handle_create_delegation_token(services(*rights), context(), request)
    assert response.error_code == code
    assert response.token_id == ("made" if code is ErrorCode.NONE else "")
