"""The tables of routes, and the principal that requests carry."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.network import ListenerOptions
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.handlers import CONTROLLER_ROUTES
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.handlers import ROUTES
from barnabas.node.broker.route import route
from barnabas.node.security.principal import ANONYMOUS, USER, Principal
from barnabas.protocol import apis
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse

FRAME = bytearray(encode_request(apis.HEARTBEAT.key, 4, 1, "client", HeartbeatRequest(group_id="")))


@pytest.mark.parametrize("table", [ROUTES, CONTROLLER_ROUTES], ids=["broker", "controller"])
def test_routes_are_in_the_order_of_their_keys(table: Any) -> None:
    keys = [route.api.key for route in table]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("route", [*ROUTES, *CONTROLLER_ROUTES], ids=lambda r: r.api.key.name)
def test_each_handler_has_a_name_that_can_be_found(route: Any) -> None:
    assert route.handler.__name__.startswith(("handle_", "ask_controller"))


class Listener:
    """A dispatcher of one API, and one connection."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []
        services: Any = SimpleNamespace(served_apis=set())
        self.connection: Any = SimpleNamespace(
            state=None,
            times=None,
            peer_host="client",
            listener_name="PLAINTEXT",
            listener=ListenerOptions(),
        )
        self.dispatcher = Dispatcher(services, [route(apis.HEARTBEAT, self.handle)])

    def handle(
        self, _: Any, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse:
        self.contexts.append(context)
        return HeartbeatResponse()


def test_requests_carry_the_principal_of_their_connection() -> None:
    listener = Listener()
    alice = Principal(USER, "alice")
    assert listener.dispatcher(listener.connection, FRAME)
    client_state(listener.connection).repeated = SimpleNamespace(answer=None)
    client_state(listener.connection).authenticated(alice)
    assert listener.dispatcher(listener.connection, FRAME)
    assert [context.principal for context in listener.contexts] == [ANONYMOUS, alice]
    assert (str(ANONYMOUS), str(alice)) == ("User:ANONYMOUS", "User:alice")


def test_a_fast_path_is_asked_before_the_header_is_read() -> None:
    listener = Listener()
    client_state(listener.connection).repeated = SimpleNamespace(
        answer=lambda connection, frame, *, alone=False: [b"known"] if frame == b"again" else None
    )
    assert listener.dispatcher(listener.connection, bytearray(b"again")) == [b"known"]
    assert not listener.contexts
    assert listener.dispatcher(listener.connection, FRAME) != [b"known"]
    assert len(listener.contexts) == 1
