"""What the controller lets whom have: each of its requests with the rights that it needs.

Without the right nothing changes; with that right alone the request is decided.
"""

import logging
from dataclasses import dataclass
from typing import Any

import pytest
from controller_harness import Harness

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.controller.handlers import DECIDE
from barnabas.node.metadata.controller_channel import QUORUM_REQUESTS
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.node.security.authorizer import ALLOW_ALL, Authorizer, Caller
from barnabas.node.security.controller_checks import CHECKS, CLUSTER_OPERATIONS, ControllerChecks
from barnabas.node.security.principal import Principal
from barnabas.protocol import apis
from barnabas.protocol.acls import Operation as Op
from barnabas.protocol.acls import ResourceType as Res
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import configs
from barnabas.protocol.messages.acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.credentials import (
    AlterUserScramCredentialsRequest,
    CreateDelegationTokenRequest,
)
from barnabas.protocol.messages.quotas import AlterClientQuotasRequest
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.schema import Message
from support.acl_world import AclWorld

DENIED = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
ALICE = Asker("User:alice", "10.0.0.1", "app")
CLUSTER = (Res.CLUSTER, "kafka-cluster")
Right = tuple[Op, Res, str]


@dataclass
class Granting:
    """An authorizer that allows some rights, and notes what it is asked."""

    rights: set[Right]
    is_enabled: bool = True
    notes_grants: bool = False
    generation: int = 0

    def __post_init__(self) -> None:
        self.callers: set[Caller] = set()

    def allows(
        self,
        caller: Caller,
        operation: Op,
        resource_type: Res,
        name: str,
        *,
        logs_denial: bool = True,
        logs_grant: bool = True,
    ) -> bool:
        self.callers.add(caller)
        return (operation, resource_type, name) in self.rights

    def allows_some(self, caller: Caller, operation: Op, resource_type: Res) -> bool:
        raise AssertionError("the controller asks for nothing by resource type")


class World:
    """A controller with a broker and the topic `orders`, and checks before it."""

    def __init__(self, *rights: Right, authorizer: Authorizer | None = None) -> None:
        self.controller = Harness(delegation_token_secret_key="secret")
        self.controller.register(1)
        self.controller.heartbeat(1, want_fence=False)
        self.controller.do(topics("orders"))
        self.granting = Granting(set(rights))
        self.checks = ControllerChecks(authorizer or self.granting)
        self.decided: list[Message] = []

    async def ask(self, request: Message, asker: Asker = ALICE) -> Any:
        async def decide(left: Message) -> Any:
            self.decided.append(left)
            return self.controller.do(left)

        return await self.checks.decide(asker, request, self.controller.image, decide)

    def id_of(self, topic: str) -> Uuid:
        return self.controller.image.topics.by_name[topic].id


def topics(*names: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    )


LEGACY = (
    configs.AlterConfigsRequest,
    configs.AlterConfigsAlterConfigsResource,
    configs.AlterConfigsAlterableConfig,
)
INCREMENTAL = (
    configs.IncrementalAlterConfigsRequest,
    configs.AlterConfigsResource,
    configs.AlterableConfig,
)


def alteration(classes: tuple[Any, Any, Any], kind: int, name: str) -> Any:
    request_class, resource_class, config_class = classes
    return request_class(
        resources=[
            resource_class(
                resource_type=kind,
                resource_name=name,
                configs=[config_class(name="retention.ms", value="1")],
            )
        ]
    )


def codes(response: Any) -> set[int]:
    """Every error code in a response."""
    found: set[int] = set()
    if isinstance(response, list):
        for each in response:
            found |= codes(each)
    elif hasattr(response, "__slots__"):
        for name in type(response).__slots__:
            value = getattr(response, name)
            if name == "error_code" and value:
                found.add(value)
            elif isinstance(value, list):
                found |= codes(value)
    return found


BY_PART: list[Any] = [
    pytest.param(topics("new"), (Op.CREATE, *CLUSTER), id="create a topic, by the cluster"),
    pytest.param(topics("new"), (Op.CREATE, Res.TOPIC, "new"), id="create a topic"),
    pytest.param(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="orders", count=3)]),
        (Op.ALTER, Res.TOPIC, "orders"),
        id="create partitions",
    ),
    *(
        pytest.param(
            alteration(classes, kind, name),
            (Op.ALTER_CONFIGS, resource, resource_name),
            id=f"{classes[0].__name__} of {ConfigResourceType(kind).name}",
        )
        for classes in (LEGACY, INCREMENTAL)
        for kind, name, resource, resource_name in (
            (ConfigResourceType.TOPIC, "orders", Res.TOPIC, "orders"),
            (ConfigResourceType.GROUP, "g", Res.GROUP, "g"),
            (ConfigResourceType.BROKER, "1", *CLUSTER),
            (ConfigResourceType.CLIENT_METRICS, "m", *CLUSTER),
        )
    ),
    pytest.param(
        DeleteTopicsRequest(topic_names=["orders"]),
        (Op.DELETE, *CLUSTER),
        id="delete a topic, by the cluster",
    ),
    pytest.param(
        CreateDelegationTokenRequest(
            owner_principal_type="User", owner_principal_name="bob", renewers=[], max_lifetime_ms=9
        ),
        (Op.CREATE_TOKENS, Res.USER, "User:bob"),
        id="a token for another",
    ),
]


def test_every_request_has_a_check() -> None:
    assert set(DECIDE) | QUORUM_REQUESTS <= CHECKS.keys() | CLUSTER_OPERATIONS.keys()
    assert not CHECKS.keys() & CLUSTER_OPERATIONS.keys()


@pytest.mark.parametrize(
    ("request_class", "operation"),
    CLUSTER_OPERATIONS.items(),
    ids=[request.__name__ for request in CLUSTER_OPERATIONS],
)
async def test_a_right_on_the_cluster_is_needed_and_enough(
    request_class: type[Message], operation: Op
) -> None:
    world = World()
    before = world.controller.image
    response = await world.ask(request_class())
    assert world.decided == []
    assert world.controller.image is before
    if hasattr(response, "error_code"):
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    key = apis.API_OF[request_class].key
    assert world.granting.callers == {Caller(Principal("User", "alice"), "10.0.0.1", key)}

    async def decide(left: Message) -> str:
        return f"decided {type(left).__name__}"

    for allowed, rights in ((True, {(operation, *CLUSTER)}), (False, all_others(operation))):
        checks = ControllerChecks(Granting(rights))
        outcome = await checks.decide(ALICE, request_class(), before, decide)
        assert (outcome == f"decided {request_class.__name__}") is allowed


def all_others(operation: Op) -> set[Right]:
    return {(other, *CLUSTER) for other in Op if other is not operation}


@pytest.mark.parametrize(("request_", "right"), BY_PART)
async def test_a_right_on_each_part_is_needed_and_enough(request_: Message, right: Right) -> None:
    world = World()
    before = world.controller.image
    response = await world.ask(request_)
    assert codes(response) <= DENIED, response
    assert codes(response)
    assert world.controller.image.topics == before.topics
    assert world.controller.image.configs == before.configs
    assert world.controller.image.delegation_tokens == before.delegation_tokens
    response = await World(right).ask(request_)
    assert not codes(response) & DENIED, response


@pytest.mark.parametrize(("request_", "right"), BY_PART)
async def test_who_has_every_other_right_may_not(request_: Message, right: Right) -> None:
    kind, name = right[1:]
    others = {(other, kind, name) for other in Op if other is not right[0]}
    assert codes(await World(*others).ask(request_)) & DENIED


async def test_a_topic_may_be_made_by_who_may_not_see_its_configuration() -> None:
    create = (Op.CREATE, Res.TOPIC, "new")
    (topic,) = (await World(create).ask(topics("new"))).topics
    assert topic.error_code == ErrorCode.NONE
    assert topic.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (topic.num_partitions, topic.replication_factor, topic.configs) == (-1, -1, [])
    seen = World(create, (Op.DESCRIBE_CONFIGS, Res.TOPIC, "new"))
    (topic,) = (await seen.ask(topics("new"))).topics
    assert (topic.num_partitions, topic.topic_config_error_code) == (1, ErrorCode.NONE)
    assert topic.configs


async def test_what_is_allowed_is_done_beside_what_is_not() -> None:
    world = World((Op.CREATE, Res.TOPIC, "mine"))
    response = await world.ask(topics("mine", "theirs", "theirs"))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("mine", ErrorCode.NONE),
        ("theirs", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    assert "theirs" not in world.controller.image.topics.by_name


async def test_the_names_and_ids_of_topics_are_for_those_who_may_describe_them() -> None:
    """Kafka's answers: a client that may not describe a topic cannot tell whether it exists."""
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    describe = (Op.DESCRIBE, Res.TOPIC, "orders")

    async def delete_by(*rights: Right, name: str | None, topic_id: Uuid | None = None) -> Any:
        world = World(*rights)
        world.controller.do(topics("other"))
        found = world.id_of("orders") if topic_id is None else topic_id
        topic = DeleteTopicState(name=name, topic_id=ZERO_UUID if name else found)
        (result,) = (await world.ask(DeleteTopicsRequest(topics=[topic]))).responses
        still = "orders" in world.controller.image.topics.by_name
        return result.error_code, result.name, still

    assert await delete_by(name="orders") == (denied, "orders", True)
    assert await delete_by(name="nowhere") == (denied, "nowhere", True)
    assert await delete_by(name=None) == (denied, None, True)
    assert await delete_by(describe, name="orders") == (denied, "orders", True)
    assert await delete_by(describe, name=None) == (denied, "orders", True)
    delete = (Op.DELETE, Res.TOPIC, "orders")
    assert await delete_by(delete, name="orders") == (denied, "orders", True)
    assert await delete_by(describe, delete, name="orders") == (0, "orders", False)
    assert await delete_by(delete, name=None) == (0, "orders", False)
    unknown = Uuid(bytes([3] * 16))
    assert (await delete_by(name=None, topic_id=unknown))[0] == ErrorCode.UNKNOWN_TOPIC_ID
    visible = (Op.DESCRIBE, Res.TOPIC, "nowhere")
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await delete_by(visible, name="nowhere"))[0] == code


async def test_old_versions_name_topics_too() -> None:
    world = World((Op.DESCRIBE, Res.TOPIC, "orders"))
    request = DeleteTopicsRequest(topic_names=["orders", "hidden"])
    response = await world.ask(request)
    assert {(each.name, each.error_code) for each in response.responses} == {
        ("orders", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("hidden", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    }
    assert request.topic_names == ["orders", "hidden"], "a repeated request must be whole"


async def test_a_token_for_oneself_is_free_but_not_with_a_token() -> None:
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=1000)
    assert (await World().ask(request)).error_code == ErrorCode.NONE
    by_token = ALICE._replace(is_token=True)
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    for authorizer in (None, ALLOW_ALL):
        world = World(authorizer=authorizer)
        assert (await world.ask(request, by_token)).error_code == code
        assert not world.controller.image.delegation_tokens


async def test_acls_need_an_authorizer() -> None:
    world = World(authorizer=ALLOW_ALL)
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(), DeleteAclsFilter()])
    response = await world.ask(request)
    assert [(each.error_code, each.error_message) for each in response.filter_results] == [
        (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    ] * 2
    assert world.decided == []


async def test_without_an_authorizer_everybody_may() -> None:
    world = World(authorizer=ALLOW_ALL)
    assert not codes(await world.ask(topics("new")))
    assert "new" in world.controller.image.topics.by_name


async def test_a_request_that_nobody_thought_of_is_refused() -> None:
    world = World()
    response = await world.ask(apis.VOTE.request())
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert world.decided == []


@pytest.mark.parametrize(
    ("request_", "operation", "name"),
    [
        (AlterClientQuotasRequest(), "ALTER_CONFIGS", "AlterClientQuotas"),
        (AlterUserScramCredentialsRequest(), "ALTER", "AlterUserScramCredentials"),
    ],
)
async def test_a_denial_is_logged_once_with_the_client_for_which_a_broker_asks(
    request_: Message, operation: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "barnabas.audit")
    world = World(authorizer=AclWorld().authorizer)
    await world.ask(request_)
    assert world.decided == []
    lines = [record.getMessage() for record in caplog.records if record.name == "barnabas.audit"]
    assert lines == [
        (
            f"Principal = User:alice is Denied operation = {operation} from host = 10.0.0.1 on "
            f"resource = Cluster:LITERAL:kafka-cluster for request = {name} with "
            "resourceRefCount = 1 based on rule DefaultDeny"
        )
    ]
