"""Who asks the controller: its decisions get the client's principal, however the request came."""

from types import SimpleNamespace
from typing import Any

from barnabas.node.broker.apis.topics import create_topics
from barnabas.node.broker.client_state import ClientState
from barnabas.node.broker.controller.handlers import decide, handle_envelope
from barnabas.node.broker.controller.requests import asker_of
from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.envelope import seal
from barnabas.node.security.authorizer import ALLOW_ALL, Caller
from barnabas.node.security.principal import USER, Principal
from barnabas.protocol.acls import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse

ALICE = Principal(USER, "alice")


class Metadata:
    """Notes who asks."""

    raft = SimpleNamespace(failure=None)

    def __init__(self) -> None:
        self.askers: list[Asker] = []

    async def decide_here(self, _request: Any, *, asker: Asker, **_: Any) -> CreateTopicsResponse:
        self.askers.append(asker)
        return CreateTopicsResponse()

    handle = decide_here

    async def wait_for(self, _condition: Any) -> None:
        pass


class Refusing:
    """An authorizer that lets a node alone act for the cluster."""

    is_enabled = True
    notes_grants = False
    generation = 0

    def allows(self, caller: Caller, operation: Operation, *_: Any, **__: Any) -> bool:
        return caller.principal.name == "node" and operation is Operation.CLUSTER_ACTION


def context_of(principal: Principal) -> Any:
    return SimpleNamespace(
        principal=principal,
        api_version=7,
        client_host="10.0.0.1",
        client_id="app",
        connection=SimpleNamespace(state=ClientState()),
        caller=Caller(principal, "10.0.0.1"),
    )


BOB = Asker("User:bob", "10.0.0.7", "his", is_token=True, api_version=7)


async def test_the_controller_knows_who_asks() -> None:
    services: Any = SimpleNamespace(metadata=Metadata(), authorizer=ALLOW_ALL)
    context = context_of(ALICE)
    alice = Asker("User:alice", "10.0.0.1", "app", api_version=7)
    await decide(services, context, CreateTopicsRequest(), CreateTopicsResponse)
    await handle_envelope(services, context, seal(CreateTopicsRequest(), 7, BOB, "c"))
    await create_topics(services, [], asker_of(context))
    assert services.metadata.askers == [alice, BOB, alice]


async def test_an_envelope_is_taken_from_nodes_only() -> None:
    """The sender of one states for whom it is."""
    services: Any = SimpleNamespace(metadata=Metadata(), authorizer=Refusing())
    envelope = seal(CreateTopicsRequest(), 7, BOB, "c")
    refused = await handle_envelope(services, context_of(ALICE), envelope)
    assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert services.metadata.askers == []
    taken = await handle_envelope(services, context_of(Principal(USER, "node")), envelope)
    assert taken.error_code == ErrorCode.NONE
    assert services.metadata.askers == [BOB]
