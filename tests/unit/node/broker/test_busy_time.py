"""Only the steps of a coroutine count, not what it waits for."""

import asyncio

import pytest

from barnabas.node.broker.route import Measured


class Work:
    """Each step takes ten, each wait a thousand."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.was_cancelled = False

    async def run(self) -> int:
        self.now_ns += 10
        try:
            value = await self.gate
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        finally:
            self.now_ns += 10
        return value

    def open(self, value: int) -> None:
        self.now_ns += 1000
        self.gate.set_result(value)


async def test_steps_count_and_waits_do_not() -> None:
    work = Work()
    measured = Measured(work.run(), lambda: work.now_ns)
    asyncio.get_running_loop().call_soon(work.open, 7)
    assert await measured == 7
    assert (measured.busy_ns, work.now_ns) == (20, 1020)


async def test_errors_and_cancellation_reach_the_work() -> None:
    work = Work()
    measured = Measured(work.run(), lambda: work.now_ns)
    work.gate.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await measured
    assert measured.busy_ns == 20
    other = Work()

    async def wait() -> int:
        return await Measured(other.run(), lambda: other.now_ns)

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert other.was_cancelled
