"""Requests about many things: each once, and with pauses in which others have their turn."""

import asyncio
import logging
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import PART_ELEMENTS_MAX, Each
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup

EACH = Each("groups", "groups")
NAMES = [f"group-{number}" for number in range(3 * PART_ELEMENTS_MAX + 1)]


def context(size_max_bytes: int = 1 << 20) -> RequestContext:
    listener = SimpleNamespace(frame_size_max_bytes=size_max_bytes)
    made = SimpleNamespace(
        api_key=ApiKey.DESCRIBE_GROUPS,
        api_version=5,
        client_host="203.0.113.7",
        connection=SimpleNamespace(listener=listener),
    )
    return cast("RequestContext", made)


def describe(request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id=name) for name in request.groups])


async def test_others_have_their_turn_between_parts() -> None:
    turns: list[str] = []

    async def other() -> None:
        while True:
            turns.append("other")
            await asyncio.sleep(0)

    def handle(request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        turns.append("part")
        return describe(request)

    request = DescribeGroupsRequest(groups=list(NAMES))
    assert EACH.once(request)
    task = asyncio.create_task(other())
    response = await EACH.answer(context(), request, handle)
    task.cancel()
    assert [group.group_id for group in response.groups] == NAMES
    assert turns == ["part", "other"] * 4


async def test_an_answer_that_comes_later_is_awaited() -> None:
    async def handle(request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        await asyncio.sleep(0)
        return describe(request)

    response = await EACH.answer(context(), DescribeGroupsRequest(groups=list(NAMES)), handle)
    assert [group.group_id for group in response.groups] == NAMES


@pytest.mark.parametrize("count", [1, 2, 5000])
def test_what_is_named_repeatedly_is_asked_once(count: int) -> None:
    request = DescribeGroupsRequest(groups=["b", *["a"] * count, "b"])
    assert not EACH.once(request)
    assert request.groups == ["b", "a"]


def test_what_a_later_one_asks_is_added() -> None:
    def ask_more(group: OffsetFetchRequestGroup, again: OffsetFetchRequestGroup) -> None:
        group.member_epoch += again.member_epoch

    each = Each("groups", "groups", attrgetter("group_id"), ask_more)
    groups = [OffsetFetchRequestGroup(group_id="a", member_epoch=epoch) for epoch in (1, 2, 4)]
    request: Any = OffsetFetchRequest(groups=groups)
    assert not each.once(request)
    assert [group.member_epoch for group in request.groups] == [7]


async def test_an_answer_that_is_too_large_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = DescribeGroupsRequest(groups=list(NAMES))
    parts = 0

    def handle(request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        nonlocal parts
        parts += 1
        return describe(request)

    with caplog.at_level(logging.WARNING), pytest.raises(ConnectionAbortedError):
        await EACH.answer(context(500), request, handle)
    assert parts == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == "closing 203.0.113.7: its DESCRIBE_GROUPS asks for more than 500 bytes"
