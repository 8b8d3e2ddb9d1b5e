"""Errors in words, and tasks that end by an error of our own."""

import asyncio
import logging
from typing import Any

import pytest
from aiokafka import errors

from barnabas.registry.kafka.faults import StoreError, watch, words


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.ProducerFenced(), "another instance has taken over"),
        (errors.TransactionalIdAuthorizationFailed(), "allow Write and Describe"),
        (errors.GroupAuthorizationFailedError("g"), "refuse the group"),
        (TimeoutError(), "TimeoutError"),
        (OSError(5, "wet"), "OSError: [Errno 5] wet"),
    ],
)
def test_words(error: BaseException, said: str) -> None:
    assert said in words(error)


async def test_an_error_of_our_own_is_the_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def stumble() -> None:
        raise KeyError("x")

    failure: asyncio.Future[StoreError] = asyncio.get_running_loop().create_future()
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            watch(asyncio.create_task(stumble()), "the reader", failure)
        assert "the reader has ended with an internal error: KeyError('x')" in str(await failure)
    assert "stumble" in caplog.text


async def test_a_task_that_is_cancelled_or_done_is_no_failure() -> None:
    failure: asyncio.Future[StoreError] = asyncio.get_running_loop().create_future()
    tasks: list[asyncio.Task[Any]] = [
        asyncio.create_task(asyncio.sleep(0)),
        asyncio.create_task(asyncio.Event().wait()),
    ]
    for task in tasks:
        watch(task, "it", failure)
    await tasks[0]
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert not failure.done()
