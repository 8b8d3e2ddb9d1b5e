"""A listener that ends: no request that came in last leaves a coroutine that nobody awaits."""

import asyncio
import gc
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any, cast

from barnabas.base.network import ListenerOptions
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.route import route
from barnabas.node.net.connection import Connection, Reply
from barnabas.protocol import apis
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.frames import encode_request
from barnabas.protocol.messages.metadata import DescribeClusterRequest


async def test_a_request_that_has_not_begun_leaves_nothing_behind() -> None:
    began = []

    async def answer() -> None:
        began.append("inner")
        await asyncio.get_running_loop().create_future()

    async def handle(inner: Awaitable[None]) -> None:
        await inner  # as a handler does that leaves its answer to another one

    def handler(_services: Any, _context: RequestContext, _request: Any) -> Any:
        return handle(answer())

    services = SimpleNamespace(served_apis=set())
    dispatcher = Dispatcher(services, [route(apis.DESCRIBE_CLUSTER, handler)])
    frame = encode_request(ApiKey.DESCRIBE_CLUSTER, 0, 1, "test", DescribeClusterRequest())
    connection = SimpleNamespace(
        state=None,
        times=None,
        peer_host="client",
        listener_name="PLAINTEXT",
        listener=ListenerOptions(),
    )
    reply = dispatcher(cast("Connection", connection), bytearray(frame))
    assert isinstance(reply, Reply)
    assert not began
    await dispatcher.close()
    gc.collect()  # "never awaited" is an error here
    assert began == ["inner"]
