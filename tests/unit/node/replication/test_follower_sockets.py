"""With which sockets a follower reaches its leader."""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.base.network import SYSTEM_OPTIONS, SocketOptions, StreamHandler, Transport
from sim.wire import SimNetwork
from support.replica_world import ReplicaWorld


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"replica_socket_receive_buffer_bytes": "70002"}, SocketOptions(70_002)),
        ({"socket_receive_buffer_bytes": "70002"}, SYSTEM_OPTIONS),
        ({}, SYSTEM_OPTIONS),
    ],
)
def test_a_followers_buffer_is_the_one_that_is_set_for_replicas(
    overrides: dict[str, Any], expected: SocketOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[SocketOptions] = []
    connect = SimNetwork.connect

    async def recording(
        self: SimNetwork,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: SocketOptions = SYSTEM_OPTIONS,
        tls: object = None,
    ) -> Transport:
        seen.append(options)
        return await connect(self, host, port, factory, options, tls)

    monkeypatch.setattr(SimNetwork, "connect", recording)
    world = ReplicaWorld(2, **overrides)

    async def scenario() -> None:
        await world.start()
        world.create_topic([1, 2])
        await world.leads(1)
        await world.in_sync(1, 2)
        await world.until(lambda: bool(seen))

    world.run(scenario())
    assert seen
    assert set(seen) == {expected}
