"""The event loop on virtual time, and what belongs to whom in it."""

import asyncio

import pytest

from sim.loop import LivelockError, Process, SimLoop


def test_time_jumps_to_what_is_due_next_and_order_is_kept() -> None:
    loop = SimLoop()
    seen: list[tuple[str, float]] = []

    async def main() -> None:
        loop.call_later(5, lambda: seen.append(("late", loop.time())))
        loop.call_later(2, lambda: seen.append(("early", loop.time())))
        loop.call_soon(lambda: seen.append(("soon", loop.time())))
        await asyncio.sleep(3600)

    loop.run_until_complete(main())
    assert seen == [("soon", 0.0), ("early", 2.0), ("late", 5.0)]
    assert loop.time() == 3600


def test_what_asyncio_offers_works() -> None:
    loop = SimLoop()

    async def main() -> object:
        event, lock = asyncio.Event(), asyncio.Lock()
        loop.call_later(1, event.set)
        await event.wait()
        async with lock:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(2):
                    await asyncio.sleep(10)
        done, late = await asyncio.wait([asyncio.ensure_future(asyncio.sleep(9))], timeout=1)
        assert not done
        assert len(late) == 1
        worked = await asyncio.to_thread(lambda: 17)
        return await asyncio.gather(asyncio.sleep(1, "a"), asyncio.shield(asyncio.sleep(1, worked)))

    assert loop.run_until_complete(main()) == ["a", 17]
    assert 5 < loop.time() < 5.5
    loop.close()


def test_a_killed_process_runs_no_more_and_its_end_is_silent() -> None:
    loop = SimLoop()
    steps: list[str] = []

    async def work() -> None:
        try:
            for number in range(100):
                steps.append(str(number))
                await asyncio.sleep(1)
        finally:
            steps.append("cleaned up")

    async def main() -> None:
        process = Process("a", 1)
        loop.create_task(work(), context=process.context)
        await asyncio.sleep(2.5)
        loop.kill(process)
        await asyncio.sleep(10)

    loop.run_until_complete(main())
    assert steps == ["0", "1", "2"]
    loop.close()


def test_a_stopped_process_stands_still_and_then_goes_on() -> None:
    loop = SimLoop()
    times: list[float] = []

    async def work() -> None:
        while True:
            times.append(loop.time())
            await asyncio.sleep(1)

    async def main() -> None:
        process = Process("a", 1)
        loop.create_task(work(), context=process.context)
        await asyncio.sleep(1.5)
        loop.stop_process(process)
        await asyncio.sleep(10)
        loop.continue_process(process)
        await asyncio.sleep(1.2)

    loop.run_until_complete(main())
    assert times == [0, 1, 11.5, 12.5]
    loop.close()


def test_spinning_without_time_passing_is_found() -> None:
    loop = SimLoop()

    async def spin() -> None:
        while True:  # noqa: ASYNC110  # that is what is to be found
            await asyncio.sleep(0)  # that is what is to be found

    with pytest.raises(LivelockError, match=r"at 0\.000 s"):
        loop.run_until_complete(spin())
    loop.close()


def test_what_escapes_from_callbacks_is_told() -> None:
    loop = SimLoop()
    told: list[BaseException | None] = []
    loop.on_exception = lambda message, error: told.append(error)

    def fail() -> None:
        raise ValueError("x")

    async def main() -> None:
        loop.call_soon(fail)
        await asyncio.sleep(1)

    loop.run_until_complete(main())
    assert [repr(error) for error in told] == ["ValueError('x')"]
