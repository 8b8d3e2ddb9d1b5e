"""Changes in a cluster whose nodes hear of them at different times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from barnabas.console.services import asking, security
from barnabas.console.services.asking import AwayError, RefusedError
from barnabas.console.services.cluster import ClusterService, Node, View
from barnabas.console.services.security import AclService, QuotaService, UserService
from barnabas.console.services.topics import Asked, TopicService
from barnabas.kafka.acls import Acl, AclFilter, exactly
from barnabas.kafka.client_quotas import Entity, Quota
from barnabas.kafka.scram_users import Credential
from barnabas.protocol.acls import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.apis import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsResourceResponse,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
)

NAME = "orders"
ANSWERS = {
    CREATE_TOPICS: CreateTopicsResponse(topics=[CreatableTopicResult(name=NAME)]),
    DELETE_TOPICS: DeleteTopicsResponse(responses=[DeletableTopicResult(name=NAME)]),
    CREATE_PARTITIONS: CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name=NAME)]),
    INCREMENTAL_ALTER_CONFIGS: IncrementalAlterConfigsResponse(
        responses=[AlterConfigsResourceResponse(resource_name=NAME)]
    ),
}
TOPIC, DEFAULT = 1, 5
"""Sources of a setting."""


def metadata(partitions: int) -> MetadataResponse:
    """An answer about the topic; without partitions it does not exist."""
    code = ErrorCode.NONE if partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    parts = [MetadataResponsePartition(partition_index=number) for number in range(partitions)]
    return MetadataResponse(
        topics=[MetadataResponseTopic(error_code=code, name=NAME, partitions=parts)]
    )


def retention(value: str, source: int = TOPIC) -> DescribeConfigsResponse:
    """An answer about the topic's settings."""
    setting = DescribeConfigsResourceResult(
        name="retention.ms", value=value, config_source=source, synonyms=[]
    )
    return DescribeConfigsResponse(
        results=[DescribeConfigsResult(resource_name=NAME, configs=[setting])]
    )


class LaggingCluster:
    """Nodes that give the old answer for a while. It is the service and the access in one."""

    def __init__(self, old: Any, new: Any, behind: dict[int, int]) -> None:
        """`behind`: how many more times each node answers as before the change."""
        self.old, self.new, self.behind = old, new, behind
        self.access = self
        self.away: Exception | None = None

    def view(self) -> View:
        nodes = {number: Node(number, "host", number, None) for number in self.behind}
        nodes[9] = Node(9, "", -1, None, is_up=False)
        return View("cluster", 1, nodes, {})

    def forget(self) -> None:
        pass

    def any(self, api: Any, _: object) -> Any:
        return ANSWERS[api]

    def at(self, address: tuple[str, int], api: Any, _: object) -> Any:
        number = address[1]
        assert number in self.behind
        if self.away is not None:
            raise self.away
        if self.behind[number] > 0:
            self.behind[number] -= 1
            return self.old
        return self.new

    def each(self, ask: Callable[[Node], bool], about: Iterable[Node]) -> dict[Node, Any]:
        found: dict[Node, Any] = {}
        for node in about:
            try:
                found[node] = ask(node)
            except (AwayError, RefusedError) as error:
                found[node] = error
        return found


def service(cluster: LaggingCluster) -> TopicService:
    return TopicService(cast("ClusterService", cluster))


@pytest.mark.parametrize(
    ("change", "old", "new"),
    [
        (lambda of: of.create(NAME, 2, -1, {}), metadata(0), metadata(2)),
        (lambda of: of.delete(NAME), metadata(2), metadata(0)),
        (lambda of: of.add_partitions(NAME, 3), metadata(2), metadata(3)),
        (lambda of: of.change(NAME, {"retention.ms": "7"}), retention("5"), retention("7")),
        (
            lambda of: of.change(NAME, {"retention.ms": "5"}),
            retention("5", DEFAULT),
            retention("5"),
        ),
        (
            lambda of: of.change(NAME, {"retention.ms": None}),
            retention("5"),
            retention("5", DEFAULT),
        ),
    ],
    ids=["create", "delete", "add partitions", "change", "set to the default", "remove"],
)
def test_a_change_ends_once_every_node_knows_it(
    change: Callable[[TopicService], None], old: Any, new: Any
) -> None:
    cluster = LaggingCluster(old, new, {1: 0, 2: 3, 3: 1})
    change(service(cluster))
    assert cluster.behind == {1: 0, 2: 0, 3: 0}


@pytest.mark.parametrize("failure", [AwayError("it is down"), RefusedError("not for you")])
def test_a_node_that_does_not_say_is_not_waited_for(failure: Exception) -> None:
    cluster = LaggingCluster(metadata(0), metadata(2), {1: 5, 2: 5})
    cluster.away = failure
    service(cluster).create(NAME, 2, -1, {})
    assert cluster.behind == {1: 5, 2: 5}


def test_a_change_that_a_node_does_not_hear_of_is_waited_for_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "KNOWN_S", 0.1)
    never = 10**9
    cluster = LaggingCluster(metadata(0), metadata(2), {1: never})
    service(cluster).create(NAME, 2, -1, {})
    assert 0 < cluster.behind[1] < never


def test_metadata_is_asked_without_creating_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = LaggingCluster(metadata(2), metadata(0), {1: 0})
    asked: list[Any] = []
    at = cluster.at

    def noted(address: tuple[str, int], api: Any, request: Any) -> Any:
        asked.append((api, request.allow_auto_topic_creation))
        return at(address, api, request)

    monkeypatch.setattr(cluster, "at", noted)
    service(cluster).delete(NAME)
    assert asked == [(METADATA, False)]


ACL = Acl(
    resource_type=ResourceType.TOPIC,
    name="orders",
    pattern=PatternType.LITERAL,
    principal="User:ann",
    host="*",
    operation=Operation.READ,
    permission=Permission.ALLOW,
)
USER = {"user": "ann"}
LIMITS = {"producer_byte_rate": 1000.0}


class LaggingNode:
    """ACLs, users or quotas of a node that shows a change only after a few questions."""

    def __init__(self) -> None:
        self.access = self
        self.shown: Any = {}
        self.new: Any = {}
        self.questions_left = 0

    @contextmanager
    def admin(self) -> Iterator[None]:
        yield None

    def change(self, new: Any) -> None:
        self.shown, self.new, self.questions_left = self.new, new, 3

    def read(self) -> Any:
        if self.questions_left:
            self.questions_left -= 1
            return self.shown
        return self.new


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> LaggingNode:
    """The node, behind the console's requests of administration."""
    node = LaggingNode()

    def add_acls(_: None, acls: Sequence[Acl]) -> None:
        node.change([*node.new, *acls])

    def list_acls(_: None, filters: Iterable[AclFilter]) -> list[Acl]:
        every = AclFilter() in filters
        return [acl for acl in node.read() if every or exactly(acl) in filters]

    def remove_acls(_: None, acls: Sequence[Acl]) -> int:
        node.change([acl for acl in node.new if acl not in acls])
        return len(acls)

    def list_users(_: None, names: Sequence[str] | None = None) -> dict[str, Any]:
        return {k: v for k, v in node.read().items() if names is None or k in names}

    def set_password(_: None, name: str, __: str, mechanisms: Sequence[str], count: int) -> None:
        node.change(node.new | {name: tuple(Credential(one, count) for one in mechanisms)})

    def delete_credentials(_: None, name: str, __: Sequence[str]) -> None:
        node.change({k: v for k, v in node.new.items() if k != name})

    def list_quotas(_: None, __: Entity, *, is_strict: bool = False) -> list[Quota]:
        values = node.read()
        return [Quota(USER, values)] if values else []

    def change_quota(
        _: None, __: Entity, values: Mapping[str, float], removed: Iterable[str] = ()
    ) -> None:
        kept = {k: v for k, v in node.new.items() if k not in set(removed)}
        node.change({**kept, **values})

    for function in (
        *(add_acls, remove_acls, list_acls),
        *(set_password, delete_credentials, list_users),
        *(change_quota, list_quotas),
    ):
        monkeypatch.setattr(security, function.__name__, function)
    return node


def test_the_list_of_acls_has_a_change_at_once(node: LaggingNode) -> None:
    service = AclService(cast("ClusterService", node))
    service.add([ACL])
    assert [row.text for row in service.find(Asked()).rows] == [ACL.text]
    service.remove(ACL)
    assert service.find(Asked()).rows == []


def test_the_list_of_users_has_a_change_at_once(node: LaggingNode) -> None:
    service = UserService(cast("ClusterService", node))
    service.create("ann", "pw", ["SCRAM-SHA-256"], 4096)
    assert [row.name for row in service.find(Asked()).rows] == ["ann"]
    service.change_password("ann", "other", 8192)
    (row,) = service.find(Asked()).rows
    assert row.credentials == (Credential("SCRAM-SHA-256", 8192),)
    service.delete("ann")
    assert service.find(Asked()).rows == []


def test_the_list_of_quotas_has_a_change_at_once(node: LaggingNode) -> None:
    service = QuotaService(cast("ClusterService", node))
    service.change(USER, LIMITS, [])
    assert [row.values for row in service.find(Asked()).rows] == [LIMITS]
    service.change(USER, {"request_percentage": 5.0}, ["producer_byte_rate"])
    assert [row.values for row in service.find(Asked()).rows] == [{"request_percentage": 5.0}]
    assert service.remove(USER) == ["request_percentage"]
    assert service.find(Asked()).rows == []


def test_a_change_is_made_although_nobody_can_be_asked_about_it(node: LaggingNode) -> None:
    def refuse(*_: object) -> None:
        raise RefusedError("not for you")

    service = AclService(cast("ClusterService", node))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(security, "list_acls", refuse)
        service.add([ACL])
    assert node.new == [ACL]
