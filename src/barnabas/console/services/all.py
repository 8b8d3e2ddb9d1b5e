"""All services of a console."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.console.access import Audit
from barnabas.console.config import CONNECT, SQL, ConsoleConfig
from barnabas.console.services.asking import AbsentError, ClusterAccess
from barnabas.console.services.cluster import ClusterService
from barnabas.console.services.connectors import ConnectorService, WorkerRest
from barnabas.console.services.dead_letters import DeadLetterService
from barnabas.console.services.decoding import Decoder
from barnabas.console.services.groups import GroupService
from barnabas.console.services.lateness import LatenessService
from barnabas.console.services.messages import MessageService
from barnabas.console.services.rest import Rest
from barnabas.console.services.right_of_way import RightOfWay
from barnabas.console.services.schemas import SchemaService
from barnabas.console.services.security import AclService, QuotaService, UserService
from barnabas.console.services.sql import SqlService
from barnabas.console.services.topics import TopicService
from barnabas.console.services.transactions import HangingWatch, TransactionService
from barnabas.schemas.registry_client import RegistryClient

REGISTRY_TIMEOUT_S = 5.0
SLOW_TIMEOUT_S = 90.0
"""As long as a Connect worker takes at most; one that lists its plugins first imports them."""
T = TypeVar("T")


@dataclass(frozen=True)
class Services:
    """The services behind the pages."""

    cluster: ClusterService
    topics: TopicService
    groups: GroupService
    lateness: LatenessService
    transactions: TransactionService
    hanging: HangingWatch
    acls: AclService
    users: UserService
    quotas: QuotaService
    messages: MessageService
    dead_letters: DeadLetterService
    audit: Audit
    right_of_way: RightOfWay
    schemas_or_none: SchemaService | None = None
    connectors_or_none: ConnectorService | None = None
    sql_or_none: SqlService | None = None

    @property
    def configured(self) -> tuple[str, ...]:
        """The names of the services that there are beside the cluster."""
        there = {
            "registry": self.schemas_or_none,
            "connect": self.connectors_or_none,
            "sql": self.sql_or_none,
        }
        return tuple(name for name, service in there.items() if service is not None)

    @property
    def schemas(self) -> SchemaService:
        """The schemas of a registry. Raises AbsentError without one."""
        return _there(self.schemas_or_none, "schema registry", "--registry-url")

    @property
    def connectors(self) -> ConnectorService:
        """The connectors of a worker. Raises AbsentError without one."""
        return _there(self.connectors_or_none, "Connect worker", "--connect-url")

    @property
    def sql(self) -> SqlService:
        """A SQL server. Raises AbsentError without one."""
        return _there(self.sql_or_none, "SQL server", "--sql-url")

    def close(self) -> None:
        """Let go of everything."""
        for one in (self.schemas_or_none, self.connectors_or_none, self.sql_or_none):
            if one is not None:
                one.close()
        self.messages.close()
        self.hanging.close()
        self.cluster.close()
        self.audit.close()


def open_services(config: ConsoleConfig) -> Services:
    """The services of a configuration; nothing is asked yet. Raises ConfigError."""
    cluster = ClusterService(ClusterAccess(config.bootstrap_servers, config.client))
    groups = GroupService(cluster)
    transactions = TransactionService(cluster)
    registry, schemas = _registry(config)
    right_of_way = RightOfWay()
    messages = MessageService(cluster, Decoder(registry), right_of_way)
    worker = _beside(config, CONNECT, "the Connect worker", WorkerRest)
    server = _beside(config, SQL, "the SQL server", Rest)
    return Services(
        cluster,
        TopicService(cluster),
        groups,
        LatenessService(cluster, groups),
        transactions,
        HangingWatch(cluster, transactions),
        AclService(cluster),
        UserService(cluster),
        QuotaService(cluster),
        messages,
        DeadLetterService(cluster, messages),
        Audit(config.audit_file),
        right_of_way,
        schemas,
        None if worker is None else ConnectorService(worker),
        None if server is None else SqlService(server),
    )


def _registry(config: ConsoleConfig) -> tuple[RegistryClient | None, SchemaService | None]:
    """What decodes records, and what the pages ask; neither follows redirections."""
    access = config.registry()
    if access is None:
        return None, None
    given: dict[str, Any] = {
        "user_info": access.user_info,
        "authorization": access.authorization,
        "headers": access.headers,
        "tls": access.tls,
    }
    client = RegistryClient(access.urls, timeout_s=REGISTRY_TIMEOUT_S, follows=False, **given)
    return client, SchemaService(Rest("the schema registry", access.urls, **given))


def _beside(config: ConsoleConfig, name: str, what: str, kind: type[Rest]) -> Rest | None:
    """Return the client of a service that has its own settings; None without an address."""
    urls = config.urls(f"{name}.url")
    if not urls:
        return None
    user = config.user_info(name)
    return kind(what, urls, user_info=user, tls=config.tls(name), timeout_s=SLOW_TIMEOUT_S)


def _there(service: T | None, what: str, flag: str) -> T:
    if service is None:
        raise AbsentError(f"the console has no {what}: start it with {flag}")
    return service
