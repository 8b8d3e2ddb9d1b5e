"""Cost of an answer that comes later: a promise, an asyncio future, and a task that awaits one.

`python -m bench.promise_cost`
"""

import asyncio
import time

from barnabas.node.loop.promise import Promise

ANSWERS = 50_000
ROUNDS = 5


async def promises() -> int:
    """Settle promises whose callback counts the answer."""
    answered = 0

    def count(value: int) -> None:
        nonlocal answered
        answered += value

    for _ in range(ANSWERS):
        promise: Promise[int] = Promise()
        promise.then(count)
        promise.settle(1)
    return answered


async def futures() -> int:
    """The same with asyncio's futures, whose callbacks wait for the next turn of the loop."""
    answered = 0

    def count(future: "asyncio.Future[int]") -> None:
        nonlocal answered
        answered += future.result()

    loop = asyncio.get_running_loop()
    for _ in range(ANSWERS):
        future: asyncio.Future[int] = loop.create_future()
        future.add_done_callback(count)
        future.set_result(1)
    await asyncio.sleep(0)
    return answered


async def tasks() -> int:
    """The same with one task for each answer, as a coroutine for each request would need."""
    answered = 0

    async def wait_for(future: "asyncio.Future[int]") -> None:
        nonlocal answered
        answered += await future

    loop = asyncio.get_running_loop()
    waiting = []
    for _ in range(ANSWERS):
        future: asyncio.Future[int] = loop.create_future()
        waiting.append(asyncio.ensure_future(wait_for(future)))
        future.set_result(1)
    await asyncio.gather(*waiting)
    return answered


def main() -> None:
    """Print the best of some rounds for each, in microseconds of CPU per answer."""
    for way in (promises, futures, tasks):
        best_s = min(_cpu_s(way) for _ in range(ROUNDS))
        print(f"{way.__name__:10} {best_s / ANSWERS * 1e6:6.2f} µs")


def _cpu_s(way: object) -> float:
    assert callable(way)
    began = time.process_time()
    assert asyncio.run(way()) == ANSWERS
    return time.process_time() - began


if __name__ == "__main__":
    main()
