"""Who asks the controller: its decisions get the client's principal, however the request came."""

from types import SimpleNamespace
from typing import Any

from barnabas.broker.apis.topics.auto_create import create_topics
from barnabas.broker.controller.handlers import decide, handle_envelope
from barnabas.metadata.envelope import seal
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.security.principal import USER, Principal

ALICE = Principal(USER, "alice")


class Metadata:
    """Notes who asks."""

    raft = SimpleNamespace(failure=None)

    def __init__(self) -> None:
        self.principals: list[str] = []

    async def decide_here(self, _request: Any, *, principal: str, **_: Any) -> CreateTopicsResponse:
        self.principals.append(principal)
        return CreateTopicsResponse()

    handle = decide_here

    async def wait_for(self, _condition: Any) -> None:
        pass


async def test_the_controller_knows_who_asks() -> None:
    services: Any = SimpleNamespace(metadata=Metadata())
    context: Any = SimpleNamespace(principal=ALICE, api_version=7)
    await decide(services, context, CreateTopicsRequest(), CreateTopicsResponse)
    await handle_envelope(
        services, context, seal(CreateTopicsRequest(), 7, "User:bob", "10.0.0.7", "c")
    )
    await create_topics(services, [], ALICE)
    assert services.metadata.principals == ["User:alice", "User:bob", "User:alice"]
