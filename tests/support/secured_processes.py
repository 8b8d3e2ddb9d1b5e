"""A cluster whose clients log in over TLS, as a user who has every right by ACLs.

Clients find the login in `client_logins`, by the addresses of the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from barnabas.protocol.messages.acls import DescribeAclsRequest, DescribeAclsResponse
from support import client_logins
from support.certificates import Authority
from support.cluster_processes import ClusterNode, ClusterProcesses, Program
from support.node_process import wait_until
from support.raw_client import RawClient
from support.secured_settings import BETWEEN_BROKERS, NODES, Security

CLIENT = "client"
RESOURCES = {
    ResourceType.TOPIC: "*",
    ResourceType.GROUP: "*",
    ResourceType.TRANSACTIONAL_ID: "*",
    ResourceType.BROKER: "kafka-cluster",
}
ANSWER_S = 60
ANY = 1
"""Of resource types, patterns, operations and permissions."""


@contextmanager
def secured_processes(
    directory: Path,
    nodes: int,
    overrides: dict[str, str] | None = None,
    *,
    program: Program | None = None,
    racks: bool = True,
) -> Iterator[ClusterProcesses]:
    """The nodes, while they run."""
    directory.mkdir(parents=True, exist_ok=True)
    security = Security(Authority(directory), (CLIENT,))
    cluster = ClusterProcesses(
        directory, nodes, overrides, program=program, racks=racks, security=security
    )
    servers = cluster.bootstrap_servers

    def login(user: str) -> dict[str, str]:
        return security.client(servers, user, BETWEEN_BROKERS)

    with client_logins.known(servers, login(NODES), directory), cluster:
        admin = AdminClient(client_logins.librdkafka(servers))
        for future in admin.create_acls([_all_of(*one) for one in RESOURCES.items()]).values():
            future.result(ANSWER_S)
        for node in cluster.nodes.values():
            wait_until(lambda node=node: _acls(node) == len(RESOURCES), "all rights", ANSWER_S)
        with client_logins.known(servers, login(CLIENT), directory):
            yield cluster


def _all_of(kind: ResourceType, name: str) -> AclBinding:
    return AclBinding(
        *(kind, name, ResourcePatternType.LITERAL, f"User:{CLIENT}"),
        *("*", AclOperation.ALL, AclPermissionType.ALLOW),
    )


def _acls(node: ClusterNode) -> int:
    """Return how many a node knows."""
    every = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    with RawClient(node.bootstrap_servers) as raw:
        answer = raw.call(every, DescribeAclsResponse)
    return sum(len(resource.acls) for resource in answer.resources)
