"""Requests about many things: each once, and with pauses in which others have their turn."""

import asyncio
import logging
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.in_parts import (
    DECIDED_ELEMENTS_MAX,
    PART_ELEMENTS_MAX,
    Each,
    decided_in_parts,
)
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
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


EACH_CHANGE = Each("resources", "responses", attrgetter("resource_name"))


def changes(*names: str) -> IncrementalAlterConfigsRequest:
    resources = [AlterConfigsResource(resource_type=2, resource_name=name) for name in names]
    return IncrementalAlterConfigsRequest(resources=resources)


class Controller:
    """Answers a part of a request, and remembers how much it was asked at once."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def decide(
        self, request: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        names = [resource.resource_name for resource in request.resources]
        self.asked.append(names)
        answers = [
            AlterConfigsResourceResponse(resource_name=name) for name in dict.fromkeys(names)
        ]
        return IncrementalAlterConfigsResponse(responses=answers)


async def test_a_long_decision_is_made_in_parts() -> None:
    names = [f"topic-{number}" for number in range(2 * DECIDED_ELEMENTS_MAX + 1)]
    controller = Controller()
    response = await decided_in_parts(EACH_CHANGE, changes(*names), controller.decide)
    assert [len(part) for part in controller.asked] == [512, 512, 1]
    assert [answer.resource_name for answer in response.responses] == names


async def test_what_is_named_repeatedly_is_decided_together() -> None:
    others = [f"topic-{number}" for number in range(2 * DECIDED_ELEMENTS_MAX)]
    controller = Controller()
    request = changes("twice", *others, "twice", *["often"] * DECIDED_ELEMENTS_MAX)
    response = await decided_in_parts(EACH_CHANGE, request, controller.decide)
    parts = {
        name: [part for part in controller.asked if name in part] for name in ("twice", "often")
    }
    for name, found in parts.items():
        assert [part.count(name) for part in found] == [2]
    answered = [answer.resource_name for answer in response.responses]
    assert answered == ["twice", *others, "often"]


async def test_a_request_for_nothing_is_passed_on() -> None:
    controller = Controller()
    response = await decided_in_parts(EACH_CHANGE, changes(), controller.decide)
    assert (controller.asked, response.responses) == ([[]], [])
