"""Requests with many names that are refused: each refusal is written, others have their turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.node.broker.apis.groups import handle_delete_groups
from barnabas.node.broker.apis.offsets import handle_offset_delete
from barnabas.node.broker.apis.share_groups import (
    handle_alter_share_group_offsets,
    handle_delete_share_group_offsets,
)
from barnabas.node.broker.apis.topics import handle_delete_records
from barnabas.node.loop.pauses import PART_MAX
from barnabas.node.metadata.asker import Asker
from barnabas.node.security.authorizer import Caller
from barnabas.node.security.controller_checks import ControllerChecks
from barnabas.node.security.principal import Principal
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.features import SHARE_VERSION
from barnabas.protocol.messages import configs, groups, offsets, share_groups, topics
from support.rights import errors_of

PARTS = 10
NAMES = [f"name-{number}" for number in range(PARTS * PART_MAX)]
GROUP = "group"
ASKER = Asker("User:eve", "127.0.0.1")
CALLER = Caller(Principal("User", "eve"), "127.0.0.1")


class MayUseOneGroup:
    """Refuses all but what is asked of `GROUP`, and remembers what it refused when."""

    is_enabled = True
    notes_grants = False
    generation = 0

    def __init__(self) -> None:
        self.turns = 0
        self.refused: set[str] = set()
        self.turns_with_refusals: set[int] = set()

    async def count_turns(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.turns += 1

    def allows(
        self, caller: Caller, operation: Operation, kind: ResourceType, name: str, **_: bool
    ) -> bool:
        if name == GROUP:
            return True
        self.refused.add(name)
        self.turns_with_refusals.add(self.turns)
        return False


async def answer_of(authorizer: MayUseOneGroup, answer: Awaitable[Any]) -> Any:
    counting = asyncio.ensure_future(authorizer.count_turns())
    await asyncio.sleep(0)
    try:
        return await answer
    finally:
        counting.cancel()


def check(authorizer: MayUseOneGroup, response: Any, refusal: ErrorCode) -> None:
    assert [code for code in errors_of(response) if code] == [refusal] * len(NAMES)
    assert authorizer.refused.issuperset(NAMES)
    assert len(authorizer.turns_with_refusals) >= PARTS


HANDLED: list[tuple[Callable[..., Awaitable[Any]], Callable[[], Any], ErrorCode]] = [
    (
        handle_delete_records,
        lambda: topics.DeleteRecordsRequest(
            topics=[
                topics.DeleteRecordsTopic(name=name, partitions=[topics.DeleteRecordsPartition()])
                for name in NAMES
            ]
        ),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ),
    (
        handle_delete_groups,
        lambda: groups.DeleteGroupsRequest(groups_names=NAMES),
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ),
    (
        handle_offset_delete,
        lambda: offsets.OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                offsets.OffsetDeleteRequestTopic(
                    name=name, partitions=[offsets.OffsetDeleteRequestPartition()]
                )
                for name in NAMES
            ],
        ),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ),
    (
        handle_alter_share_group_offsets,
        lambda: share_groups.AlterShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                share_groups.AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=[share_groups.AlterShareGroupOffsetsRequestPartition()],
                )
                for name in NAMES
            ],
        ),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ),
    (
        handle_delete_share_group_offsets,
        lambda: share_groups.DeleteShareGroupOffsetsRequest(
            group_id=GROUP,
            topics=[
                share_groups.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in NAMES
            ],
        ),
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ),
]


@pytest.mark.parametrize(
    ("handle", "request_of", "refusal"), HANDLED, ids=[case[0].__name__ for case in HANDLED]
)
async def test_a_broker_refuses_in_turns(
    handle: Callable[..., Awaitable[Any]], request_of: Callable[[], Any], refusal: ErrorCode
) -> None:
    authorizer = MayUseOneGroup()

    async def nothing_is_left(request: Any) -> Any:
        assert not getattr(request, "groups_names", [])
        assert not getattr(request, "topics", [])
        if isinstance(request, groups.DeleteGroupsRequest):
            return groups.DeleteGroupsResponse()
        return offsets.OffsetDeleteResponse()

    services = SimpleNamespace(
        authorizer=authorizer,
        image=SimpleNamespace(features={SHARE_VERSION: 1}),
        share_groups=SimpleNamespace(delete_groups=nothing_is_left),
        groups=SimpleNamespace(offset_delete=nothing_is_left),
    )
    context = SimpleNamespace(caller=CALLER)
    response = await answer_of(authorizer, handle(services, context, request_of()))
    check(authorizer, response, refusal)


def of_topics(request: Any, topic: Any) -> Callable[[], Any]:
    return lambda: request(topics=[topic(name=name) for name in NAMES])


def of_configs(request: Any, resource: Any) -> Callable[[], Any]:
    return lambda: request(
        resources=[resource(resource_type=ResourceType.TOPIC, resource_name=name) for name in NAMES]
    )


DECIDED = {
    "create": of_topics(topics.CreateTopicsRequest, topics.CreatableTopic),
    "delete": of_topics(topics.DeleteTopicsRequest, topics.DeleteTopicState),
    "delete-by-name": lambda: topics.DeleteTopicsRequest(topic_names=NAMES),
    "grow": of_topics(topics.CreatePartitionsRequest, topics.CreatePartitionsTopic),
    "configure": of_configs(configs.AlterConfigsRequest, configs.AlterConfigsAlterConfigsResource),
    "configure-keys": of_configs(
        configs.IncrementalAlterConfigsRequest, configs.AlterConfigsResource
    ),
}
RESPONSES: dict[type, type] = {
    topics.CreateTopicsRequest: topics.CreateTopicsResponse,
    topics.DeleteTopicsRequest: topics.DeleteTopicsResponse,
    topics.CreatePartitionsRequest: topics.CreatePartitionsResponse,
    configs.AlterConfigsRequest: configs.AlterConfigsResponse,
    configs.IncrementalAlterConfigsRequest: (configs.IncrementalAlterConfigsResponse),
}


@pytest.mark.parametrize("request_of", DECIDED.values(), ids=DECIDED.keys())
async def test_the_controller_refuses_in_turns(request_of: Callable[[], Any]) -> None:
    authorizer = MayUseOneGroup()
    checks = ControllerChecks(cast("Any", authorizer))
    image: Any = SimpleNamespace(topics=SimpleNamespace(by_id={}, by_name={}))

    async def decide(left: Any) -> Any:
        return RESPONSES[type(left)]()

    response = await answer_of(authorizer, checks.decide(ASKER, request_of(), image, decide))
    check(authorizer, response, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
