"""Work beside a node's requests ends with the node."""

import asyncio

from barnabas.app.background import Background
from sim.manual_clock import ManualClock


async def test_what_waits_for_an_answer_is_called_off_at_the_end() -> None:
    background = Background(ManualClock())
    begun, ended = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    background.start(ask())
    await begun.wait()
    await background.end()
    assert ended.is_set()
    begun.clear()
    background.start(ask())  # the cluster's metadata may still change
    await background.end()
    assert not begun.is_set()
